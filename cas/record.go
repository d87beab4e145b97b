package cas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/repa-app/repa/cas/internal/table"
	"github.com/repa-app/repa/cas/internal/tree"
)

// Types of records in packs. doc.go describes their payloads.
const (
	recordObject  = 1 // an object of at most pieceMax bytes
	recordLarge   = 2 // the list of pieces of a larger one
	recordHold    = 3 // adds holds
	recordReplace = 4 // sets the holds of an owner; none: ends it
	recordLease   = 5 // sets the holds of a lease and what remains of its time
	recordRenew   = 6 // sets what remains of a lease's time
	recordEnd     = 7 // ends a lease
	recordRelease = 8 // ends single holds
	recordRemoved = 9 // segments whose live records were copied

	recordVersion = 1
)

// maxPayload bounds one record: a hold of two million objects.
const maxPayload = 64 << 20

// Encodings of an object's bytes.
const (
	encodingRaw  = 0
	encodingZstd = 1
)

const objectHead = 44

// record is what a frame of a pack says.
type record struct {
	typ     byte
	id      ID      // object, large
	size    int64   // object, large: bytes of the object
	pieces  []ID    // large
	payload []byte  // object, large: of the frame
	buf     *[]byte // the payload's, when it goes back to the pool
	owner   string  // hold, replace, release, lease, renew, end
	ids     []ID    // hold, replace, release, lease
	remains time.Duration
	removed []uint32 // segments
}

// objectPayload is the payload of an object's record; encoded is its bytes in an encoding.
func appendObjectHead(buf []byte, id ID, size int, encoding byte) []byte {
	buf = append(buf, id[:]...)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(size))
	buf = append(buf, encoding, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(buf, 0) // dictionary
}

// parts returns the payload of a record.
func (r *record) encode() []byte {
	if r.payload != nil {
		return r.payload
	}
	var b []byte
	if r.typ == recordRemoved {
		for _, s := range r.removed {
			b = binary.LittleEndian.AppendUint32(b, s)
		}
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.owner)))
	b = append(b, r.owner...)
	if r.typ == recordLease || r.typ == recordRenew {
		b = binary.LittleEndian.AppendUint64(b, uint64(r.remains))
	}
	for _, id := range r.ids {
		b = append(b, id[:]...)
	}
	return b
}

var errRecord = errors.New("record is malformed")

// decode reads a record. The bytes of an object are left alone.
func decode(typ, version byte, payload []byte) (record, error) {
	if typ < recordObject || typ > recordRemoved || version != recordVersion {
		return record{}, fmt.Errorf("%w (record of type %d, version %d)", ErrNewerFormat, typ, version)
	}
	r := record{typ: typ}
	switch typ {
	case recordObject:
		if len(payload) < objectHead {
			return r, errRecord
		}
		r.id, r.size, r.payload = ID(payload[:IDSize]), int64(binary.LittleEndian.Uint32(payload[IDSize:])), payload
		return r, nil
	case recordLarge:
		m, err := decodeManifest(payload)
		if err != nil {
			return r, err
		}
		r.id, r.size, r.pieces, r.payload = m.id, m.size, m.pieces, payload
		return r, nil
	case recordRemoved:
		if len(payload)%4 != 0 {
			return r, errRecord
		}
		for i := 0; i < len(payload); i += 4 {
			r.removed = append(r.removed, binary.LittleEndian.Uint32(payload[i:]))
		}
		return r, nil
	}
	return r, r.decodeHold(payload)
}

func (r *record) decodeHold(b []byte) error {
	if len(b) < 2 {
		return errRecord
	}
	n := int(binary.LittleEndian.Uint16(b))
	if b = b[2:]; n == 0 || n > maxOwner || n > len(b) {
		return errRecord
	}
	r.owner, b = string(b[:n]), b[n:]
	if r.typ == recordLease || r.typ == recordRenew {
		if len(b) < 8 || binary.LittleEndian.Uint64(b) > math.MaxInt64 {
			return errRecord
		}
		r.remains, b = time.Duration(binary.LittleEndian.Uint64(b)), b[8:]
	}
	if len(b)%IDSize != 0 || (r.typ == recordRenew || r.typ == recordEnd) && len(b) > 0 {
		return errRecord
	}
	for ; len(b) > 0; b = b[IDSize:] {
		r.ids = append(r.ids, ID(b[:IDSize]))
	}
	return nil
}

// manifest lists the pieces of a large object and the subtree values by which any group of it is verified.
type manifest struct {
	id     ID
	size   int64
	pieces []ID
	sizes  []uint32
	values []tree.Value
}

const (
	manifestHead  = IDSize + 8 + 4
	manifestPiece = IDSize + 4
)

func (m *manifest) encode() []byte {
	b := make([]byte, 0, manifestHead+len(m.pieces)*manifestPiece+len(m.values)*len(tree.Value{}))
	b = append(b, m.id[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.size))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.pieces)))
	for i, id := range m.pieces {
		b = append(b, id[:]...)
		b = binary.LittleEndian.AppendUint32(b, m.sizes[i])
	}
	for _, v := range m.values {
		b = append(b, v[:]...)
	}
	return b
}

// decodeManifest reads a manifest whose sizes add up. Whether it is the id's is for verify to say.
func decodeManifest(b []byte) (*manifest, error) {
	if len(b) < manifestHead {
		return nil, errRecord
	}
	m := &manifest{id: ID(b[:IDSize]), size: int64(binary.LittleEndian.Uint64(b[IDSize:]))}
	n := int(binary.LittleEndian.Uint32(b[IDSize+8:]))
	b = b[manifestHead:]
	groups := (m.size-1)/tree.GroupSize + 1
	if m.size <= pieceMax || n > len(b)/manifestPiece || groups > int64(len(b)/len(tree.Value{})) ||
		len(b) != n*manifestPiece+int(groups)*len(tree.Value{}) {
		return nil, errRecord
	}
	m.pieces, m.sizes, m.values = make([]ID, n), make([]uint32, n), make([]tree.Value, groups)
	var sum int64
	for i := range n {
		m.pieces[i], m.sizes[i] = ID(b[:IDSize]), binary.LittleEndian.Uint32(b[IDSize:])
		if m.sizes[i] == 0 || m.sizes[i] > pieceMax {
			return nil, errRecord
		}
		sum, b = sum+int64(m.sizes[i]), b[manifestPiece:]
	}
	if sum != m.size {
		return nil, errRecord
	}
	for i := range m.values {
		m.values[i], b = tree.Value(b[:len(tree.Value{})]), b[len(tree.Value{}):]
	}
	return m, nil
}

// verify reports whether the values are those of the object with this id.
func (m *manifest) verify() bool {
	root, ok := tree.Root(m.values, m.size)
	return ok && ID(root) == m.id
}

// placeSize is what the table keeps as the size of a record's object.
func (r *record) placeSize() uint32 {
	if r.typ == recordLarge {
		return table.Large
	}
	return uint32(r.size)
}

// piecesOf is the owner by which a large object holds its pieces. No owner of a caller has such a text.
func piecesOf(id ID) string { return "\x00" + string(id[:]) }

// largeOf returns the large object that a text made by piecesOf names.
func largeOf(owner string) (ID, bool) {
	if len(owner) != 1+IDSize || owner[0] != 0 {
		return ID{}, false
	}
	return ID([]byte(owner[1:])), true
}
