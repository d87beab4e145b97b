package cas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
)

// Collected says what a collection did.
type Collected struct {
	At       time.Time `json:"at"`       // by the wall clock, for people
	Objects  int64     `json:"objects"`  // dropped: nobody held them and their grace had passed
	Bytes    int64     `json:"bytes"`    // given back to the disk
	Segments int       `json:"segments"` // removed
	Waiting  int64     `json:"waiting"`  // objects that nobody holds but whose grace has not passed
}

const (
	// A pack is copied when a quarter of it is dead: at most three bytes are copied for each that is freed.
	deadShare = 4
	// copyBytes is how much is handed to the writer at once: puts that come meanwhile wait for no more than that.
	copyBytes = 256 << 10
	// A pack smaller than this part of a full one is copied together with others, so that many short runs leave few files.
	smallShare = 8
)

// Collect drops objects that nobody holds, that are not being read, and whose grace has passed, and gives the disk back what they took: packs
// in which much is dead are removed after the rest was copied. It runs beside everything else, may be interrupted at any moment by ctx, and
// works on a full disk by means of a reserve. One runs at a time.
//
// Errors: ErrInDoubt, ErrReadOnly, ErrClosed, errors of the disk; what was collected before one stays collected.
func (s *Store) Collect(ctx context.Context) (c Collected, err error) {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	if err := s.mayCollect(); err != nil {
		return c, err
	}
	c.At = time.Now()
	if err := s.secure(ctx); err != nil {
		return c, fmt.Errorf("collect: %w", err)
	}
	if err := s.sweep(ctx, &c); err != nil {
		return c, fmt.Errorf("collect: %w", err)
	}
	err = s.compact(ctx, &c)
	if err != nil && ctx.Err() == nil && s.freeReserve() {
		err = s.compact(ctx, &c)
	}
	s.mu.Lock()
	s.last = c
	s.mu.Unlock()
	if err == nil {
		err = s.checkpoint(ctx)
	}
	if err != nil {
		return c, fmt.Errorf("collect: %w", err)
	}
	s.reserve()
	return c, nil
}

// secure sees to it that the last write before a crash is written again: no checkpoint may be made before.
func (s *Store) secure(ctx context.Context) error {
	err := s.submit(ctx, &write{})
	if err != nil && ctx.Err() == nil && s.freeReserve() {
		err = s.submit(ctx, &write{})
	}
	return err
}

