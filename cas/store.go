package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/repa-app/repa/cas/internal/table"
	"github.com/repa-app/repa/cas/vfs"
)

// Options of Open. The zero value is right for products.
type Options struct {
	// FS is the store's folder as a disk; nil opens dir of the operating system. It is not closed by the store.
	FS vfs.FS
	// ReadOnly opens beside an owner, or without any, and changes nothing.
	ReadOnly bool
	// SegmentSize is where a new pack begins. 0: 64 MiB, so that few files are open and a copied one is soon done. Tests use less.
	SegmentSize int64
	// Grace is how long an object stays after it was last put, asked for or released, when nobody holds it: the time between a put and
	// its hold, or between an answer that names an object and the read of it. 0: ten minutes; negative: none.
	Grace time.Duration
	// Elapsed is the time since some moment, by a clock that never goes back; it may stand still while the machine sleeps. nil: since Open.
	Elapsed func() time.Duration
	// Rate bounds what Collect and Verify read, in bytes a second. 0: unbounded.
	Rate int64
	// Checkpoint is how many bytes are appended before the next checkpoint is written. 0: 64 MiB, which replay in 0.2 s.
	Checkpoint int64
}

const (
	defaultSegmentSize = 64 << 20
	defaultGrace       = 10 * time.Minute
	defaultCheckpoint  = 64 << 20
	maxSegmentSize     = 1 << 30 // places are 32-bit offsets
)

// Store is an open store. Its methods are safe for concurrent use.
type Store struct {
	fsys    vfs.FS
	dir     string // for messages
	opts    Options
	lock    io.Closer
	owned   io.Closer // the disk, when the store opened it
	files   *files
	limiter *rate.Limiter // nil: unbounded
	writer  *writer       // nil when read-only
	elapsed func() time.Duration
	grace   uint32 // in units of the clock
	ending  context.Context
	end     context.CancelFunc
	closed  chan struct{}
	leased  chan struct{} // wakes expire
	close   sync.Once
	closing error

	checkpoints    sync.Mutex   // held while one is written
	checkpointing  atomic.Bool  // by maybeCheckpoint
	checkpointSize atomic.Int64 // of the last one
	appended       atomic.Int64 // bytes of packs since it was begun
	collecting     sync.Mutex   // held while Collect runs
	background     sync.WaitGroup

	mu             sync.RWMutex // guards everything below; only the writer and Open change it, except touches and pins
	table          *table.Table
	segments       map[uint32]*segment
	bytes          int64 // of all objects
	pins           map[table.Ref]int
	bad            map[table.Ref]string // objects whose record was found damaged, and why: they are put again when they come
	lost           map[ID]lostObject    // objects whose record was damaged before it could be taken into the table
	gaps           []gap
	leases         map[string]time.Duration // deadlines
	ended          *tombstones
	inDoubt        error           // why nothing may be collected
	frozen         error           // why nothing may be written
	unsecured      bool            // the last write before a crash is still to be written again
	removed        map[uint32]bool // packs that the log says were removed, while it is replayed
	position       position
	covered        position // by the newest checkpoint
	sequence       uint64   // of the newest checkpoint
	badCheckpoints []string
	last           Collected
}

type lostObject struct {
	segment uint32
	offset  int64
}

// position is a place in the log of packs.
type position struct {
	segment uint32
	offset  int64
}

