package cas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/repa-app/repa/cas/internal/cut"
	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/squeeze"
	"github.com/repa-app/repa/cas/internal/tree"
	"github.com/repa-app/repa/cas/vfs"
)

// pieceMax is the largest object in one record; a larger one is cut into pieces.
const pieceMax = cut.Max

// Put stores data and returns its id when it is durable. What is in the store already costs no write. The object stays for the grace
// period, and as long as it is held.
//
// Errors: ErrReadOnly, ErrClosed, errors of the disk; after one nothing of data is promised, and the same call may be tried again.
func (s *Store) Put(ctx context.Context, data []byte) (ID, error) {
	if len(data) > pieceMax {
		return s.PutReader(ctx, bytes.NewReader(data))
	}
	id := Sum(data)
	if s.Has(id) {
		return id, ctx.Err()
	}
	if err := s.submit(ctx, &write{records: []record{pack(id, data)}}); err != nil {
		return ID{}, fmt.Errorf("put %s: %w", id, err)
	}
	return id, nil
}

// PutHeld stores objects and holds them for an owner, all or none: they and their holds become durable with one sync.
//
// Errors: as Put.
func (s *Store) PutHeld(ctx context.Context, owner Owner, objects ...[]byte) ([]ID, error) {
	b := s.Batch()
	defer b.Discard()
	ids := make([]ID, len(objects))
	for i, data := range objects {
		var err error
		if ids[i], err = b.Put(ctx, data); err != nil {
			return nil, err
		}
	}
	if err := b.CommitHeld(ctx, owner); err != nil {
		return nil, err
	}
	return ids, nil
}

// PutReader stores what r gives, of any length, in constant memory. Errors: as Put, and those of r.
func (s *Store) PutReader(ctx context.Context, r io.Reader) (ID, error) {
	b := s.Batch()
	defer b.Discard()
	id, err := b.PutReader(ctx, r)
	if err != nil {
		return ID{}, err
	}
	return id, b.Commit(ctx)
}

// Import stores a file. Errors: as PutReader.
func (s *Store) Import(ctx context.Context, fsys vfs.FS, name string) (ID, error) {
	b := s.Batch()
	defer b.Discard()
	id, err := b.Import(ctx, fsys, name)
	if err != nil {
		return ID{}, err
	}
	return id, b.Commit(ctx)
}

// buffers are payloads on their way to the writer, which gives them back, and other memory that is needed for a moment: fresh memory
// costs more than a copy. Buffer k has room for 1<<k bytes, so that what comes back fits the next one who asks.
var buffers [largestBuffer + 1]sync.Pool

const (
	smallestBuffer = 12 // as a power of two, in bytes
	largestBuffer  = 21 // more is not kept
)

// buffer returns an empty buffer with room for n bytes.
func buffer(n int) *[]byte {
	k := max(bits.Len(uint(max(n, 1)-1)), smallestBuffer)
	if k > largestBuffer {
		b := make([]byte, 0, n)
		return &b
	}
	if b, _ := buffers[k].Get().(*[]byte); b != nil {
		*b = (*b)[:0]
		return b
	}
	b := make([]byte, 0, 1<<k)
	return &b
}

// giveBack keeps a buffer for later.
func giveBack(b *[]byte) {
	if k := bits.Len(uint(cap(*b))) - 1; k >= smallestBuffer && k <= largestBuffer {
		buffers[k].Put(b)
	}
}

// pack makes the record of an object. The writer takes its payload.
func pack(id ID, data []byte) record {
	buf := buffer(objectHead + len(data))
	payload, ok := squeeze.Encode(appendObjectHead(*buf, id, len(data), encodingZstd), data)
	if !ok {
		payload = append(payload, data...)
		payload[IDSize+4] = encodingRaw
	}
	*buf = payload
	return record{typ: recordObject, id: id, size: int64(len(data)), payload: payload, buf: buf}
}

