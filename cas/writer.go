package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
	"github.com/repa-app/repa/cas/vfs"
)

const (
	// queueLimit bounds the writes that wait; further callers wait until there is room or their context ends.
	queueLimit = 1024
	// groupBytes bounds one write to the disk, so that a long queue does not build one buffer of any size.
	groupBytes = 2 << 20
	// unsyncedBytes is after how much a batch's records are synced although nobody asked for it yet: the disk works while more comes.
	unsyncedBytes = 32 << 20
	// A small write is followed by zeros, which cost little in the same sync and make the next ones cheaper: an overwrite of written bytes
	// changes no metadata of the file. As much as is there already, within these bounds.
	minAhead, maxAhead = 64 << 10, 1 << 20
	smallWrite         = 128 << 10
	// gather waits for no more than this part of a sync, and a slow disk does not make it wait longer than this.
	waitShare   = 4
	longestSync = 4 * time.Millisecond
	// So many writes are no longer waited for: they are worth a sync of their own, during which others get ready.
	waitWrites = 48
)

// write is what a caller asks of the writer: records that become durable together.
type write struct {
	records []record
	pins    *pins         // receives the objects of the records, when not nil
	from    []table.Place // where each record lies: only what still does is copied
	lazy    *lazily       // answered before it is synced; a failure is noted here
	step    func()        // called with mu held, when nothing is unsettled, instead of records
	again   bool          // also what is in the table
	done    chan error
}

// lazily is a series of writes of which only the last is waited for.
type lazily struct {
	mu  sync.Mutex
	err error
}

func (l *lazily) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *lazily) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// writer is the one goroutine that appends to packs and changes the state. It takes everything that waits, writes it at once and syncs once.
type writer struct {
	s     *Store
	queue chan *write
	quit  chan struct{}
	ended chan struct{}

	current   atomic.Uint32 // generation of the pack that is appended to; 0: none is
	file      vfs.File      // of the newest pack; nil: the next write opens or makes one
	segment   uint32
	made      uint32 // the highest generation ever used
	offset    int64  // where the next record goes
	synced    int64
	zeroed    int64 // up to here the file has written bytes
	continued bool  // the newest pack may be continued
	redo      []redo

	group    []*write
	expected int           // writes in the last group
	syncTime time.Duration // of the last sync

	buf      []byte
	placed   []placed           // written, not yet synced
	pending  map[ID]table.Place // objects among them
	unsynced []*write           // answered when placed is synced, or lazy
}

type placed struct {
	record record
	place  table.Place
	pins   *pins
	copied bool // by collection: nobody asked for it
}

func newWriter(s *Store, t tail) *writer {
	w := &writer{s: s, queue: make(chan *write, queueLimit), quit: make(chan struct{}), ended: make(chan struct{}), pending: map[ID]table.Place{},
		made: t.made, segment: t.newest, continued: t.clean && t.newest != 0}
	if w.continued {
		w.current.Store(w.segment)
	}
	if seg := s.segments[t.newest]; seg != nil {
		if len(t.redo) > 0 && !t.clean {
			seg.end, w.redo, s.unsecured = t.last, t.redo, true
		}
		w.offset, w.synced = seg.end, seg.end
	}
	if s.frozen == nil {
		_ = w.again() // tried once more before the next write, which reports it
	}
	go w.run()
	return w
}

// again writes the last write before a crash once more, in a new pack. What is in the machine's memory of the old one may never have
// reached the disk, and a sync of it would not say so. The new pack gets its name when the write in it is synced: from then on
// the old one ends before that write.
func (w *writer) again() error {
	if len(w.redo) == 0 {
		return nil
	}
	all := &write{again: true}
	for _, r := range w.redo {
		rec, err := decode(r.typ, r.version, r.payload)
		if err != nil {
			return err
		}
		rec.payload = r.payload
		all.records = append(all.records, rec)
	}
	segment, offset := w.segment, w.offset
	if err := w.rewrite(all); err != nil {
		w.file, w.segment, w.offset, w.synced = nil, segment, offset, offset
		w.discard()
		return fmt.Errorf("secure the last write before the crash: %w", err)
	}
	w.redo, w.file, w.continued = nil, nil, true
	w.current.Store(w.segment)
	w.s.mu.Lock()
	w.s.unsecured = false
	w.s.mu.Unlock()
	w.settle(nil)
	return nil
}

