package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/space"
	"github.com/repa-app/repa/space/content"
)

// loadedSpace is a space that a worker opened: locked, its journal replayed, what a crash interrupted marked so.
type loadedSpace struct {
	space    *space.Space
	sessions vfs.FS
	journal  vfs.FS
	log      *recordlog.Log
	state    *ledger.State
	files    map[protocol.ID]string // session id → file name
	covered  recordlog.Position     // by the checkpoint on the disk
	outside  *outside
}

// loadSpace opens a folder. On failure nothing stays open or locked.
func loadSpace(ctx context.Context, b *Backend, path string) (*loadedSpace, error) {
	owner := space.Owner{PID: b.opts.PID, ConnectionFile: b.opts.ConnectionFile}
	s, err := space.Open(ctx, path, space.Options{NewID: func() string { return string(b.newID()) }, Owner: owner, Store: b.opts.Store,
		Now: b.opts.Clock.Now, Log: b.log, Grants: b.grants})
	if err != nil {
		return nil, err
	}
	l := &loadedSpace{space: s, state: ledger.NewState()}
	if err := l.open(ctx, b, path); err != nil {
		return nil, errors.Join(err, l.closeAll())
	}
	reconcileRequests(ctx, l.space.Store(), l.state, b.log.With("space", l.space.ID()))
	if err := dropEndedHolds(ctx, s.Store()); err != nil {
		b.log.Warn("what ended holds kept is not given free; the next open does it", "space", s.ID(), "error", err)
	}
	l.checkpoint(b.log)
	l.outside = followOutside(b, s)
	return l, nil
}

func (l *loadedSpace) open(ctx context.Context, b *Backend, path string) error {
	var err error
	if l.sessions, err = l.space.Meta("sessions"); err != nil {
		return err
	}
	if l.journal, err = l.space.Meta("journal"); err != nil {
		return err
	}
	var cut int64
	l.covered = l.restore(b)
	if l.log, cut, err = recordlog.Open(ctx, l.journal, recordlog.Options{From: l.covered}, l.replay); err != nil {
		return l.journalError(err)
	}
	if cut > 0 {
		b.log.Warn("the journal's torn tail was moved aside", "space", l.space.ID(), "bytes", cut)
	}
	if l.files, err = sessionFiles(l.sessions); err != nil {
		return err
	}
	if l.state.Newer {
		l.space.Content().StartReadOnly(l.log, protocol.Errorf(protocol.CodeInvalidStorage,
			"the journal of %s holds records of a newer version of Repa, so this version only reads it; use the newer version", path))
		return nil
	}
	if err := l.space.Content().Start(ctx, l.log); err != nil {
		return err
	}
	facts := l.state.Interrupt(b.now(), l.entered(b))
	if len(facts) == 0 {
		return nil
	}
	records, err := ledger.Records(facts...)
	if err != nil {
		return err
	}
	if err := l.log.Append(ctx, records...); err != nil {
		return err
	}
	for _, f := range facts {
		l.state.Apply(f)
	}
	return nil
}

// restore takes the journal's checkpoint and says what it covers; without a usable one everything is replayed.
func (l *loadedSpace) restore(b *Backend) recordlog.Position {
	at, sections, err := recordlog.LoadCheckpoint(l.journal)
	var state *ledger.State
	if err == nil && len(sections) != 2 {
		err = recordlog.ErrNoCheckpoint
	}
	if err == nil {
		state, err = ledger.LoadCheckpoint(sections[0])
	}
	if err == nil {
		err = l.space.Content().RestoreCheckpoint(sections[1])
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.log.Warn("the journal's checkpoint is not used; everything is replayed", "space", l.space.ID(), "error", err)
		}
		return recordlog.Position{}
	}
	l.state = state
	return at
}

// checkpointBytes is how much journal is replayed at most before a checkpoint is worth its writing.
const checkpointBytes = 1 << 20

