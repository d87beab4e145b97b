// Package table is the store's state in memory: which objects there are, where their records lie, and who holds them.
//
// Words: a ref is the small number by which the table knows an object; it is valid until the object is dropped. A place says
// where an object's record lies. An owner is known by its text; holds are pairs of owner and object.
//
// Memory. An object costs 56 bytes in blocks without pointers, 5 to 10 bytes in the hash table that finds it by its id, and
// 4 bytes in the list of each owner that holds it; a second holder of the same object costs a list.
//
// A Table has no lock. Its owner serialises what changes it; methods marked so are safe beside each other and beside Touch.
package table

import (
	"encoding/binary"
	"iter"
	"sync/atomic"
)

// ID is an object's digest.
type ID = [32]byte

// Ref is an object's number; 0 is none.
type Ref uint32

// Place says where an object's record lies.
type Place struct {
	Segment uint32 // generation
	Offset  uint32 // of the frame in the segment
	Stored  uint32 // bytes of the whole frame
	Size    uint32 // bytes of the object; Large for one whose record only lists its pieces
}

// Large as the size of a place marks an object in pieces, whose size Size tells.
const Large = 1<<32 - 1

type entry struct {
	id    ID
	place Place         // a zero segment: the number is free
	owner uint32        // 0: nobody holds it; the only owner's number; or shared: more than one, in Table.shared
	since atomic.Uint32 // when it was last put or asked for, in the caller's clock
}

const shared = 1<<32 - 1

const (
	blockBits = 12 // 4,096 entries of 56 bytes: growth never copies, and a checkpoint takes one block at a time
	blockSize = 1 << blockBits
	shards    = 256 // of the hash table: growth moves a 256th of it
)

type block [blockSize]entry

// Table is the state. The zero value is not usable; New makes one.
type Table struct {
	blocks []*block // nil: no number in it was restored
	holes  []int    // those, until they are needed
	used   uint32   // entries ever used, the zeroth included, which is never an object's
	free   []Ref
	count  int
	shards [shards]shard
	large  map[Ref]int64

	names  map[string]uint32
	owners []owner // the zeroth is never used
	gone   []uint32
	shared map[Ref][]uint32 // holders of objects with more than one, ascending
	holds  int
}

type shard struct {
	slots []Ref
	count int
}

// New makes an empty table.
func New() *Table {
	return &Table{used: 1, blocks: []*block{new(block)}, large: map[Ref]int64{}, names: map[string]uint32{}, owners: make([]owner, 1), shared: map[Ref][]uint32{}}
}

func (t *Table) at(r Ref) *entry { return &t.blocks[r>>blockBits][r&(blockSize-1)] }

func home(id *ID, slots int) int {
	return int(binary.LittleEndian.Uint64(id[8:]) & uint64(slots-1))
}

// Lookup finds an object. Safe beside other reads.
func (t *Table) Lookup(id ID) (Ref, bool) {
	s := &t.shards[id[0]]
	if s.count == 0 {
		return 0, false
	}
	for i := home(&id, len(s.slots)); ; i = (i + 1) & (len(s.slots) - 1) {
		r := s.slots[i]
		if r == 0 {
			return 0, false
		}
		if t.at(r).id == id {
			return r, true
		}
	}
}

// Put adds an object or moves it to another place. It returns the place it had before.
func (t *Table) Put(id ID, p Place) (r Ref, before Place) {
	if r, ok := t.Lookup(id); ok {
		e := t.at(r)
		before, e.place = e.place, p
		return r, before
	}
	t.fill()
	if n := len(t.free); n > 0 {
		r, t.free = t.free[n-1], t.free[:n-1]
	} else {
		r = Ref(t.used)
		t.used++
		if int(r>>blockBits) == len(t.blocks) {
			t.blocks = append(t.blocks, new(block))
		}
	}
	e := t.at(r)
	e.id, e.place, e.owner = id, p, 0
	e.since.Store(0)
	t.count++
	t.insert(r)
	return r, Place{}
}

// Restore adds an object under the number that it had when it was saved; the number must be free. Seal must follow the last one.
func (t *Table) Restore(r Ref, id ID, p Place) bool {
	if r == 0 || p.Segment == 0 {
		return false
	}
	n := int(r >> blockBits)
	if n >= len(t.blocks) {
		t.blocks = append(t.blocks, make([]*block, n+1-len(t.blocks))...)
	}
	if t.blocks[n] == nil {
		t.blocks[n] = new(block)
	}
	e := t.at(r)
	if e.place.Segment != 0 {
		return false
	}
	e.id, e.place = id, p
	t.used = max(t.used, uint32(r)+1)
	t.count++
	t.insert(r)
	return true
}