// rewrite makes a pack that begins with a write, and gives it its name last.
func (w *writer) rewrite(all *write) (err error) {
	if w.made == math.MaxUint32 {
		return errNumbers
	}
	w.made++
	g, fsys := w.made, w.s.fsys
	name := segmentPath(g)
	temporary := name + temporarySuffix
	f, err := fsys.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(head{g, w.segment, w.offset}.encode(), 0)
	w.file, w.segment, w.offset, w.synced, w.zeroed = f, g, segmentHeader, segmentHeader, segmentHeader
	if err == nil {
		err = w.frames(all)
	}
	if err == nil {
		err = w.flush(true)
	}
	if err == nil {
		err = w.sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fsys.Remove(temporary))
	}
	if err := fsys.Rename(temporary, name); err != nil {
		return errors.Join(err, fsys.Remove(temporary))
	}
	if err := fsys.SyncDir(packsDir); err != nil {
		return errors.Join(err, fsys.Remove(name))
	}
	w.s.mu.Lock()
	w.s.segments[g] = &segment{end: segmentHeader}
	w.s.mu.Unlock()
	return nil
}

// submit hands a write to the writer and waits for its end.
func (s *Store) submit(ctx context.Context, w *write) error {
	if s.writer == nil {
		return ErrReadOnly
	}
	w.done = make(chan error, 1)
	select {
	case <-s.closed:
		return ErrClosed
	default:
	}
	select {
	case s.writer.queue <- w:
	case <-s.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.writer.ended:
		select { // the writer may have answered just before it ended
		case err := <-w.done:
			return err
		default:
			return ErrClosed
		}
	}
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		select {
		case first := <-w.queue:
			w.commit(w.gather(first))
		case <-w.quit:
			for {
				select {
				case first := <-w.queue:
					w.commit(w.gather(first))
				default:
					return
				}
			}
		}
	}
}

// gather takes what else waits. Callers who were answered together come again together: as many as last time are waited for, for a
// fraction of what a sync takes, so that they share one again.
func (w *writer) gather(first *write) []*write {
	group, size := append(w.group[:0], first), first.bytes()
	enough := min(w.expected-1, waitWrites)
	for until := time.Now().Add(w.syncTime / waitShare); len(w.queue) < enough && time.Now().Before(until); {
		runtime.Gosched()
	}
	defer func() { w.group, w.expected = group, len(group) }()
	for size < groupBytes {
		select {
		case next := <-w.queue:
			group, size = append(group, next), size+next.bytes()
		default:
			return group
		}
	}
	return group
}

func (w *write) bytes() (n int) {
	for i := range w.records {
		n += frame.Size + len(w.records[i].payload)
	}
	return n
}

// stop ends the writer when everything that was accepted is on the disk.
func (w *writer) stop() error {
	close(w.quit)
	<-w.ended
	err := w.sync()
	w.settle(err)
	return errors.Join(err, w.seal())
}

// commit handles a group.
func (w *writer) commit(group []*write) {
	w.buf = w.buf[:0]
	ask := false
	for _, wr := range group {
		if wr.step != nil {
			w.takeStep(wr)
			continue
		}
		if err := w.take(wr); err != nil {
			if wr.lazy != nil {
				wr.lazy.fail(err)
			}
			wr.done <- err
			continue
		}
		w.unsynced = append(w.unsynced, wr)
		ask = ask || wr.lazy == nil
	}
	if err := w.flush(ask); err != nil {
		w.settle(err)
		return
	}
	if ask || w.offset-w.synced >= unsyncedBytes {
		w.settle(w.sync())
		return
	}
	for _, wr := range w.unsynced {
		select {
		case wr.done <- nil:
		default: // answered before
		}
	}
}

// take appends the records of a write to the buffer.
func (w *writer) take(wr *write) error {
	if w.s.frozen != nil {
		return w.s.frozen
	}
	if err := w.again(); err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	return w.frames(wr)
}

