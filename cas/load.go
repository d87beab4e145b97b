package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
)

// tail is what the writer must know of the newest pack.
type tail struct {
	newest uint32 // generation; 0: none
	made   uint32 // the highest generation of which a file was found
	head   head   // of the newest; zero when it is damaged
	clean  bool   // a checkpoint covers everything in it and nothing is behind that, so that it may be continued
	torn   bool   // bytes of a write that did not come to its end are behind it
	// last is where the last write in it begins, when it is not clean. What was written before had been synced when that write began; of
	// the last write itself nobody knows, also when it reads well, because it may stand in the machine's memory alone. It is written again.
	last int64
	redo []redo
}

type redo struct {
	typ, version byte
	payload      []byte
}

// load reads the newest checkpoint that is intact and replays what was appended after it.
func (s *Store) load(ctx context.Context) (tail, error) {
	generations, err := packs(s.fsys)
	if err != nil {
		if s.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
			return tail{}, nil // a store that was never written
		}
		return tail{}, err
	}
	if err := s.loadCheckpoint(ctx); err != nil {
		return tail{}, err
	}
	from := s.covered
	for g := range s.segments {
		if _, found := slices.BinarySearch(generations, g); !found {
			s.gaps = append(s.gaps, gap{g, 0, s.segments[g].end}) // unless the tail says that it was removed
		}
	}
	after := slices.DeleteFunc(slices.Clone(generations), func(g uint32) bool { return g < from.segment })
	t, err := s.replay(ctx, after, from)
	if err != nil {
		return tail{}, err
	}
	s.gaps = slices.DeleteFunc(s.gaps, func(g gap) bool { return g.start == 0 && s.segments[g.segment] == nil })
	if len(s.removed) > 0 && from.segment == 0 {
		s.inDoubt = errors.New("there is no intact checkpoint, and packs that may have named holds were removed")
	}
	if len(s.removed) > 0 {
		s.dropFromRemoved()
	}
	s.removed = nil
	s.markGone(generations)
	if len(generations) > 0 {
		t.made = generations[len(generations)-1]
	}
	if !s.opts.ReadOnly {
		for _, g := range generations {
			// Either the crash came between the record of its removal and the removal, or its creation did not come to its end.
			if s.segments[g] == nil {
				if err := s.fsys.Remove(segmentPath(g)); err != nil {
					return tail{}, err
				}
			}
		}
		if !t.clean {
			return t, s.finish(t)
		}
	}
	return t, nil
}

// finish makes the newest pack's header and name durable: whoever began it may have been killed before it did. The bytes are written
// again, because a sync says nothing of those that an earlier one failed to write.
func (s *Store) finish(t tail) error {
	if t.head.generation == t.newest {
		f, err := s.fsys.OpenFile(segmentPath(t.newest), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if _, err = f.WriteAt(t.head.encode(), 0); err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("finish %s: %w", segmentName(t.newest), err)
		}
	}
	if err := s.fsys.SyncDir(packsDir); err != nil || s.covered.segment != 0 {
		return err
	}
	return s.syncFolders()
}