// repack makes the record of an object whose bytes stand raw in buf, behind room for the head.
func repack(id ID, raw *[]byte) record {
	r := record{typ: recordObject, id: id, size: int64(len(*raw) - objectHead)}
	buf := buffer(len(*raw))
	payload, ok := squeeze.Encode(appendObjectHead(*buf, id, int(r.size), encodingZstd), (*raw)[objectHead:])
	*buf = payload
	if !ok {
		appendObjectHead((*raw)[:0], id, int(r.size), encodingRaw)
		buf, raw = raw, buf
	}
	giveBack(raw)
	r.payload, r.buf = *buf, buf
	return r
}

// Batch stores many objects with one sync at the end. Until Commit nothing of it can be read or is promised. Its puts may come from any
// number of goroutines; Commit and Discard from one, after they returned. Memory is bounded whatever is put.
type Batch struct {
	s       *Store
	pins    *pins
	lazy    lazily
	packers sync.WaitGroup
	slots   chan struct{} // one for each object that is being compressed

	mu    sync.Mutex
	chunk []record
	size  int
	ids   []ID
	ended bool
}

// chunkBytes is how much of a batch goes to the writer at once.
const chunkBytes = 512 << 10

// Batch begins a batch. Discard must follow, after Commit too.
func (s *Store) Batch() *Batch {
	return &Batch{s: s, pins: &pins{s: s}, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Put adds an object. The caller may use data again at once.
//
// Errors: as Store.Put; one of an earlier put may be returned here or by Commit.
func (b *Batch) Put(ctx context.Context, data []byte) (ID, error) {
	if len(data) > pieceMax {
		return b.PutReader(ctx, bytes.NewReader(data))
	}
	id := Sum(data)
	return id, b.took(id, b.put(ctx, id, data, nil))
}

// took notes an object that the batch is to hold.
func (b *Batch) took(id ID, err error) error {
	if err == nil {
		b.mu.Lock()
		b.ids = append(b.ids, id)
		b.mu.Unlock()
	}
	return err
}

// put adds an object of one record. It is compressed in another goroutine, which tells done.
func (b *Batch) put(ctx context.Context, id ID, data []byte, done *sync.WaitGroup) error {
	if err := b.lazy.failure(); err != nil {
		return fmt.Errorf("put %s: %w", id, err)
	}
	if b.pin(id) {
		return ctx.Err()
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	raw := buffer(objectHead + len(data))
	*raw = append((*raw)[:objectHead], data...)
	if done != nil {
		done.Add(1)
	}
	b.packers.Go(func() {
		b.add(ctx, repack(id, raw))
		<-b.slots
		if done != nil {
			done.Done()
		}
	})
	return nil
}

// pin reports whether an object is in the store, and keeps it there.
func (b *Batch) pin(id ID) bool {
	b.s.mu.RLock()
	_, ok := b.s.find(id)
	b.s.mu.RUnlock()
	if !ok {
		return false
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	r, ok := b.s.find(id)
	if ok {
		b.pins.add(r)
	}
	return ok
}

// add appends a record to the batch. A failure is kept for the next call.
func (b *Batch) add(ctx context.Context, r record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chunk, b.size = append(b.chunk, r), b.size+len(r.payload)+frame.Size
	if b.size < chunkBytes {
		return
	}
	// With mu held: chunks reach the writer in order, so that the list of an object's pieces comes after them.
	err := b.s.submit(ctx, &write{records: b.chunk, pins: b.pins, lazy: &b.lazy})
	if err != nil {
		b.lazy.fail(err)
	}
	b.chunk, b.size = nil, 0
}

// PutReader adds what r gives, of any length.
func (b *Batch) PutReader(ctx context.Context, r io.Reader) (ID, error) {
	mem := buffer(cutBuffer)
	defer giveBack(mem)
	c := &cutter{r: r, buf: (*mem)[:cutBuffer]}
	if err := c.fill(pieceMax + 1); err != nil {
		return ID{}, fmt.Errorf("put: %w", err)
	}
	if len(c.rest) <= pieceMax {
		return b.Put(ctx, c.rest)
	}
	id, err := b.putLarge(ctx, c)
	return id, b.took(id, err)
}

// Import adds a file.
func (b *Batch) Import(ctx context.Context, fsys vfs.FS, name string) (ID, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return ID{}, err
	}
	defer f.Close()
	return b.PutReader(ctx, f)
}

func (b *Batch) putLarge(ctx context.Context, c *cutter) (ID, error) {
	var (
		hasher tree.Hasher
		m      manifest
		packed sync.WaitGroup
	)
	for {
		piece, err := c.next()
		if err != nil {
			return ID{}, fmt.Errorf("put: %w", err)
		}
		if piece == nil {
			break
		}
		hasher.Write(piece) // never fails
		id := Sum(piece)
		m.pieces, m.sizes = append(m.pieces, id), append(m.sizes, uint32(len(piece)))
		m.size += int64(len(piece))
		if err := b.put(ctx, id, piece, &packed); err != nil {
			return ID{}, err
		}
	}
	root, values := hasher.Sum()
	m.id, m.values = root, values
	packed.Wait()
	if err := b.lazy.failure(); err != nil {
		return ID{}, fmt.Errorf("put %s: %w", m.id, err)
	}
	if !b.pin(m.id) {
		b.add(ctx, record{typ: recordLarge, id: m.id, size: m.size, pieces: m.pieces, payload: m.encode()})
	}
	return m.id, nil
}

// Commit makes everything durable that was put. Errors: as Store.Put; after one nothing of the batch is promised.
func (b *Batch) Commit(ctx context.Context) error { return b.commit(ctx) }

// CommitHeld is Commit together with holds of an owner on everything that was put, all or none.
func (b *Batch) CommitHeld(ctx context.Context, owner Owner) error {
	if err := owner.check(); err != nil {
		return err
	}
	b.mu.Lock()
	ids := slices.Clone(b.ids)
	b.mu.Unlock()
	return b.commit(ctx, record{typ: recordHold, owner: owner.String(), ids: ids})
}

func (b *Batch) commit(ctx context.Context, more ...record) error {
	b.packers.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return errors.New("the batch has ended")
	}
	b.ended = true
	err := b.lazy.failure()
	if err == nil {
		err = b.s.submit(ctx, &write{records: append(b.chunk, more...), pins: b.pins})
		b.chunk = nil
	}
	if err == nil {
		err = b.lazy.failure()
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Discard ends the batch. What was not committed may stay on the disk until it is collected.
func (b *Batch) Discard() {
	b.packers.Wait()
	b.mu.Lock()
	b.ended, b.chunk = true, nil
	b.mu.Unlock()
	b.pins.release()
}

// cutter cuts what a reader gives into pieces.
type cutter struct {
	r    io.Reader
	buf  []byte
	rest []byte // of buf: read, not yet cut
	eof  bool
}

// cutBuffer is what is read ahead: a piece and as much again, so that what is left of it is seldom moved to the front.
const cutBuffer = 1 << largestBuffer

// fill reads until n bytes are there or the end has come.
func (c *cutter) fill(n int) error {
	if len(c.rest) >= n || c.eof {
		return nil
	}
	k := copy(c.buf, c.rest)
	for k < n { // and as much more as a read gives
		m, err := c.r.Read(c.buf[k:])
		k += m
		if errors.Is(err, io.EOF) {
			c.eof = true
			break
		}
		if err != nil {
			return err
		}
	}
	c.rest = c.buf[:k]
	return nil
}

// next returns the next piece, valid until the next call; nil at the end.
func (c *cutter) next() ([]byte, error) {
	if err := c.fill(pieceMax); err != nil {
		return nil, err
	}
	if len(c.rest) == 0 {
		return nil, nil
	}
	n := cut.Next(c.rest)
	piece := c.rest[:n]
	c.rest = c.rest[n:]
	return piece, nil
}
