package cas

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/table"
	"github.com/repa-app/repa/cas/internal/tree"
)

// Object is an open object: random access to verified bytes. While it is open the object is not collected. ReadAt may be called from any
// number of goroutines; Read, Seek and WriteTo share a position and belong to one. An open object keeps one group of 1 MiB and one piece in
// memory once something was read.
type Object struct {
	s    *Store
	id   ID
	size int64
	pins *pins

	mu       sync.Mutex
	whole    []byte // an object in one record, once it was read
	manifest *manifest
	starts   []int64 // of the pieces
	group    int64   // number of the group in memory; -1: none
	bytes    []byte
	piece    int // number of the piece in memory; -1: none
	content  []byte
	frame    []byte // memory of the last piece's record
	decoded  []byte // and of its bytes, when it is compressed
	spare    []byte // memory for a group
	closed   bool

	at int64
}

// Open opens an object for reading.
//
// Errors: ErrNotFound, *DamageError, errors of the disk. Reads return *DamageError when bytes are not those of the id, ErrClosed after
// Close.
func (s *Store) Open(ctx context.Context, id ID) (*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.isClosed() {
		return nil, ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.locate(id)
	if err != nil {
		return nil, err
	}
	s.table.Touch(r, s.now())
	o := &Object{s: s, id: id, size: s.table.Size(r), pins: &pins{s: s}, group: -1, piece: -1}
	o.pins.add(r)
	return o, nil
}

// ID returns the object's id.
func (o *Object) ID() ID { return o.id }

// Size returns the object's length in bytes.
func (o *Object) Size() int64 { return o.size }

// Close ends reading. Calling it again is harmless.
func (o *Object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.whole, o.bytes, o.content, o.frame, o.decoded, o.spare = nil, nil, nil, nil, nil, nil
		o.pins.release()
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *Object) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read object %s: negative offset %d", o.id, off)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for n < len(p) && off < o.size {
		part, err := o.part(off)
		if err != nil {
			return n, err
		}
		k := copy(p[n:], part)
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Read implements io.Reader.
func (o *Object) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := o.ReadAt(p, o.at)
	o.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek implements io.Seeker.
func (o *Object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, fmt.Errorf("seek in object %s: no such place", o.id)
	}
	o.at = offset
	return offset, nil
}

