package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
)

// Progress says how far Verify is, in bytes of records.
type Progress struct{ Done, Total int64 }

// Gap is a part of a pack that was acknowledged and does not check any more, beyond the objects that are named.
type Gap struct {
	Segment    string
	Start, End int64
}

// Verification says what Verify found.
type Verification struct {
	Objects int64
	Bytes   int64 // of objects, uncompressed
	Damaged []*DamageError
	Gaps    []Gap
	Files   []string // damaged files that name no objects: checkpoints
}

// Sound reports whether nothing is damaged.
func (v *Verification) Sound() bool { return len(v.Damaged)+len(v.Gaps)+len(v.Files) == 0 }

// Verify reads everything and checks each object by its id, on all cores, at most at Options.Rate. It changes nothing; what it finds damaged
// is known as such from then on, so that the same bytes may be put again. Progress, when not nil, is called now and then, from one goroutine
// at a time.
//
// Errors: ctx's, errors of the disk other than damage.
func (s *Store) Verify(ctx context.Context, progress func(Progress)) (Verification, error) {
	v := &verification{s: s, progress: progress}
	s.mu.RLock()
	var segments []uint32
	for g, seg := range s.segments {
		segments = append(segments, g)
		v.total += seg.live
	}
	for r := range s.table.All() {
		if s.table.Place(r).Size == table.Large {
			v.total += s.table.Size(r)
		}
	}
	for id, at := range s.lost {
		v.out.Damaged = append(v.out.Damaged, &DamageError{ID: id, Segment: segmentName(at.segment), Offset: at.offset, Reason: "its record does not match its checksum"})
	}
	for _, g := range s.gaps {
		v.out.Gaps = append(v.out.Gaps, Gap{segmentName(g.segment), g.start, g.end})
	}
	v.out.Files = slices.Clone(s.badCheckpoints)
	s.mu.RUnlock()
	slices.Sort(segments)

	err := parallel(ctx, segments, v.segment)
	if err == nil {
		slices.SortFunc(v.large, func(a, b item) int { return strings.Compare(string(a.id[:]), string(b.id[:])) })
		err = parallel(ctx, v.large, v.object)
	}
	slices.SortFunc(v.out.Damaged, func(a, b *DamageError) int { return strings.Compare(string(a.ID[:]), string(b.ID[:])) })
	if err != nil {
		return v.out, fmt.Errorf("verify: %w", err)
	}
	return v.out, nil
}

// parallel calls f for all items on all cores until one fails.
func parallel[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(items)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := f(ctx, items[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

type verification struct {
	s        *Store
	progress func(Progress)

	mu    sync.Mutex
	out   Verification
	done  int64
	total int64
	large []item
}

func (v *verification) count(objects int, bytes, done int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Objects += int64(objects)
	v.out.Bytes += bytes
	v.done += done
	if v.progress != nil {
		v.progress(Progress{v.done, v.total})
	}
}

// verifyRead is what is read at once: the disk's bandwidth, and little memory.
const verifyRead = 2 << 20

// segment verifies the records of a pack one after the other.
func (v *verification) segment(ctx context.Context, g uint32) error {
	items := v.s.live(g)
	if len(items) == 0 {
		return nil
	}
	f, err := v.s.files.use(g)
	if err != nil {
		for _, i := range items {
			if err := v.failed(i, err); err != nil {
				return err
			}
		}
		return nil
	}
	defer v.s.files.done(f)
	last := items[len(items)-1].place
	end := int64(last.Offset) + int64(last.Stored)
	var buf, decoded []byte
	var start int64
	objects, size, read := 0, int64(0), int64(0)
	for _, i := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, n := int64(i.place.Offset), int64(i.place.Stored)
		if from+n > start+int64(len(buf)) || buf == nil {
			v.count(objects, size, read)
			objects, size, read = 0, 0, 0
			want := max(n, min(verifyRead, end-from))
			buf, start = slices.Grow(buf[:0], int(want))[:want], from
			k, err := f.ReadAt(buf, from)
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("read %s: %w", segmentName(g), err)
			}
			buf = buf[:k]
			if err := v.s.throttle(ctx, k); err != nil {
				return err
			}
		}
		objects++
		read += n
		if i.place.Size != table.Large {
			size += int64(i.place.Size)
		}
		record := buf[min(from-start, int64(len(buf))):]
		if err := v.record(i, record[:min(n, int64(len(record)))], &decoded); err != nil {
			if err := v.failed(i, err); err != nil {
				return err
			}
		}
	}
	v.count(objects, size, read)
	return nil
}

// record checks the bytes of a record.
func (v *verification) record(i item, b []byte, decoded *[]byte) error {
	fr, ok := frame.Parse(b, uint64(i.place.Segment), maxPayload)
	if !ok || fr.Len() != int(i.place.Stored) {
		return errBytes
	}
	if i.place.Size == table.Large {
		m, err := decodeManifest(fr.Payload)
		if err != nil || m.id != i.id || !m.verify() {
			return errBytes
		}
		v.mu.Lock()
		v.large = append(v.large, i)
		v.mu.Unlock()
		return nil
	}
	if i.inner {
		return nil // its bytes are verified with the object that it is a piece of
	}
	data, err := unpack(fr.Payload, *decoded)
	if err == nil && len(fr.Payload) != objectHead+len(data) {
		*decoded = data
	}
	if err == nil && (len(data) != int(i.place.Size) || Sum(data) != i.id) {
		err = errBytes
	}
	return err
}

// object verifies the bytes of a large object by reading it.
func (v *verification) object(ctx context.Context, i item) error {
	o, err := v.s.Open(ctx, i.id)
	if err == nil {
		defer o.Close()
		_, err = o.WriteTo(&counted{ctx: ctx, v: v})
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return v.failed(i, err)
	}
	return nil
}

type counted struct {
	ctx context.Context
	v   *verification
}

func (c *counted) Write(p []byte) (int, error) {
	if err := c.v.s.throttle(c.ctx, len(p)); err != nil {
		return 0, err
	}
	c.v.count(0, int64(len(p)), int64(len(p)))
	return len(p), nil
}

// failed notes a damaged object, unless it was collected or moved meanwhile. Errors that are no damage are returned.
func (v *verification) failed(i item, err error) error {
	var damage *DamageError
	if !errors.As(err, &damage) {
		if errors.Is(err, ErrNotFound) {
			return nil // collected
		}
		if !errors.Is(err, errBytes) && !errors.Is(err, errRecord) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		v.s.mu.Lock()
		r, ok := v.s.table.Lookup(table.ID(i.id))
		if ok && v.s.table.Place(r) == i.place {
			errors.As(v.s.condemn(r, err), &damage)
		}
		v.s.mu.Unlock()
		if damage == nil {
			return nil
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Damaged = append(v.out.Damaged, damage)
	return nil
}

// throttle waits until n more bytes may be read.
func (s *Store) throttle(ctx context.Context, n int) error {
	if s.limiter == nil {
		return ctx.Err()
	}
	for n > 0 {
		k := min(n, s.limiter.Burst())
		if err := s.limiter.WaitN(ctx, k); err != nil {
			return err
		}
		n -= k
	}
	return nil
}