// Open opens the store in the folder dir, making it when it is not there, and recovers what a crash left.
//
// Errors: *InUseError when another process owns it, ErrNewerFormat, errors of the disk. Damage is no error of Open: what is damaged
// is reported where it is read and by Verify.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	s := &Store{fsys: opts.FS, dir: dir, opts: opts.withDefaults(), closed: make(chan struct{}), leased: make(chan struct{}, 1), table: table.New(),
		segments: map[uint32]*segment{}, pins: map[table.Ref]int{}, bad: map[table.Ref]string{}, lost: map[ID]lostObject{},
		removed: map[uint32]bool{}, leases: map[string]time.Duration{}, ended: newTombstones(), elapsed: opts.Elapsed}
	s.ending, s.end = context.WithCancel(context.WithoutCancel(ctx))
	if s.elapsed == nil {
		start := time.Now()
		s.elapsed = func() time.Duration { return time.Since(start) }
	}
	s.grace = uint32(max(0, s.opts.Grace/time.Second))
	if r := opts.Rate; r > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(r), int(max(64<<10, min(r/10, 4<<20))))
	}
	if err := s.start(ctx); err != nil {
		s.end()
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), s.closeDisk())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	if s.fsys == nil {
		if err := s.openFolder(); err != nil {
			return err
		}
	}
	s.files = newFiles(s.fsys)
	if !s.opts.ReadOnly {
		if err := s.takeLock(); err != nil {
			return err
		}
		if err := vfs.MkdirAll(s.fsys, packsDir, 0o700); err != nil {
			return err
		}
		if err := s.removeTemporary(packsDir); err != nil {
			return err
		}
	}
	if s.opts.ReadOnly {
		return s.startReading(ctx)
	}
	tail, err := s.load(ctx)
	if err != nil {
		return err
	}
	s.writer = newWriter(s, tail)
	s.background.Go(s.expire)
	return nil
}

// startReading loads the state beside an owner that may be removing packs meanwhile. Packs are opened at once: what is removed later can be
// read on.
func (s *Store) startReading(ctx context.Context) (err error) {
	const attempts = 5 // a collection removes packs one after the other, with copying in between
	for range attempts {
		if _, err = s.load(ctx); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil && s.openPacks() {
			return nil
		}
		s.reset()
		s.gaps, s.lost, s.badCheckpoints, s.inDoubt, s.frozen = nil, map[ID]lostObject{}, nil, nil, nil
		s.removed = map[uint32]bool{}
	}
	if _, lerr := s.load(ctx); lerr != nil {
		return errors.Join(err, lerr)
	}
	return nil
}

// openPacks reports whether all packs are there.
func (s *Store) openPacks() bool {
	for g := range s.segments {
		f, err := s.files.use(g)
		if err != nil {
			return false
		}
		s.files.done(f)
	}
	return true
}

func (o Options) withDefaults() Options {
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	o.SegmentSize = min(o.SegmentSize, maxSegmentSize)
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Checkpoint == 0 {
		o.Checkpoint = defaultCheckpoint
	}
	return o
}

func (s *Store) openFolder() error {
	if !s.opts.ReadOnly {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
	}
	fsys, err := vfs.OS(s.dir)
	if err != nil {
		return err
	}
	s.fsys, s.owned = fsys, fsys
	return nil
}