// takeStep lets a step see, and change, a state in which nothing is under way: what a write counts on is not taken from it.
func (w *writer) takeStep(wr *write) {
	err := w.flush(true)
	if err == nil {
		err = w.sync()
	}
	w.settle(err)
	w.s.mu.Lock()
	wr.step()
	w.s.mu.Unlock()
	wr.done <- nil
}

// frames appends the records of a write to the buffer. All or none.
func (w *writer) frames(wr *write) error {
	mark, was := len(w.buf), len(w.placed)
	for i := range wr.records {
		if err := w.frame(i, wr); err != nil {
			for _, p := range w.placed[was:] {
				if p.place.Segment != 0 && (p.record.typ == recordObject || p.record.typ == recordLarge) {
					delete(w.pending, p.record.id)
				}
			}
			w.buf, w.placed = w.buf[:mark], w.placed[:was]
			return err
		}
	}
	return nil
}

func (w *writer) frame(i int, wr *write) error {
	r := &wr.records[i]
	p := placed{record: *r, pins: wr.pins, copied: wr.from != nil}
	switch r.typ {
	case recordObject, recordLarge:
		if !wr.again && wr.from == nil && w.has(r.id) {
			p.record.payload, p.record.buf = nil, nil
			w.placed = append(w.placed, p) // for its pins, and the touch
			return nil
		}
		if wr.from != nil && !w.lies(r.id, wr.from[i]) {
			return nil
		}
		for _, id := range r.pieces {
			if !wr.again && wr.from == nil && !w.has(id) {
				return fmt.Errorf("piece %s of %s: %w", id, r.id, ErrNotFound)
			}
		}
	case recordHold, recordReplace, recordLease:
		if !wr.again {
			for _, id := range r.ids {
				if !w.has(id) {
					return fmt.Errorf("hold %s for %s: %w", id, r.owner, ErrNotFound)
				}
			}
		}
	}
	if (r.typ == recordLease || r.typ == recordRenew) && !wr.again {
		if err := w.leaseState(r); err != nil {
			return err
		}
	}
	payload := r.encode()
	if len(payload) > maxPayload {
		return fmt.Errorf("record of %d bytes is over the limit of %d", len(payload), maxPayload)
	}
	var flags byte
	if len(w.buf) == 0 && w.offset == w.synced {
		flags = frame.First
	}
	at := len(w.buf)
	w.buf = frame.Append(w.buf, uint64(w.segment), r.typ, recordVersion, flags, payload)
	p.place = table.Place{Segment: w.segment, Offset: uint32(w.offset) + uint32(at), Stored: uint32(len(w.buf) - at), Size: r.placeSize()}
	p.record.payload, p.record.buf = nil, nil
	w.placed = append(w.placed, p)
	if r.buf != nil {
		giveBack(r.buf)
	}
	r.payload, r.buf = nil, nil
	if r.typ == recordObject || r.typ == recordLarge {
		w.pending[r.id] = p.place
	}
	return nil
}

// has reports whether an object is in the table, or will be when what was written is synced.
func (w *writer) has(id ID) bool {
	if _, ok := w.pending[id]; ok {
		return true
	}
	w.s.mu.RLock()
	defer w.s.mu.RUnlock()
	_, ok := w.s.find(id)
	return ok
}

func (w *writer) lies(id ID, at table.Place) bool {
	w.s.mu.RLock()
	defer w.s.mu.RUnlock()
	r, ok := w.s.table.Lookup(table.ID(id))
	return ok && w.s.table.Place(r) == at
}

// flush writes the buffer, and zeros behind it when a caller waits for a small write.
func (w *writer) flush(ask bool) error {
	n := int64(len(w.buf))
	if n == 0 {
		return nil
	}
	if w.offset+n > w.zeroed {
		if ask && n < smallWrite {
			w.buf = append(w.buf, make([]byte, min(maxAhead, max(minAhead, w.offset)))...)
		}
	}
	k, err := w.file.WriteAt(w.buf, w.offset)
	if int64(k) < n { // zeros for which there is no room are not missed
		return fmt.Errorf("write %s: %w", segmentName(w.segment), cmp.Or(err, io.ErrShortWrite))
	}
	w.zeroed = max(w.zeroed, w.offset+int64(k))
	w.offset += n
	if w.buf = w.buf[:0]; cap(w.buf) > 3*groupBytes {
		w.buf = nil // one large record should not cost its size for ever
	}
	return nil
}

