package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
)

// Frames of a checkpoint, in this order. doc.go describes their payloads.
const (
	checkpointHead     = 1
	checkpointSegments = 2
	checkpointOwners   = 3
	checkpointEnded    = 4
	checkpointObjects  = 5
	checkpointSizes    = 6
	checkpointEnd      = 7

	checkpointVersion = 1
	objectEntry       = 4 + IDSize + 4*4

	// A checkpoint that names more is not believed: the memory for it is not there, or no record could say so.
	maxNumber = 1 << 28
	maxLarge  = maxPayload / manifestPiece * pieceMax
)

const checkpointPrefix = "checkpoint-"

func checkpointName(sequence uint64) string {
	return fmt.Sprintf("%s%016x", checkpointPrefix, sequence)
}

// checkpoints lists the sequence numbers of the checkpoint files, ascending.
func (s *Store) checkpointFiles() ([]uint64, error) {
	entries, err := s.fsys.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), checkpointPrefix); ok {
			if n, err := strconv.ParseUint(text, 16, 64); err == nil && checkpointName(n) == e.Name() {
				out = append(out, n)
			}
		}
	}
	return out, nil
}

// loadCheckpoint makes the newest intact checkpoint the state.
func (s *Store) loadCheckpoint(ctx context.Context) error {
	sequences, err := s.checkpointFiles()
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(sequences) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.sequence = max(s.sequence, n)
		err := s.readCheckpoint(n)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errCheckpoint) {
			return fmt.Errorf("read %s: %w", checkpointName(n), err)
		}
		s.badCheckpoints = append(s.badCheckpoints, checkpointName(n))
		s.reset()
	}
	return nil
}

// reset forgets what a checkpoint said that turned out to be damaged.
func (s *Store) reset() {
	s.table, s.segments, s.bytes = table.New(), map[uint32]*segment{}, 0
	s.leases, s.ended, s.covered, s.last = map[string]time.Duration{}, newTombstones(), position{}, Collected{}
}

var errCheckpoint = errors.New("the checkpoint is damaged")

