package table

import (
	"iter"
	"slices"
)

type owner struct {
	name string // "": the number is free
	refs []Ref  // in the order they were held
}

// Hold adds holds of an owner; those there already stay.
func (t *Table) Hold(name string, refs ...Ref) {
	if len(refs) == 0 {
		return
	}
	n := t.owner(name)
	for _, r := range refs {
		if t.addHolder(r, n) {
			t.owners[n].refs = append(t.owners[n].refs, r)
			t.holds++
		}
	}
}

// Replace makes refs the holds of an owner; with none the owner is gone. Objects that nobody holds any more are touched with now.
func (t *Table) Replace(name string, now uint32, refs ...Ref) {
	if n, ok := t.names[name]; ok && len(refs) > 0 {
		keep := make(map[Ref]bool, len(refs))
		for _, r := range refs {
			keep[r] = true
		}
		t.owners[n].refs = slices.DeleteFunc(t.owners[n].refs, func(r Ref) bool {
			if keep[r] {
				return false
			}
			t.removeHolder(r, n, now)
			t.holds--
			return true
		})
	} else {
		t.Release(name, now)
	}
	t.Hold(name, refs...)
}

// Unhold ends single holds of an owner. Objects that nobody holds any more are touched with now.
func (t *Table) Unhold(name string, now uint32, refs ...Ref) {
	n, ok := t.names[name]
	if !ok {
		return
	}
	gone := make(map[Ref]bool, len(refs))
	for _, r := range refs {
		gone[r] = true
	}
	keep := make([]Ref, 0, len(t.owners[n].refs))
	for _, r := range t.owners[n].refs {
		if !gone[r] {
			keep = append(keep, r)
		}
	}
	t.Replace(name, now, keep...)
}

// Release ends an owner with all its holds. Objects that nobody holds any more are touched with now.
func (t *Table) Release(name string, now uint32) {
	n, ok := t.names[name]
	if !ok {
		return
	}
	for _, r := range t.owners[n].refs {
		t.removeHolder(r, n, now)
	}
	t.holds -= len(t.owners[n].refs)
	delete(t.names, name)
	t.owners[n] = owner{}
	t.gone = append(t.gone, n)
}

func (t *Table) owner(name string) uint32 {
	if n, ok := t.names[name]; ok {
		return n
	}
	var n uint32
	if k := len(t.gone); k > 0 {
		n, t.gone = t.gone[k-1], t.gone[:k-1]
		t.owners[n] = owner{name: name}
	} else {
		n = uint32(len(t.owners))
		t.owners = append(t.owners, owner{name: name})
	}
	t.names[name] = n
	return n
}

// addHolder returns false when the owner holds the object already.
func (t *Table) addHolder(r Ref, n uint32) bool {
	e := t.at(r)
	switch e.owner {
	case 0:
		e.owner = n
	case n:
		return false
	case shared:
		list := t.shared[r]
		i, found := slices.BinarySearch(list, n)
		if found {
			return false
		}
		t.shared[r] = slices.Insert(list, i, n)
	default:
		t.shared[r] = []uint32{min(e.owner, n), max(e.owner, n)}
		e.owner = shared
	}
	return true
}

func (t *Table) removeHolder(r Ref, n, now uint32) {
	e := t.at(r)
	if e.owner != shared {
		e.owner = 0
		if now > e.since.Load() {
			e.since.Store(now)
		}
		return
	}
	list := t.shared[r]
	if i, found := slices.BinarySearch(list, n); found {
		list = slices.Delete(list, i, i+1)
	}
	t.shared[r] = list
	if len(list) == 1 {
		e.owner = list[0]
		delete(t.shared, r)
	}
}

// Held reports whether anybody holds an object. Safe beside other reads.
func (t *Table) Held(r Ref) bool { return t.at(r).owner != 0 }

// Owners returns who holds an object, in no order. Safe beside other reads.
func (t *Table) Owners(r Ref) []string {
	switch n := t.at(r).owner; n {
	case 0:
		return nil
	case shared:
		out := make([]string, 0, len(t.shared[r]))
		for _, n := range t.shared[r] {
			out = append(out, t.owners[n].name)
		}
		return out
	default:
		return []string{t.owners[n].name}
	}
}

// Holds returns what an owner holds, in the order it was held. The slice is the table's own. Safe beside other reads.
func (t *Table) Holds(name string) []Ref {
	if n, ok := t.names[name]; ok {
		return t.owners[n].refs
	}
	return nil
}

// OwnerSlots returns how many numbers of owners there are, for Owner.
func (t *Table) OwnerSlots() int { return len(t.owners) }

// Owner returns the owner with a number and what it holds; "" when the number is free. Safe beside other reads.
func (t *Table) Owner(n int) (string, []Ref) { return t.owners[n].name, t.owners[n].refs }

// AllOwners goes over the owners' names. Safe beside other reads.
func (t *Table) AllOwners() iter.Seq2[string, []Ref] {
	return func(yield func(string, []Ref) bool) {
		for _, o := range t.owners {
			if o.name != "" && !yield(o.name, o.refs) {
				return
			}
		}
	}
}

// HoldCount returns the number of pairs of owner and object.
func (t *Table) HoldCount() int { return t.holds }