func (w *writer) sync() error {
	if w.file == nil || w.offset == w.synced {
		return nil
	}
	start := time.Now()
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", segmentName(w.segment), err)
	}
	w.syncTime = min(time.Since(start), longestSync)
	return nil
}

// settle makes what was written part of the state, or none of it, and answers everybody who waits.
func (w *writer) settle(err error) {
	if err == nil {
		w.s.mu.Lock()
		for i := range w.placed {
			w.s.settle(&w.placed[i])
		}
		w.s.appended.Add(w.offset - w.synced)
		w.synced = w.offset
		if seg := w.s.segments[w.segment]; seg != nil {
			seg.end = w.synced
			w.s.position = position{w.segment, w.synced}
		}
		w.s.mu.Unlock()
	} else {
		w.abandon()
	}
	for _, wr := range w.unsynced {
		if err != nil && wr.lazy != nil {
			wr.lazy.fail(err)
		}
		select {
		case wr.done <- err:
		default: // a lazy one, answered before
		}
	}
	w.discard()
	if err == nil {
		w.s.maybeCheckpoint()
	}
}

// discard forgets what is settled, or given up.
func (w *writer) discard() {
	w.buf = w.buf[:0]
	clear(w.placed)
	clear(w.unsynced)
	w.placed, w.unsynced = w.placed[:0], w.unsynced[:0]
	clear(w.pending)
}

// abandon gives up the newest pack behind what was synced: what a failed write or sync left there is unknown, and a later sync that
// succeeds would say nothing about it. The next pack notes where this one ends.
func (w *writer) abandon() {
	if w.file != nil {
		_ = w.file.Truncate(w.synced) // gives the room back, if it can
		_ = w.file.Close()            // nothing in it is waited for
	}
	w.file, w.continued = nil, false
	w.current.Store(0)
	w.offset = w.synced
}

// open makes the newest pack ready for the next record, or begins a new one.
func (w *writer) open() (err error) {
	if w.file != nil && w.offset < w.s.opts.SegmentSize {
		return nil
	}
	if w.file != nil {
		// What the next pack says about the end of this one must be true on the disk first.
		err := w.flush(false)
		if err == nil {
			err = w.sync()
		}
		if w.settle(err); err == nil {
			err = w.seal()
		}
		if err != nil {
			return err
		}
	}
	if w.continued && w.offset < w.s.opts.SegmentSize {
		if w.file, err = w.s.fsys.OpenFile(segmentPath(w.segment), os.O_RDWR, 0); err != nil {
			return err
		}
		w.zeroed = w.offset
		w.current.Store(w.segment)
		return nil
	}
	return w.begin()
}

// seal ends the newest pack; everything in it is settled.
func (w *writer) seal() (err error) {
	if w.file != nil {
		err = errors.Join(w.file.Truncate(w.offset), w.file.Close()) // without the zeros ahead
	}
	w.file, w.continued = nil, false
	w.current.Store(0)
	return err
}

var errNumbers = errors.New("the store has used every number of a pack")

// begin makes a new pack.
func (w *writer) begin() error {
	if w.made == math.MaxUint32 {
		return errNumbers
	}
	w.made++
	g := w.made
	f, err := w.s.fsys.OpenFile(segmentPath(g), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(head{g, w.segment, w.offset}.encode(), 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = w.s.fsys.SyncDir(packsDir)
	}
	if err == nil && w.segment == 0 {
		err = w.s.syncFolders()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("begin %s: %w", segmentName(g), err), f.Close(), w.s.fsys.Remove(segmentPath(g)))
	}
	w.s.mu.Lock()
	w.s.segments[g] = &segment{end: segmentHeader}
	w.s.mu.Unlock()
	w.file, w.segment = f, g
	w.current.Store(g)
	w.offset, w.synced, w.zeroed = segmentHeader, segmentHeader, segmentHeader
	return nil
}