func (s *Store) readCheckpoint(sequence uint64) error {
	f, err := s.fsys.OpenFile(checkpointName(sequence), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sc := newScanner(f, sequence, 0, info.Size())
	var owners []byte // kept until the objects that they hold are there
	for i := 0; sc.at < info.Size(); i++ {
		sp, ok, err := sc.next()
		if err != nil {
			return err
		}
		if !ok || (i == 0) != (sp.Type == checkpointHead) {
			return errCheckpoint
		}
		if sp.Version != checkpointVersion || sp.Type > checkpointEnd {
			return ErrNewerFormat
		}
		switch sp.Type {
		case checkpointOwners:
			owners = append(owners, sp.Payload...)
		case checkpointEnd:
			s.table.Seal()
			if !s.restoreOwners(owners) || sc.at != info.Size() {
				return errCheckpoint
			}
			return nil
		default:
			if !s.restore(sp.Type, sp.Payload) {
				return errCheckpoint
			}
		}
	}
	return errCheckpoint
}

func (s *Store) restore(typ byte, b []byte) bool {
	le := binary.LittleEndian
	switch typ {
	case checkpointHead:
		if len(b) != 44 {
			return false
		}
		s.covered = position{le.Uint32(b), int64(le.Uint64(b[4:]))}
		if s.covered.offset < 0 || s.covered.segment != 0 && s.covered.offset < segmentHeader {
			return false
		}
		s.last = Collected{Objects: int64(le.Uint64(b[12:])), Bytes: int64(le.Uint64(b[20:])), Segments: int(le.Uint64(b[28:]))}
		if ms := int64(le.Uint64(b[36:])); ms != 0 {
			s.last.At = time.UnixMilli(ms)
		}
	case checkpointSegments:
		for ; len(b) >= 12; b = b[12:] {
			s.segments[le.Uint32(b)] = &segment{end: int64(le.Uint64(b[4:]))}
		}
	case checkpointEnded:
		for len(b) >= 2 {
			n := int(le.Uint16(b))
			if n > len(b)-2 {
				return false
			}
			s.ended.add(string(b[2 : 2+n]))
			b = b[2+n:]
		}
	case checkpointObjects:
		for ; len(b) >= objectEntry; b = b[objectEntry:] {
			p := table.Place{Segment: le.Uint32(b[36:]), Offset: le.Uint32(b[40:]), Stored: le.Uint32(b[44:]), Size: le.Uint32(b[48:])}
			seg := s.segments[p.Segment]
			if seg == nil || le.Uint32(b) > maxNumber || p.Stored < frame.Size || p.Stored > frame.Size+maxPayload || !s.table.Restore(table.Ref(le.Uint32(b)), table.ID(b[4:36]), p) {
				return false
			}
			seg.live += int64(p.Stored)
			seg.objects++
			if p.Size != table.Large {
				s.bytes += int64(p.Size)
			}
		}
	case checkpointSizes:
		for ; len(b) >= 12; b = b[12:] {
			r, size := table.Ref(le.Uint32(b)), int64(le.Uint64(b[4:]))
			if !s.table.Valid(r) || size < 0 || size > maxLarge {
				return false
			}
			s.table.SetSize(r, size)
			s.bytes += size
		}
	}
	return len(b) == 0 || typ == checkpointHead
}

// restoreOwners reads the owners, when the objects are there.
func (s *Store) restoreOwners(b []byte) bool {
	le := binary.LittleEndian
	for len(b) >= 2 {
		n := int(le.Uint16(b))
		if len(b) < 2+n+12 {
			return false
		}
		name := string(b[2 : 2+n])
		remains, count := le.Uint64(b[2+n:]), int(le.Uint32(b[2+n+8:]))
		b = b[2+n+12:]
		if count > len(b)/4 {
			return false
		}
		refs := make([]table.Ref, 0, count)
		for i := range count {
			r := table.Ref(le.Uint32(b[4*i:]))
			if !s.table.Valid(r) {
				return false
			}
			refs = append(refs, r)
		}
		b = b[4*count:]
		s.table.Hold(name, refs...)
		if remains != noLease {
			s.leases[name] = s.after(time.Duration(min(remains, math.MaxInt64)))
		}
	}
	return len(b) == 0
}

const noLease = 1<<64 - 1

// checkpoint writes the state to a new file, without stopping what goes on: it is exact for a place in the log that is noted first, and may
// say more than that in parts, which replaying the log from there does again to the same end. Two checkpoints are kept.
func (s *Store) checkpoint(ctx context.Context) error {
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	s.mu.Lock()
	if s.inDoubt != nil || s.unsecured { // the log says more about what is damaged than a checkpoint would, or may lose its end
		s.mu.Unlock()
		return nil
	}
	at, sequence := s.position, s.sequence+1
	s.mu.Unlock()
	s.appended.Store(0)
	name := checkpointName(sequence)
	if err := s.writeCheckpoint(ctx, name+temporarySuffix, sequence, at); err != nil {
		if rerr := s.fsys.Remove(name + ".tmp"); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		return fmt.Errorf("write checkpoint: %w", err)
	}
	err := s.fsys.Rename(name+temporarySuffix, name)
	if err == nil {
		err = s.fsys.SyncDir(".")
	}
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	s.mu.Lock()
	s.sequence, s.covered = sequence, at
	s.mu.Unlock()
	if err := s.removeCheckpoints(2); err != nil {
		return fmt.Errorf("remove an old checkpoint: %w", err)
	}
	return nil
}

// removeCheckpoints keeps the newest ones.
func (s *Store) removeCheckpoints(keep int) error {
	sequences, err := s.checkpointFiles()
	if err != nil {
		return err
	}
	for _, n := range sequences[:max(0, len(sequences)-keep)] {
		if slices.Contains(s.badCheckpoints, checkpointName(n)) {
			continue // damaged files are kept until Repair puts them aside
		}
		if err := s.fsys.Remove(checkpointName(n)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeCheckpoint(ctx context.Context, name string, sequence uint64, at position) (err error) {
	f, err := s.fsys.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := &checkpointWriter{out: f, sequence: sequence}
	le := binary.LittleEndian
	s.mu.RLock()
	last := s.last
	var segments []byte
	for g, seg := range s.segments {
		segments = le.AppendUint64(le.AppendUint32(segments, g), uint64(seg.end))
	}
	ended := s.ended.names()
	s.mu.RUnlock()
	var ms int64
	if !last.At.IsZero() {
		ms = last.At.UnixMilli()
	}
	h := le.AppendUint64(le.AppendUint32(nil, at.segment), uint64(at.offset))
	for _, v := range []int64{last.Objects, last.Bytes, int64(last.Segments), ms} {
		h = le.AppendUint64(h, uint64(v))
	}
	w.frame(checkpointHead, h)
	s.saveOwners(w)
	for _, name := range ended {
		w.buf = append(le.AppendUint16(w.buf, uint16(len(name))), name...)
	}
	w.flush(checkpointEnded)
	// After the owners: every number they name has its entry, unless it was dropped. After the segments were copied above, new ones may
	// have begun: those that objects lie in are added.
	var sizes, objects bytes.Buffer
	known := map[uint32]bool{}
	for b := segments; len(b) > 0; b = b[12:] {
		known[le.Uint32(b)] = true
	}
	w.frame(checkpointSegments, segments)
	for n := 0; ctx.Err() == nil; n++ {
		s.mu.RLock()
		if n >= s.table.Blocks() {
			s.mu.RUnlock()
			break
		}
		objects.Reset()
		for r := range s.table.Block(n) {
			s.saveObject(&objects, &sizes, r)
			if p := s.table.Place(r); !known[p.Segment] {
				known[p.Segment] = true
				w.buf = le.AppendUint64(le.AppendUint32(w.buf, p.Segment), segmentHeader)
			}
		}
		s.mu.RUnlock()
		w.flush(checkpointSegments)
		w.frame(checkpointObjects, objects.Bytes())
	}
	w.frame(checkpointSizes, sizes.Bytes())
	w.frame(checkpointEnd, nil)
	if err := errors.Join(w.err, ctx.Err()); err != nil {
		return err
	}
	s.checkpointSize.Store(w.written)
	return f.Sync()
}

func (s *Store) saveObject(objects, sizes *bytes.Buffer, r table.Ref) {
	le := binary.LittleEndian
	id, p := s.table.ID(r), s.table.Place(r)
	var b [objectEntry]byte
	le.PutUint32(b[:], uint32(r))
	copy(b[4:], id[:])
	le.PutUint32(b[36:], p.Segment)
	le.PutUint32(b[40:], p.Offset)
	le.PutUint32(b[44:], p.Stored)
	le.PutUint32(b[48:], p.Size)
	objects.Write(b[:])
	if p.Size == table.Large {
		sizes.Write(le.AppendUint64(le.AppendUint32(nil, uint32(r)), uint64(s.table.Size(r))))
	}
}

// saveOwners writes the owners, some thousand holds under the lock at a time. A long list of holds becomes several entries of its owner.
func (s *Store) saveOwners(w *checkpointWriter) {
	const some = 16 << 10 // holds: a fraction of a millisecond
	le := binary.LittleEndian
	for n, done := 0, false; !done; {
		s.mu.RLock()
		now := s.elapsed()
		for copied := 0; copied < some; n++ {
			if done = n >= s.table.OwnerSlots(); done {
				break
			}
			name, refs := s.table.Owner(n)
			if name == "" {
				copied++
				continue
			}
			remains := uint64(noLease)
			if deadline, ok := s.leases[name]; ok {
				remains = uint64(max(0, deadline-now))
			}
			copied += len(refs) + 1
			for first := true; first || len(refs) > 0; first = false {
				part := refs[:min(len(refs), some)]
				refs = refs[len(part):]
				w.buf = append(le.AppendUint16(w.buf, uint16(len(name))), name...)
				w.buf = le.AppendUint32(le.AppendUint64(w.buf, remains), uint32(len(part)))
				for _, r := range part {
					w.buf = le.AppendUint32(w.buf, uint32(r))
				}
			}
		}
		s.mu.RUnlock()
		w.flush(checkpointOwners)
	}
	s.mu.RLock()
	now := s.elapsed()
	for name, deadline := range s.leases {
		if len(s.table.Holds(name)) == 0 { // a lease of nothing is no owner
			w.buf = append(le.AppendUint16(w.buf, uint16(len(name))), name...)
			w.buf = le.AppendUint32(le.AppendUint64(w.buf, uint64(max(0, deadline-now))), 0)
		}
	}
	s.mu.RUnlock()
	w.flush(checkpointOwners)
}

// checkpointWriter writes frames; the first error ends it.
type checkpointWriter struct {
	out      io.Writer
	sequence uint64
	buf, raw []byte
	written  int64
	err      error
}

// flush writes what was gathered in buf as a frame.
func (w *checkpointWriter) flush(typ byte) {
	w.frame(typ, w.buf)
	w.buf = w.buf[:0]
}

func (w *checkpointWriter) frame(typ byte, payload []byte) {
	if w.err != nil || len(payload) == 0 && typ != checkpointEnd {
		return
	}
	w.raw = frame.Append(w.raw[:0], w.sequence, typ, checkpointVersion, 0, payload)
	_, w.err = w.out.Write(w.raw)
	w.written += int64(len(w.raw))
}

// checkCheckpoint reads the newest checkpoint back before the one before it is given up.
func (s *Store) checkCheckpoint() error {
	f, err := s.fsys.OpenFile(checkpointName(s.sequence), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := newScanner(f, s.sequence, 0, scanRead)
	for {
		sp, ok, err := sc.next()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s: %w", checkpointName(s.sequence), errCheckpoint)
		}
		if sp.Type == checkpointEnd {
			return nil
		}
	}
}