// markGone notes the objects whose pack is not there, so that the same bytes may be put again before anybody reads them.
func (s *Store) markGone(generations []uint32) {
	gone := map[uint32]bool{}
	for g, seg := range s.segments {
		if _, found := slices.BinarySearch(generations, g); !found && seg.objects > 0 {
			gone[g] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	for r := range s.table.All() {
		if gone[s.table.Place(r).Segment] {
			s.bad[r] = reasonGone
		}
	}
}

// dropFromRemoved forgets objects whose record was in a segment that was removed: nobody held them, or the segment would have stayed.
func (s *Store) dropFromRemoved() {
	var gone []table.Ref
	for r := range s.table.All() {
		if s.segments[s.table.Place(r).Segment] == nil {
			gone = append(gone, r)
		}
	}
	for _, r := range gone {
		if s.table.Held(r) { // only a damaged log says so
			s.lost[ID(s.table.ID(r))] = lostObject{segment: s.table.Place(r).Segment}
			s.inDoubt = errors.New("an object that is held was in a pack that was removed")
		}
		s.bytes -= s.table.Size(r)
		s.table.Release(piecesOf(ID(s.table.ID(r))), 0)
	}
	for _, r := range gone {
		if !s.table.Held(r) {
			s.table.Drop(r)
			s.table.Reuse([]table.Ref{r})
		}
	}
}

// replay reads the packs from a position on.
func (s *Store) replay(ctx context.Context, generations []uint32, from position) (t tail, err error) {
	var missing []uint32 // packs that others follow and whose file is gone
	heads := map[uint32]head{}
	ends := map[uint32]int64{}
	for i, g := range generations {
		h, err := s.readHead(g)
		if errors.Is(err, errHeader) {
			if err = s.badHead(g, i == len(generations)-1); err == nil {
				continue
			}
		}
		if err != nil {
			return tail{}, err
		}
		heads[g] = h
		if h.previous != 0 {
			ends[h.previous] = h.end
			if _, found := slices.BinarySearch(generations, h.previous); !found && h.previous >= from.segment {
				missing = append(missing, h.previous)
			}
		}
	}
	t.clean = true
	for _, g := range generations {
		if ctx.Err() != nil {
			return tail{}, ctx.Err()
		}
		if _, ok := heads[g]; !ok && s.segments[g] == nil {
			continue // made by a creation that did not come to its end
		}
		t.newest, t.head = g, heads[g]
	}
	for _, g := range generations {
		if g > t.newest {
			break
		}
		start := int64(segmentHeader)
		if g == from.segment {
			start = from.offset
		}
		if s.segments[g] == nil {
			s.segments[g] = &segment{end: start}
		}
		end, sealed := ends[g]
		if !sealed && g != t.newest {
			end, sealed = s.segments[g].end, s.covered.segment > g
		}
		if err := s.replaySegment(g, start, end, sealed, &t); err != nil {
			return tail{}, fmt.Errorf("replay %s: %w", segmentName(g), err)
		}
	}
	for _, g := range missing {
		if s.removed[g] {
			continue
		}
		s.inDoubt = fmt.Errorf("%s is gone", segmentName(g))
		if s.segments[g] == nil {
			s.gaps = append(s.gaps, gap{g, 0, ends[g]})
			s.segments[g] = &segment{end: ends[g]}
		}
	}
	if seg := s.segments[t.newest]; seg != nil {
		s.position = position{t.newest, seg.end}
		t.clean = s.position == s.covered && !t.torn
	}
	return t, nil
}

func (s *Store) readHead(g uint32) (head, error) {
	f, err := s.files.use(g)
	if err != nil {
		return head{}, err
	}
	defer s.files.done(f)
	b := make([]byte, segmentHeader)
	if n, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return head{}, err
	} else if h, err := decodeHead(b[:n], g); err != nil {
		return head{}, err
	} else {
		return h, nil
	}
}

// badHead decides about a pack whose header is not intact. When nothing is behind it, its creation did not come to its end and nothing
// in it was acknowledged; otherwise its records are read, and the header is reported.
func (s *Store) badHead(g uint32, newest bool) error {
	f, err := s.files.use(g)
	if err != nil {
		return err
	}
	defer s.files.done(f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := newScanner(f, uint64(g), 0, info.Size()).search(info.Size(), func(frame.Frame) bool { return true })
	if err != nil {
		return err
	}
	if at < 0 && s.segments[g] == nil {
		if info.Size() <= segmentHeader { // a header is synced before anything is written behind it
			return nil
		}
		s.inDoubt = fmt.Errorf("nothing in %s is intact", segmentName(g))
	}
	if s.segments[g] == nil {
		s.segments[g] = &segment{end: segmentHeader}
	}
	s.gaps = append(s.gaps, gap{g, 0, segmentHeader})
	return nil
}

// replaySegment applies the records of a segment from start on. Sealed says that it ends at end; otherwise the end is looked for.
func (s *Store) replaySegment(g uint32, start, end int64, sealed bool, t *tail) error {
	f, err := s.files.use(g)
	if err != nil {
		return err
	}
	defer s.files.done(f)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !sealed {
		end = info.Size()
	}
	seg := s.segments[g]
	sc := newScanner(f, uint64(g), start, info.Size())
	for sc.at < end {
		sp, ok, err := sc.next()
		if err != nil {
			return err
		}
		if !ok {
			more, err := s.skipDamage(sc, seg, g, end, sealed)
			if err != nil {
				return err
			}
			if !more {
				t.torn, err = sc.anything(end)
				return err
			}
			continue
		}
		if g == t.newest {
			if sp.Flags&frame.First != 0 || t.redo == nil {
				t.last, t.redo = sp.offset, nil
			}
			t.redo = append(t.redo, redo{sp.Type, sp.Version, slices.Clone(sp.Payload)})
		}
		seg.end = sc.at
		s.replayFrame(g, sp)
	}
	return nil
}

func (s *Store) replayFrame(g uint32, sp span) {
	r, err := decode(sp.Type, sp.Version, sp.Payload)
	if err != nil {
		// Intact, but not understood: a newer version wrote it. It is kept, and nothing is written over it.
		s.frozen = fmt.Errorf("%w: %s at byte %d: %w", ErrReadOnly, segmentName(g), sp.offset, err)
		return
	}
	s.apply(&r, table.Place{Segment: g, Offset: uint32(sp.offset), Stored: uint32(sp.Len())})
}

// skipDamage is called where no frame is intact. It returns false when the segment ends there: what follows was never acknowledged.
func (s *Store) skipDamage(sc *scanner, seg *segment, g uint32, end int64, sealed bool) (more bool, err error) {
	bad := sc.at
	if !sealed {
		synced, err := sc.search(end, frame.BeginsWrite)
		if err != nil || synced < 0 {
			return false, err
		}
	}
	next, err := sc.search(end, func(frame.Frame) bool { return true })
	if err != nil {
		return false, err
	}
	if next < 0 {
		next = end
	}
	s.gaps = append(s.gaps, gap{g, bad, next})
	s.inDoubt = fmt.Errorf("%s is damaged from byte %d to %d", segmentName(g), bad, next)
	// The head of the record may still say which object it was.
	sc.moveTo(bad)
	if data, err := sc.fill(frame.Size + objectHead); err == nil && len(data) == frame.Size+objectHead && data[4] == recordObject {
		if id := ID(data[frame.Size:][:IDSize]); !id.IsZero() {
			s.lost[id] = lostObject{g, bad}
		}
	}
	seg.end = next
	sc.moveTo(next)
	return true, nil
}