// WriteTo implements io.WriterTo: what is left from the position on.
func (o *Object) WriteTo(w io.Writer) (n int64, err error) {
	for o.at < o.size {
		o.mu.Lock()
		part, err := o.part(o.at)
		lent := o.bytes
		o.bytes, o.group = nil, -1 // nobody writes to it while w reads it
		o.mu.Unlock()
		if err != nil {
			return n, err
		}
		k, err := w.Write(part)
		o.mu.Lock()
		o.spare = lent
		o.mu.Unlock()
		n, o.at = n+int64(k), o.at+int64(k)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// part returns verified bytes from off on: some of the object, at least one.
func (o *Object) part(off int64) ([]byte, error) {
	if o.closed {
		return nil, ErrClosed
	}
	if o.whole != nil {
		return o.whole[off:], nil
	}
	if o.manifest == nil {
		if err := o.load(); err != nil {
			return nil, err
		}
		if o.whole != nil {
			return o.whole[off:], nil
		}
	}
	if g := off / tree.GroupSize; g != o.group {
		if err := o.loadGroup(g); err != nil {
			return nil, err
		}
	}
	return o.bytes[off-o.group*tree.GroupSize:], nil
}

// load reads the object, or the list of its pieces.
func (o *Object) load() error {
	o.s.mu.RLock()
	r, err := o.s.locate(o.id)
	var p table.Place
	if err == nil {
		p = o.s.table.Place(r)
	}
	o.s.mu.RUnlock()
	if err != nil {
		return err
	}
	if p.Size != table.Large {
		o.whole, err = o.s.read(o.id, p)
		return err
	}
	m, err := o.s.readManifest(o.id, p)
	if err != nil {
		return err
	}
	if m.size != o.size {
		return o.damaged(fmt.Errorf("%w: its list of pieces is of %d bytes", errBytes, m.size))
	}
	o.manifest, o.starts = m, make([]int64, len(m.pieces))
	var at int64
	for i, n := range m.sizes {
		o.starts[i] = at
		at += int64(n)
	}
	return nil
}

// readManifest reads the list of an object's pieces and verifies that it is the id's.
func (s *Store) readManifest(id ID, p table.Place) (*manifest, error) {
	for {
		whole, err := s.readFrame(p, nil)
		if err == nil {
			var m *manifest
			if m, err = decodeManifest(whole[frame.Size:]); err == nil {
				if m.id == id && m.verify() {
					return m, nil
				}
				err = errBytes
			}
		}
		s.mu.Lock()
		r, lerr := s.locate(id)
		if lerr == nil && s.table.Place(r) != p {
			p = s.table.Place(r)
			s.mu.Unlock()
			continue
		}
		if lerr == nil {
			lerr = s.condemn(r, err)
		}
		s.mu.Unlock()
		return nil, lerr
	}
}

// loadGroup reads a group from its pieces and verifies it by its value, which was verified by the id.
func (o *Object) loadGroup(g int64) error {
	start := g * tree.GroupSize
	end := min(start+tree.GroupSize, o.size)
	bytes := o.bytes
	if bytes == nil {
		bytes, o.spare = o.spare, nil
	}
	bytes = slices.Grow(bytes[:0], int(end-start))
	o.group, o.bytes = -1, bytes
	i := sort.Search(len(o.starts), func(i int) bool { return o.starts[i] > start }) - 1
	for at := start; at < end; i++ {
		if err := o.loadPiece(i); err != nil {
			return err
		}
		part := o.content[at-o.starts[i]:]
		part = part[:min(int64(len(part)), end-at)]
		bytes = append(bytes, part...)
		at += int64(len(part))
	}
	if tree.GroupValue(bytes, g) != o.manifest.values[g] {
		return o.blame(g, start, end)
	}
	o.group, o.bytes = g, bytes
	return nil
}

// loadPiece reads a piece without verifying it: its group is.
func (o *Object) loadPiece(i int) error {
	if i == o.piece {
		return nil
	}
	id := o.manifest.pieces[i]
	for {
		o.s.mu.RLock()
		r, err := o.s.locate(id)
		var p table.Place
		if err == nil {
			p = o.s.table.Place(r)
		}
		o.s.mu.RUnlock()
		if err != nil {
			return o.damaged(err)
		}
		var data []byte
		o.piece, o.content = -1, nil
		whole, err := o.s.readFrame(p, o.frame)
		if err == nil {
			o.frame = whole
			data, err = unpack(whole[frame.Size:], o.decoded)
		}
		if err == nil && len(whole) != frame.Size+objectHead+len(data) {
			o.decoded = data
		}
		if err == nil && len(data) != int(o.manifest.sizes[i]) {
			err = errBytes
		}
		if err == nil {
			o.piece, o.content = i, data
			return nil
		}
		o.s.mu.Lock()
		if r, lerr := o.s.locate(id); lerr == nil && o.s.table.Place(r) == p {
			err = o.s.condemn(r, err)
			o.s.mu.Unlock()
			return o.damaged(err)
		}
		o.s.mu.Unlock() // moved, or found damaged by somebody else
	}
}

// blame finds the damaged pieces of a group whose bytes are not those of the object.
func (o *Object) blame(g, start, end int64) error {
	o.piece, o.content = -1, nil
	i := sort.Search(len(o.starts), func(i int) bool { return o.starts[i] > start }) - 1
	for ; i < len(o.starts) && o.starts[i] < end; i++ {
		id := o.manifest.pieces[i]
		o.s.mu.RLock()
		r, err := o.s.locate(id)
		var p table.Place
		if err == nil {
			p = o.s.table.Place(r)
		}
		o.s.mu.RUnlock()
		if err == nil {
			_, err = o.s.read(id, p)
		}
		if err != nil {
			return o.damaged(err)
		}
	}
	return o.damaged(fmt.Errorf("%w: group %d of its list of pieces", errBytes, g))
}

// damaged turns what was found about a piece into an error about the object.
func (o *Object) damaged(err error) error {
	var d *DamageError
	if !errors.As(err, &d) && !errors.Is(err, ErrNotFound) && !errors.Is(err, errBytes) {
		return err
	}
	o.s.mu.RLock()
	defer o.s.mu.RUnlock()
	r, ok := o.s.table.Lookup(table.ID(o.id))
	if !ok {
		return err
	}
	out := o.s.damaged(r, "a piece of it: "+err.Error())
	if d != nil {
		out.Segment, out.Offset, out.Reason = d.Segment, d.Offset, fmt.Sprintf("its piece %s: %s", d.ID, d.Reason)
	}
	return out
}

// pins keeps objects from being collected as long as this process needs them. They are not durable.
type pins struct {
	s    *Store
	refs []table.Ref
}

// add is called with the store's mu held for writing.
func (p *pins) add(r table.Ref) {
	p.s.pins[r]++
	p.refs = append(p.refs, r)
}

// release ends the pins. What was pinned stays for the grace period.
func (p *pins) release() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	now := p.s.now()
	for _, r := range p.refs {
		if p.s.pins[r]--; p.s.pins[r] == 0 {
			delete(p.s.pins, r)
		}
		p.s.table.Touch(r, now)
	}
	p.refs = nil
}