func (s *Store) mayCollect() error {
	if s.writer == nil {
		return ErrReadOnly
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.frozen != nil {
		return s.frozen
	}
	if s.inDoubt != nil {
		return fmt.Errorf("%w: %w", ErrInDoubt, s.inDoubt)
	}
	return nil
}

// step runs f on the writer with mu held.
func (s *Store) step(ctx context.Context, f func()) error {
	return s.submit(ctx, &write{step: f})
}

// sweep drops what is dead, a block of the table at a time. The pieces of a large object become dead with it, so a second pass follows when
// one was dropped.
func (s *Store) sweep(ctx context.Context, c *Collected) error {
	s.checkpoints.Lock() // one that is being written must not see an object under two numbers
	defer s.checkpoints.Unlock()
	for again := true; again; {
		again = false
		c.Waiting = 0
		for n, more := 0, true; more; n++ {
			err := s.step(ctx, func() {
				if more = n < s.table.Blocks(); !more {
					return
				}
				for r := range s.table.Block(n) {
					switch s.fate(r) {
					case dead:
						again = again || s.table.Place(r).Size == table.Large
						s.drop(r)
						c.Objects++
					case waiting:
						c.Waiting++
					}
				}
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

type fate int

const (
	alive fate = iota
	waiting
	dead
)

func (s *Store) fate(r table.Ref) fate {
	if s.table.Held(r) || s.pins[r] > 0 {
		return alive
	}
	if since := s.table.Since(r); since != 0 && s.grace > 0 && s.now()-since <= s.grace {
		return waiting
	}
	return dead
}

// drop forgets an object. Mu is held, and checkpoints, so that none is being written.
func (s *Store) drop(r table.Ref) {
	p := s.table.Place(r)
	s.bytes -= s.table.Size(r)
	if seg := s.segments[p.Segment]; seg != nil {
		seg.live -= int64(p.Stored)
		seg.objects--
	}
	if p.Size == table.Large {
		s.table.Release(piecesOf(ID(s.table.ID(r))), 0)
	}
	delete(s.bad, r)
	s.table.Drop(r)
	s.table.Reuse([]table.Ref{r})
}

// compact removes packs in which much is dead.
func (s *Store) compact(ctx context.Context, c *Collected) error {
	// A checkpoint covers every hold that the packs to be removed tell of. The newest pack is ended first when it is one of them.
	err := s.step(ctx, func() {
		if seg := s.segments[s.writer.segment]; seg != nil && s.worth(seg) {
			_ = s.writer.seal() // it is synced; a file that does not close well is read like any other
		}
	})
	if err != nil {
		return err
	}
	victims := s.victims()
	if len(victims) == 0 {
		return nil
	}
	if err := s.checkpoint(ctx); err != nil {
		return err
	}
	// The older checkpoint would need packs that go now.
	if err := s.checkCheckpoint(); err != nil {
		return err
	}
	if err := s.removeCheckpoints(1); err != nil {
		return err
	}
	for _, g := range victims {
		freed, err := s.evacuate(ctx, g)
		if err != nil {
			return err
		}
		if freed > 0 {
			c.Segments++
			c.Bytes += freed
		}
	}
	return nil
}

func (s *Store) worth(seg *segment) bool {
	return seg.dead() > 0 && seg.dead()*deadShare >= seg.end-segmentHeader
}

// victims chooses the packs to be removed: those from which most is won first, for a disk that is full.
func (s *Store) victims() []uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	open := s.writer.current.Load()
	damaged := map[uint32]bool{}
	for _, g := range s.gaps {
		damaged[g.segment] = true
	}
	for r := range s.bad {
		damaged[s.table.Place(r).Segment] = true
	}
	var out, small []uint32
	for g, seg := range s.segments {
		switch {
		case g == open || damaged[g]:
		case s.worth(seg):
			out = append(out, g)
		case seg.end < s.opts.SegmentSize/smallShare:
			small = append(small, g)
		}
	}
	if len(small) > smallShare {
		out = append(out, small...)
	}
	slices.SortFunc(out, func(a, b uint32) int { return int(s.segments[a].live - s.segments[b].live) })
	return out
}

// evacuate copies the live records of a pack and removes it. It returns the bytes won, 0 when the pack had to stay.
func (s *Store) evacuate(ctx context.Context, g uint32) (int64, error) {
	whole, copied, err := s.copyLive(ctx, g)
	if err != nil || !whole {
		return 0, err
	}
	var size int64
	empty := false
	err = s.step(ctx, func() {
		if seg := s.segments[g]; seg != nil && seg.objects == 0 {
			size, empty = seg.end, true
		}
	})
	if err != nil || !empty {
		return 0, err
	}
	if err := s.submit(ctx, &write{records: []record{{typ: recordRemoved, removed: []uint32{g}}}}); err != nil {
		return 0, err
	}
	s.files.forget(g)
	if err := s.fsys.Remove(segmentPath(g)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return size - copied, nil
}

// copyLive appends the live records of a pack anew. Whole is false when one was found damaged.
func (s *Store) copyLive(ctx context.Context, g uint32) (whole bool, copied int64, err error) {
	whole = true
	var w write
	size := 0
	flush := func() error {
		if len(w.records) == 0 {
			return nil
		}
		next := w
		w, size = write{}, 0
		return s.submit(ctx, &next)
	}
	for _, item := range s.live(g) {
		if err := s.throttle(ctx, int(item.place.Stored)); err != nil {
			return false, copied, err
		}
		rec, err := s.readRecord(item)
		if errors.Is(err, errBytes) || errors.Is(err, fs.ErrNotExist) {
			whole = false
			s.mu.Lock()
			if r, ok := s.table.Lookup(table.ID(item.id)); ok && s.table.Place(r) == item.place {
				s.bad[r] = err.Error()
			}
			s.mu.Unlock()
			continue
		}
		if err != nil {
			return false, copied, err
		}
		w.records, w.from = append(w.records, rec), append(w.from, item.place)
		copied += int64(item.place.Stored)
		if size += int(item.place.Stored); size >= copyBytes {
			if err := flush(); err != nil {
				return false, copied, err
			}
		}
	}
	return whole, copied, flush()
}

// item is an object and its place at some moment.
type item struct {
	id    ID
	place table.Place
	inner bool // only large objects hold it
}

// live lists the objects whose record lies in a pack, by their place in it.
func (s *Store) live(g uint32) []item {
	var out []item
	for n := 0; ; n++ {
		s.mu.RLock()
		if n >= s.table.Blocks() {
			s.mu.RUnlock()
			break
		}
		for r := range s.table.Block(n) {
			if p := s.table.Place(r); p.Segment == g {
				out = append(out, item{ID(s.table.ID(r)), p, s.inner(r)})
			}
		}
		s.mu.RUnlock()
	}
	slices.SortFunc(out, func(a, b item) int { return int(int64(a.place.Offset) - int64(b.place.Offset)) })
	return out
}

func (s *Store) inner(r table.Ref) bool {
	owners := s.table.Owners(r)
	for _, o := range owners {
		if _, large := largeOf(o); !large {
			return false
		}
	}
	return len(owners) > 0
}

// readRecord reads a record as it stands, checked by its checksum.
func (s *Store) readRecord(i item) (record, error) {
	f, err := s.files.use(i.place.Segment)
	if err != nil {
		return record{}, err
	}
	defer s.files.done(f)
	buf := make([]byte, i.place.Stored)
	if n, err := f.ReadAt(buf, int64(i.place.Offset)); n < len(buf) {
		return record{}, errors.Join(errBytes, err)
	}
	fr, ok := frame.Parse(buf, uint64(i.place.Segment), maxPayload)
	if !ok {
		return record{}, errBytes
	}
	rec, err := decode(fr.Type, fr.Version, fr.Payload)
	if err != nil || rec.id != i.id {
		return record{}, errBytes
	}
	return rec, nil
}

const (
	reserveName = "reserve"
	// The reserve is a part of what is stored, up to the most: enough to copy what lives in a mostly dead pack.
	reserveShare = 16
	maxReserve   = 4 << 20
)

// reserve keeps some room of the disk for a collection at a time when there is none. Without success nothing is lost but that. Collecting is
// held: a collection that is using the room must not lose it to this.
func (s *Store) reserve() {
	s.mu.RLock()
	var stored int64
	for _, seg := range s.segments {
		stored += seg.end
	}
	s.mu.RUnlock()
	size := min(stored/reserveShare, maxReserve) &^ (64<<10 - 1)
	var was int64
	if info, err := s.fsys.Stat(reserveName); err == nil {
		was = info.Size()
	}
	if size <= was {
		return
	}
	f, err := s.fsys.OpenFile(reserveName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	if err = f.Preallocate(size); err != nil {
		_ = f.Truncate(was) // there is no more room; what is reserved stays so
	}
	_ = f.Close()
	if err != nil && was == 0 {
		_ = s.fsys.Remove(reserveName)
	}
}

// lent is how much of the reserve a release takes on a full disk: a new pack with the zeros ahead, and some more of them.
const lent = 2 * minAhead

// lendReserve gives a part of the reserve back to the disk; false when there is none.
func (s *Store) lendReserve() bool {
	f, err := s.fsys.OpenFile(reserveName, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Size() >= lent && f.Truncate(info.Size()-lent) == nil
}

func (s *Store) freeReserve() bool { return s.fsys.Remove(reserveName) == nil }