// syncFolders makes the names of the store's folders durable before its first pack: whoever made them may have been killed before it did.
func (s *Store) syncFolders() error {
	err := s.fsys.SyncDir(".")
	if err != nil || s.owned == nil {
		return err
	}
	parent, err := vfs.OS(filepath.Dir(s.dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.SyncDir("."), parent.Close())
}

const (
	lockName  = "lock"
	ownerName = "owner.json"
)

func (s *Store) takeLock() (err error) {
	s.lock, err = s.fsys.Lock(lockName)
	if errors.Is(err, vfs.ErrLocked) {
		var pid int
		if data, err := vfs.ReadFile(s.fsys, ownerName, 1<<10); err == nil {
			fmt.Sscanf(string(data), `{"pid":%d}`, &pid) // a message without a number is good enough
		}
		return &InUseError{s.dir, pid}
	}
	if err != nil {
		return err
	}
	if err := s.removeTemporary("."); err != nil {
		return err
	}
	return vfs.PublishFile(s.fsys, ownerName, fmt.Appendf(nil, `{"pid":%d}`+"\n", os.Getpid()), 0o600)
}

// temporarySuffix ends the name of a file that is being written; what PublishFile writes goes on behind it.
const temporarySuffix = ".tmp"

// removeTemporary removes the files of the store in a folder to which a process that was killed did not give their name.
func (s *Store) removeTemporary(dir string) error {
	entries, err := s.fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		base, _, ok := strings.Cut(e.Name(), temporarySuffix)
		if ok && (base == ownerName || strings.HasPrefix(base, checkpointPrefix) || strings.HasSuffix(base, packSuffix)) {
			if err := s.fsys.Remove(path.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// now is the time of touches: seconds, from 1.
func (s *Store) now() uint32 { return uint32(s.elapsed()/time.Second) + 1 }

// after is the moment when a time has passed, or the last there is.
func (s *Store) after(remains time.Duration) time.Duration {
	now := s.elapsed()
	return now + min(remains, math.MaxInt64-now)
}

// Close finishes what was accepted, writes a checkpoint and gives the store free. Objects still open fail from then on. Calling it again
// returns the same error.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.end()
		if s.writer != nil {
			s.closing = s.writer.stop()
			s.background.Wait()
			if s.closing == nil && s.frozen == nil && s.position != s.covered {
				s.closing = s.checkpoint(context.Background())
			}
		}
		s.closing = errors.Join(s.closing, s.closeDisk())
	})
	return s.closing
}

func (s *Store) closeDisk() (err error) {
	if s.files != nil {
		err = s.files.close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	if s.owned != nil {
		err = errors.Join(err, s.owned.Close())
	}
	return err
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// apply changes the state by a record that lies at p. It is called with mu held.
func (s *Store) apply(r *record, p table.Place) {
	switch r.typ {
	case recordObject, recordLarge:
		s.applyObject(r, p)
	case recordHold:
		s.table.Hold(r.owner, s.known(r.ids)...)
	case recordReplace:
		s.table.Replace(r.owner, s.now(), s.known(r.ids)...)
	case recordRelease:
		s.table.Unhold(r.owner, s.now(), s.known(r.ids)...)
	case recordLease:
		s.table.Replace(r.owner, s.now(), s.known(r.ids)...)
		s.leases[r.owner] = s.after(r.remains)
	case recordRenew:
		if _, ok := s.leases[r.owner]; ok {
			s.leases[r.owner] = s.after(r.remains)
		}
	case recordEnd:
		s.table.Release(r.owner, s.now())
		delete(s.leases, r.owner)
		s.ended.add(r.owner)
	case recordRemoved:
		for _, g := range r.removed {
			if g >= p.Segment {
				continue // no pack tells of its own end, or of a later one's
			}
			delete(s.segments, g)
			if s.removed != nil {
				s.removed[g] = true
			}
		}
	}
}

func (s *Store) applyObject(r *record, p table.Place) {
	p.Size = r.placeSize()
	ref, before := s.table.Put(r.id, p)
	if old := s.segments[before.Segment]; before.Segment != 0 && old != nil {
		old.live -= int64(before.Stored)
		old.objects--
	}
	if before.Segment == 0 {
		s.bytes += r.size
	}
	seg := s.segments[p.Segment]
	seg.live += int64(p.Stored)
	seg.objects++
	delete(s.bad, ref)
	delete(s.lost, r.id)
	if r.typ == recordLarge {
		s.table.SetSize(ref, r.size)
		s.table.Hold(piecesOf(r.id), s.known(r.pieces)...)
	}
}

// known returns the numbers of those ids that are in the table. All are, unless damage took one.
func (s *Store) known(ids []ID) []table.Ref {
	out := make([]table.Ref, 0, len(ids))
	for _, id := range ids {
		if r, ok := s.table.Lookup(table.ID(id)); ok {
			out = append(out, r)
		}
	}
	return out
}

// settle makes a record that is on the disk part of the state. Mu is held.
func (s *Store) settle(p *placed) {
	if p.place.Segment != 0 {
		s.apply(&p.record, p.place)
	}
	if t := p.record.typ; t != recordObject && t != recordLarge {
		return
	}
	if r, ok := s.table.Lookup(table.ID(p.record.id)); ok && !p.copied {
		s.table.Touch(r, s.now())
		if p.pins != nil {
			p.pins.add(r)
		}
	}
}

// maybeCheckpoint begins to write a checkpoint when enough was appended since the last one.
func (s *Store) maybeCheckpoint() {
	if s.appended.Load() < max(s.opts.Checkpoint, s.checkpointSize.Load()) || !s.checkpointing.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.checkpointing.Store(false)
		err := s.checkpoint(s.ending) // without it the next open replays more; the next one is tried after as much again
		if err == nil && s.collecting.TryLock() {
			s.reserve()
			s.collecting.Unlock()
		}
	})
}
