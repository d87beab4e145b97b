package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/space/catalog"
)

// maxDocument bounds a document that is edited or written whole: far above any note, small enough to hold several in memory.
const maxDocument = 16 << 20

// Options of New.
type Options struct {
	SpaceID string
	Path    string      // of the space's folder, absolute
	Root    vfs.FS      // that folder
	Own     fs.FileInfo // of .repa in it; nil when the disk cannot tell files apart
	Store   *cas.Store
	NewID   func() string
	Now     func() time.Time
	Log     *slog.Logger
	Grants  Grants // nil: nothing outside is read
}

// Engine works on the contents of one space.
type Engine struct {
	spaceID string
	path    string
	root    vfs.FS
	temp    vfs.FS // .repa/tmp
	own     fs.FileInfo
	store   *cas.Store
	newID   func() string
	now     func() time.Time
	log     *slog.Logger
	grants  Grants
	journal *recordlog.Log

	titles titles
	change sync.Mutex // one operation at a time; held while it works

	mu         sync.RWMutex // guards what follows; held for moments
	catalog    *catalog.Catalog
	operations map[string]*operation
	order      []*operation
	next       int // seq of the next operation
	byPath     map[string][]*operation
	byItem     map[string][]*operation
	unsettled  map[string]*operation // prepared, or in need of recovery
	pruned     map[string]string     // id → hash
	broken     error                 // the journal no longer takes records
}

// New makes an engine. Its caller replays the journal into it and then calls Start.
func New(o Options) *Engine {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		spaceID: o.SpaceID, path: o.Path, root: o.Root, own: o.Own, store: o.Store, newID: o.NewID, now: o.Now, log: o.Log, grants: o.Grants,
		catalog: catalog.New(), operations: map[string]*operation{}, byPath: map[string][]*operation{}, byItem: map[string][]*operation{},
		unsettled: map[string]*operation{}, pruned: map[string]string{},
	}
}

// Mine reports whether a journal record belongs to this package.
func Mine(r recordlog.Record) bool { return r.Type >= typePrepared && r.Type < typePrepared+16 }

// Replay takes a record of the journal, in order, before Start. A record of a newer version makes the engine read-only. Errors (codes):
// invalid_storage for a record that cannot be read.
func (e *Engine) Replay(r recordlog.Record) error {
	if r.Type > typeObserved || r.Version > recordVersion {
		e.broken = fail(codeInvalid, "the journal of %s holds records of a newer version of Repa, so this version only reads it; use the newer version", e.path)
		return nil
	}
	rec, err := decode(r)
	if err != nil {
		return err
	}
	switch r.Type {
	case typePrepared:
		o := newOperation(rec, r.At)
		o.pending = &rec
		e.enter(o)
	case typeObserved:
		o := newOperation(rec, r.At)
		o.status = Committed
		e.enter(o)
	case typePruned:
		e.forget(rec.IDs...)
	default:
		o := e.operations[rec.ID]
		if o == nil {
			return nil // pruned since
		}
		if r.Type == typeConfirmed && o.pending != nil {
			e.catalog.Apply(o.pending.Items)
		}
		e.settled(o, statusOf[r.Type], rec)
	}
	return nil
}

var statusOf = map[uint8]Status{typeConfirmed: Committed, typeRolledBack: RolledBack, typeConflict: NeedsRecovery, typeReconciled: Reconciled}

func newOperation(r record, at recordlog.Position) *operation {
	o := &operation{id: r.ID, hash: r.Hash, method: r.Method, status: Prepared, time: r.Time, by: By{Actor: Outside}, at: at, undoes: r.Undoes}
	if r.By != nil {
		o.by = *r.By
	}
	for _, f := range r.Files {
		f.Temp, f.From = "", ""
		o.files = append(o.files, f)
	}
	for _, i := range r.Items {
		o.items = append(o.items, i.After.ID)
	}
	return o
}

