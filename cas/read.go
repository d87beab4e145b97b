package cas

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/repa-app/repa/cas/internal/frame"
	"github.com/repa-app/repa/cas/internal/squeeze"
	"github.com/repa-app/repa/cas/internal/table"
)

// find looks an object up; false also when its record is known to be damaged. Mu is held.
func (s *Store) find(id ID) (table.Ref, bool) {
	r, ok := s.table.Lookup(table.ID(id))
	if ok && len(s.bad) > 0 {
		if _, bad := s.bad[r]; bad {
			return r, false
		}
	}
	return r, ok
}

// Has reports whether an object is in the store and not known to be damaged.
func (s *Store) Has(id ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.find(id)
	if ok {
		s.table.Touch(r, s.now())
	}
	return ok
}

// Info describes an object.
type Info struct {
	ID     ID
	Size   int64 // bytes
	Stored int64 // bytes that its record takes on the disk; of an object in pieces, those of the list alone
	Pieces int   // 0: one record
}

// Stat describes an object without reading it.
//
// Errors: ErrNotFound, *DamageError when it is known to be damaged.
func (s *Store) Stat(id ID) (Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, err := s.locate(id)
	if err != nil {
		return Info{}, err
	}
	s.table.Touch(r, s.now())
	return s.info(r), nil
}

func (s *Store) info(r table.Ref) Info {
	p := s.table.Place(r)
	id := ID(s.table.ID(r))
	info := Info{ID: id, Size: s.table.Size(r), Stored: int64(p.Stored)}
	if p.Size == table.Large {
		info.Pieces = len(s.table.Holds(piecesOf(id)))
	}
	return info
}

// locate is find with the error that a caller gets. Mu is held.
func (s *Store) locate(id ID) (table.Ref, error) {
	r, ok := s.find(id)
	if ok {
		return r, nil
	}
	if reason, bad := s.bad[r]; bad && r != 0 {
		return 0, s.damaged(r, reason)
	}
	if at, lost := s.lost[id]; lost {
		return 0, &DamageError{ID: id, Segment: segmentName(at.segment), Offset: at.offset, Reason: "its record does not match its checksum"}
	}
	return 0, fmt.Errorf("object %s: %w", id, ErrNotFound)
}

func (s *Store) damaged(r table.Ref, reason string) *DamageError {
	p := s.table.Place(r)
	return &DamageError{ID: ID(s.table.ID(r)), Owners: s.ownersOf(r), Segment: segmentName(p.Segment), Offset: int64(p.Offset), Reason: reason}
}

// All goes over the objects of the store, in no order; pieces of large ones are objects too. What is put or collected meanwhile may be seen or not.
func (s *Store) All() iter.Seq[Info] {
	return func(yield func(Info) bool) {
		var infos []Info
		for n := 0; ; n++ {
			infos = infos[:0]
			s.mu.RLock()
			if n >= s.table.Blocks() {
				s.mu.RUnlock()
				return
			}
			for r := range s.table.Block(n) {
				infos = append(infos, s.info(r))
			}
			s.mu.RUnlock()
			for _, i := range infos {
				if !yield(i) {
					return
				}
			}
		}
	}
}

// Get returns the bytes of an object of at most limit bytes; a negative limit is none. The slice is the caller's.
//
// Errors: ErrNotFound, ErrTooLarge, *DamageError, errors of the disk.
func (s *Store) Get(ctx context.Context, id ID, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	r, err := s.locate(id)
	if err != nil {
		s.mu.RUnlock()
		return nil, err
	}
	size, p := s.table.Size(r), s.table.Place(r)
	s.table.Touch(r, s.now())
	s.mu.RUnlock()
	if limit >= 0 && size > limit {
		return nil, fmt.Errorf("object %s of %d bytes, limit %d: %w", id, size, limit, ErrTooLarge)
	}
	if p.Size != table.Large {
		return s.read(id, p)
	}
	o, err := s.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	if err := o.load(); err != nil { // before memory is taken for what may not be there
		return nil, err
	}
	data := make([]byte, size)
	_, err = io.ReadFull(o, data)
	return data, err
}

// read returns the verified bytes of an object in one record. When collection moved it meanwhile, it is looked up again.
func (s *Store) read(id ID, p table.Place) ([]byte, error) {
	for {
		data, err := s.readPlace(id, p)
		if err == nil {
			return data, nil
		}
		s.mu.Lock()
		r, lerr := s.locate(id)
		if lerr != nil {
			s.mu.Unlock()
			return nil, lerr
		}
		if now := s.table.Place(r); now != p {
			s.mu.Unlock()
			p = now
			continue
		}
		err = s.condemn(r, err)
		s.mu.Unlock()
		return nil, err
	}
}

// condemn notes that a record is damaged, when err says so. Mu is held for writing.
func (s *Store) condemn(r table.Ref, err error) error {
	reason := ""
	switch {
	case s.isClosed():
		return ErrClosed
	case errors.Is(err, errBytes), errors.Is(err, errRecord):
		reason = err.Error()
	case errors.Is(err, fs.ErrNotExist):
		reason = reasonGone
	default:
		return fmt.Errorf("read object %s in %s: %w", ID(s.table.ID(r)), segmentName(s.table.Place(r).Segment), err)
	}
	damage := s.damaged(r, reason)
	s.bad[r] = reason
	return damage
}

const reasonGone = "the file is gone"

var errBytes = errors.New("its bytes do not match its id")

// readFrame reads the frame of the record at p into buf, without checking it.
func (s *Store) readFrame(p table.Place, buf []byte) ([]byte, error) {
	f, err := s.files.use(p.Segment)
	if err != nil {
		return nil, err
	}
	defer s.files.done(f)
	buf = slices.Grow(buf[:0], int(p.Stored))[:p.Stored]
	if n, err := f.ReadAt(buf, int64(p.Offset)); n < len(buf) {
		if errors.Is(err, io.EOF) {
			err = errBytes
		}
		return nil, err
	}
	if n, ok := frame.Length(buf, uint64(p.Segment), maxPayload); !ok || n != len(buf)-frame.Size {
		return nil, errBytes
	}
	return buf, nil
}

// readPlace reads the object in the record at p and verifies it. The bytes are the caller's.
func (s *Store) readPlace(id ID, p table.Place) (data []byte, err error) {
	var raw []byte
	if int64(p.Stored) != frame.Size+objectHead+int64(p.Size) { // compressed: the record is needed for a moment
		buf := buffer(int(p.Stored))
		defer giveBack(buf)
		raw = *buf
	}
	whole, err := s.readFrame(p, raw)
	if err == nil {
		data, err = unpack(whole[frame.Size:], nil)
	}
	if err == nil && Sum(data) != id {
		err = errBytes
	}
	return data, err
}

// unpack returns the bytes in the payload of an object's record. Raw ones alias it, others are decoded into dst.
func unpack(payload, dst []byte) ([]byte, error) {
	if len(payload) < objectHead {
		return nil, errBytes
	}
	size, encoding := int(binary.LittleEndian.Uint32(payload[IDSize:])), payload[IDSize+4]
	body := payload[objectHead:]
	switch {
	case size > pieceMax:
		return nil, errBytes
	case encoding == encodingRaw && len(body) == size:
		return body, nil
	case encoding == encodingZstd:
		data, err := squeeze.Decode(dst[:0], body, size)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBytes, err)
		}
		return data, nil
	}
	return nil, errBytes
}