// Seal gives the numbers between restored ones free.
func (t *Table) Seal() {
	for n := len(t.blocks) - 1; n >= 0; n-- {
		if t.blocks[n] == nil {
			t.holes = append(t.holes, n)
			continue
		}
		t.vacant(n)
	}
}

// vacant gives the numbers of a block free that no object has.
func (t *Table) vacant(n int) {
	for i := blockSize - 1; i >= 0; i-- {
		if r := Ref(n<<blockBits + i); r > 0 && uint32(r) < t.used && t.blocks[n][i].place.Segment == 0 {
			t.free = append(t.free, r)
		}
	}
}

// fill makes a block that was left out when no other number is free.
func (t *Table) fill() {
	if k := len(t.holes); k > 0 && len(t.free) == 0 {
		n := t.holes[k-1]
		t.holes = t.holes[:k-1]
		t.blocks[n] = new(block)
		t.vacant(n)
	}
}

// Valid reports whether a number is an object's. Safe beside other reads.
func (t *Table) Valid(r Ref) bool {
	return r != 0 && uint32(r) < t.used && t.blocks[r>>blockBits] != nil && t.at(r).place.Segment != 0
}

func (t *Table) insert(r Ref) {
	id := &t.at(r).id
	s := &t.shards[id[0]]
	if s.count*5 >= len(s.slots)*4 {
		old := s.slots
		s.slots = make([]Ref, max(8, 2*len(old)))
		for _, o := range old {
			if o != 0 {
				t.place(s, o)
			}
		}
	}
	t.place(s, r)
	s.count++
}

func (t *Table) place(s *shard, r Ref) {
	i := home(&t.at(r).id, len(s.slots))
	for s.slots[i] != 0 {
		i = (i + 1) & (len(s.slots) - 1)
	}
	s.slots[i] = r
}

// Drop forgets an object that nobody holds. Its number is not used again before Reuse is told so: a checkpoint that is being
// written may still name it.
func (t *Table) Drop(r Ref) {
	e := t.at(r)
	s := &t.shards[e.id[0]]
	mask := len(s.slots) - 1
	i := home(&e.id, len(s.slots))
	for s.slots[i] != r {
		i = (i + 1) & mask
	}
	// Close the gap: what was pushed past this slot moves back to it.
	for j := i; ; {
		j = (j + 1) & mask
		if s.slots[j] == 0 {
			break
		}
		if h := home(&t.at(s.slots[j]).id, len(s.slots)); (j-h)&mask >= (j-i)&mask {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = 0
	s.count--
	t.count--
	delete(t.large, r)
	e.id, e.place = ID{}, Place{}
}

// Reuse gives dropped numbers free.
func (t *Table) Reuse(refs []Ref) { t.free = append(t.free, refs...) }

// ID returns an object's id. Safe beside other reads.
func (t *Table) ID(r Ref) ID { return t.at(r).id }

// Place returns where an object's record lies. Safe beside other reads.
func (t *Table) Place(r Ref) Place { return t.at(r).place }

// Size returns the bytes of an object. Safe beside other reads.
func (t *Table) Size(r Ref) int64 {
	if size := t.at(r).place.Size; size != Large {
		return int64(size)
	}
	return t.large[r]
}

// SetSize tells the bytes of a large object.
func (t *Table) SetSize(r Ref, size int64) { t.large[r] = size }

// Touch notes that an object was put again or asked for at a time of the caller's clock. Safe beside reads.
func (t *Table) Touch(r Ref, now uint32) { t.at(r).since.Store(now) }

// Since returns what Touch noted last, 0 when nothing was. Safe beside reads.
func (t *Table) Since(r Ref) uint32 { return t.at(r).since.Load() }

// Len returns the number of objects.
func (t *Table) Len() int { return t.count }

// Blocks returns how many blocks of numbers there are, for All.
func (t *Table) Blocks() int { return len(t.blocks) }

// Block goes over the objects of a block. Safe beside other reads.
func (t *Table) Block(n int) iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		if t.blocks[n] == nil {
			return
		}
		first := Ref(n << blockBits)
		for i := range t.blocks[n] {
			if t.blocks[n][i].place.Segment != 0 && !yield(first+Ref(i)) {
				return
			}
		}
	}
}

// All goes over the objects.
func (t *Table) All() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		for n := range t.blocks {
			for r := range t.Block(n) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