// enter puts an operation into the indexes. mu is held, or nobody else is there yet.
func (e *Engine) enter(o *operation) {
	o.seq = e.next
	e.next++
	e.operations[o.id] = o
	e.order = append(e.order, o)
	for _, f := range o.files {
		e.byPath[f.Path] = append(e.byPath[f.Path], o)
	}
	for _, id := range o.items {
		e.byItem[id] = append(e.byItem[id], o)
	}
	if o.status == Prepared {
		e.unsettled[o.id] = o
	}
}

// settled notes how an operation ended. mu is held, or nobody else is there yet.
func (e *Engine) settled(o *operation, status Status, r record) {
	o.status, o.conflicts = status, r.Conflicts
	if r.Code != "" {
		o.code, o.err = r.Code, r.Error
	}
	if status == NeedsRecovery {
		return
	}
	o.pending = nil
	delete(e.unsettled, o.id)
	if status != Committed {
		return
	}
	for _, id := range o.undoes {
		if undone := e.operations[id]; undone != nil {
			undone.undoneBy = o.id
		}
	}
}

// forget drops the history of operations; ids and hashes stay, so that a replay never executes them. mu is held, or nobody else is there yet.
func (e *Engine) forget(ids ...string) {
	gone := map[*operation]bool{}
	for _, id := range ids {
		if o := e.operations[id]; o != nil {
			gone[o] = true
			delete(e.operations, id)
			e.pruned[id] = o.hash
		}
	}
	without := func(list []*operation) []*operation {
		return slices.DeleteFunc(slices.Clone(list), func(o *operation) bool { return gone[o] })
	}
	e.order = without(e.order)
	for o := range gone {
		for _, f := range o.files {
			if e.byPath[f.Path] = without(e.byPath[f.Path]); len(e.byPath[f.Path]) == 0 {
				delete(e.byPath, f.Path)
			}
		}
		for _, id := range o.items {
			e.byItem[id] = without(e.byItem[id])
		}
	}
}

// Start takes the journal, settles what a crash left open, and gives free what operations held that are not there. Errors: of the disk.
// An operation that cannot be settled is no error: it needs recovery.
func (e *Engine) Start(ctx context.Context, journal *recordlog.Log) error {
	e.journal = journal
	if e.broken != nil {
		return nil
	}
	if err := e.openTemp(); err != nil {
		return diskError("folder "+tempFolder, err)
	}
	for _, o := range e.order {
		if o.pending == nil && e.unsettled[o.id] != nil { // a checkpoint knows only its place
			r, err := e.stored(o)
			if err != nil {
				return err
			}
			o.pending = &r
		}
		if o.status == Prepared {
			if err := e.recover(ctx, o); err != nil {
				return fmt.Errorf("recover operation %s: %w", o.id, err)
			}
		}
	}
	for held := range e.store.AllOwners(cas.OwnerOperation) {
		if e.operations[held.ID] == nil {
			if err := e.store.Release(ctx, held); err != nil && !errors.Is(err, cas.ErrReadOnly) {
				return fmt.Errorf("release %s: %w", held, err)
			}
		}
	}
	if err := e.holdAll(ctx); err != nil && !errors.Is(err, cas.ErrReadOnly) {
		return fmt.Errorf("hold what items name: %w", err)
	}
	return nil
}

// openTemp makes the folder of temporary files, or empties it: what is in it never became anything.
func (e *Engine) openTemp() (err error) {
	if err := vfs.MkdirAll(e.root, tempFolder, 0o700); err != nil {
		return err
	}
	if e.temp, err = e.root.Sub(tempFolder); err != nil {
		return err
	}
	entries, err := e.temp.ReadDir(".")
	for _, entry := range entries {
		err = errors.Join(err, e.temp.Remove(entry.Name()))
	}
	return err
}

// Close ends the engine's work; the journal and the store are its owner's.
func (e *Engine) Close() error {
	if e.temp == nil {
		return nil
	}
	return e.temp.Close()
}

// StartReadOnly takes the journal of a space that must not be changed; every change fails with why.
func (e *Engine) StartReadOnly(journal *recordlog.Log, why error) { e.journal, e.broken = journal, why }

var idPattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func checkID(what, id string) error {
	if !idPattern.MatchString(id) {
		return fail(codeInput, "%s %q: want 1 to 128 letters, digits, - or _", what, id)
	}
	return nil
}