// checkpoint saves what the journal says when that is worth it. Nothing may change meanwhile.
func (l *loadedSpace) checkpoint(log *slog.Logger) {
	end := l.log.End()
	if l.state.Newer || end.Segment == l.covered.Segment && end.Offset-l.covered.Offset < checkpointBytes {
		return
	}
	ledgerSection, err := l.state.Checkpoint()
	var contentSection []byte
	if err == nil {
		contentSection, err = l.space.Content().Checkpoint()
	}
	if err == nil {
		err = recordlog.SaveCheckpoint(l.journal, end, ledgerSection, contentSection)
	}
	if err != nil {
		log.Warn("the journal gets no checkpoint; the next open takes longer", "space", l.space.ID(), "error", err)
		return
	}
	l.covered = end
}

// replay hands a record of the journal to whom it belongs.
func (l *loadedSpace) replay(r recordlog.Record) error {
	if content.Mine(r) {
		return l.space.Content().Replay(r)
	}
	return l.state.Replay(r)
}

func (l *loadedSpace) journalError(err error) error {
	folder := filepath.Join(l.space.Path(), space.MetaFolder, "journal")
	var damage *recordlog.DamageError
	switch {
	case errors.As(err, &damage), errors.Is(err, recordlog.ErrNewerFormat):
		return protocol.Errorf(protocol.CodeInvalidStorage, "the journal in %s cannot be read: %v. Nothing was changed; restore the folder from a backup", folder, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return protocol.Errorf(protocol.CodeStorage, "the journal in %s cannot be opened: %v; check its permissions", folder, err)
	}
	return protocol.Errorf(protocol.CodeInvalidRequestRecord, "the journal in %s cannot be read: %v. Nothing was changed", folder, err)
}

// sessionFiles lists the session files by the id in their names. Files without an id that the protocol can carry are left out.
func sessionFiles(fsys vfs.FS) (map[protocol.ID]string, error) {
	entries, err := fsys.ReadDir(".")
	if err != nil {
		return nil, err
	}
	out := map[protocol.ID]string{}
	for _, e := range entries {
		if id, ok := sessionID(e.Name()); ok && !e.IsDir() {
			out[id] = e.Name()
		}
	}
	return out, nil
}

func sessionID(file string) (protocol.ID, bool) {
	base, ok := strings.CutSuffix(file, ".jsonl")
	if i := strings.IndexByte(base, '_'); i >= 0 {
		base = base[i+1:]
	}
	id := protocol.ID(base)
	return id, ok && id.Valid()
}

// entered finds the history messages of a request in its session's file.
func (l *loadedSpace) entered(b *Backend) func(protocol.Request) []protocol.ID {
	bySession := map[protocol.ID]map[protocol.ID][]protocol.ID{}
	return func(r protocol.Request) []protocol.ID {
		id := r.Target.SessionID
		if bySession[id] == nil {
			bySession[id] = l.messagesByRequest(b, id)
		}
		return bySession[id][r.RequestID]
	}
}

func (l *loadedSpace) messagesByRequest(b *Backend, id protocol.ID) map[protocol.ID][]protocol.ID {
	out := map[protocol.ID][]protocol.ID{}
	store, err := session.Open(l.sessions, l.files[id], session.Source{})
	if err != nil {
		b.log.Warn("a session file cannot be read", "space", l.space.ID(), "session", id, "error", err)
		return out
	}
	for _, e := range store.Snapshot().Branch {
		if e.RequestID != "" && e.Role == "user" {
			out[protocol.ID(e.RequestID)] = append(out[protocol.ID(e.RequestID)], protocol.ID(e.ID))
		}
	}
	if err := store.Close(); err != nil {
		b.log.Warn("close session file", "session", id, "error", err)
	}
	return out
}

func (l *loadedSpace) close(log *slog.Logger) {
	l.outside.close(log)
	if err := l.log.Close(); err == nil { // a log that failed has an unknown end
		l.checkpoint(log)
	}
	if err := l.closeAll(); err != nil {
		log.Error("close space", "space", l.space.ID(), "error", err)
	}
}

// closeAll closes the journal before it releases the lock.
func (l *loadedSpace) closeAll() error {
	var errs []error
	if l.log != nil {
		errs = append(errs, l.log.Close())
	}
	for _, c := range []io.Closer{l.journal, l.sessions} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if err := errors.Join(append(errs, l.space.Close())...); err != nil {
		return fmt.Errorf("close space %s: %w", l.space.ID(), err)
	}
	return nil
}
