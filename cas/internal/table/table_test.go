package table_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/internal/table"
)

func idOf(n int) table.ID { return sha256.Sum256([]byte(fmt.Sprint(n))) }

// model is what a table says, in maps.
type model struct {
	places map[table.ID]table.Place
	refs   map[table.ID]table.Ref
	held   map[string][]table.ID
	since  map[table.ID]uint32
	limbo  []table.Ref
	clock  uint32
}

// unheld touches those that nobody holds any more.
func (m *model) unheld(before map[table.ID]bool) {
	now := m.all()
	for id := range before {
		if !now[id] {
			m.since[id] = max(m.since[id], m.clock)
		}
	}
}

func (m *model) all() map[table.ID]bool {
	out := map[table.ID]bool{}
	for _, ids := range m.held {
		for _, id := range ids {
			out[id] = true
		}
	}
	return out
}

func (m *model) check(t *rapid.T, tab *table.Table) {
	if tab.Len() != len(m.places) {
		t.Fatalf("%d objects, want %d", tab.Len(), len(m.places))
	}
	seen := 0
	for r := range tab.All() {
		if id := tab.ID(r); tab.Place(r) != m.places[id] || !tab.Valid(r) {
			t.Fatalf("%x lies at %+v, want %+v", id, tab.Place(r), m.places[id])
		}
		seen++
	}
	if seen != len(m.places) {
		t.Fatalf("goes over %d of %d", seen, len(m.places))
	}
	holds := 0
	holders := map[table.ID][]string{}
	for name, ids := range m.held {
		var got []table.ID
		for _, r := range tab.Holds(name) {
			got = append(got, tab.ID(r))
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("%s holds %x, want %x", name, got, ids)
		}
		holds += len(ids)
		for _, id := range ids {
			holders[id] = append(holders[id], name)
		}
	}
	names := map[string]bool{}
	for name := range tab.AllOwners() {
		names[name] = true
	}
	if tab.HoldCount() != holds || len(names) != len(m.held) {
		t.Fatalf("%d holds of %v, want %d of %d owners", tab.HoldCount(), names, holds, len(m.held))
	}
	for id := range m.places {
		r, ok := tab.Lookup(id)
		if got := tab.Owners(r); !ok || tab.Held(r) != (len(holders[id]) > 0) || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(holders[id]))) {
			t.Fatalf("%x (%t) is held by %v, want %v", id, ok, got, holders[id])
		}
		if got := tab.Since(r); got != m.since[id] {
			t.Fatalf("%x since %d, want %d", id, got, m.since[id])
		}
	}
}

func TestTableAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := table.New()
		m := &model{places: map[table.ID]table.Place{}, refs: map[table.ID]table.Ref{}, held: map[string][]table.ID{}, since: map[table.ID]uint32{}}
		owner := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		some := func(t *rapid.T) (refs []table.Ref, ids []table.ID) {
			for _, n := range rapid.SliceOfN(rapid.IntRange(0, 40), 0, 6).Draw(t, "objects") {
				if id := idOf(n); m.refs[id] != 0 {
					refs, ids = append(refs, m.refs[id]), append(ids, id)
				}
			}
			return refs, ids
		}
		hold := func(name string, ids []table.ID) {
			for _, id := range ids {
				if !slices.Contains(m.held[name], id) {
					m.held[name] = append(m.held[name], id)
				}
			}
		}
		keep := func(name string, kept func(table.ID) bool) {
			before := m.all()
			m.held[name] = slices.DeleteFunc(slices.Clone(m.held[name]), func(id table.ID) bool { return !kept(id) })
			if len(m.held[name]) == 0 {
				delete(m.held, name)
			}
			m.unheld(before)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := idOf(rapid.IntRange(0, 40).Draw(t, "object"))
				p := table.Place{Segment: 1 + rapid.Uint32Range(0, 3).Draw(t, "segment"), Offset: rapid.Uint32().Draw(t, "offset"), Size: 9}
				r, before := tab.Put(id, p)
				if before != m.places[id] || m.refs[id] != 0 && m.refs[id] != r || slices.Contains(m.limbo, r) {
					t.Fatalf("put: %d, %+v", r, before)
				}
				m.places[id], m.refs[id] = p, r
			},
			"touch": func(t *rapid.T) {
				m.clock++
				refs, ids := some(t)
				for i, r := range refs {
					tab.Touch(r, m.clock)
					m.since[ids[i]] = m.clock
				}
			},
			"drop": func(t *rapid.T) {
				refs, ids := some(t)
				for i, r := range refs {
					if id := ids[i]; m.refs[id] == r && !tab.Held(r) {
						tab.Drop(r)
						delete(m.places, id)
						delete(m.refs, id)
						delete(m.since, id)
						m.limbo = append(m.limbo, r)
						if tab.Valid(r) {
							t.Fatal("a dropped number is valid")
						}
					}
				}
			},
			"reuse": func(t *rapid.T) { tab.Reuse(m.limbo); m.limbo = nil },
			"hold": func(t *rapid.T) {
				name := owner.Draw(t, "owner")
				refs, ids := some(t)
				tab.Hold(name, refs...)
				hold(name, ids)
			},
			"replace": func(t *rapid.T) {
				m.clock++
				name := owner.Draw(t, "owner")
				refs, ids := some(t)
				tab.Replace(name, m.clock, refs...)
				keep(name, func(id table.ID) bool { return slices.Contains(ids, id) })
				hold(name, ids)
			},
			"unhold": func(t *rapid.T) {
				m.clock++
				name := owner.Draw(t, "owner")
				refs, ids := some(t)
				tab.Unhold(name, m.clock, refs...)
				keep(name, func(id table.ID) bool { return !slices.Contains(ids, id) })
			},
			"release": func(t *rapid.T) {
				m.clock++
				name := owner.Draw(t, "owner")
				tab.Release(name, m.clock)
				keep(name, func(table.ID) bool { return false })
			},
			"save and restore": func(t *rapid.T) {
				next := table.New()
				for r := range tab.All() {
					if !next.Restore(r, tab.ID(r), tab.Place(r)) || next.Restore(r, idOf(-1), table.Place{Segment: 1}) {
						t.Fatal("restore")
					}
				}
				next.Seal()
				for name, refs := range tab.AllOwners() {
					next.Hold(name, refs...)
				}
				for r := range tab.All() {
					next.Touch(r, tab.Since(r))
				}
				tab, m.limbo = next, nil
			},
			"": func(t *rapid.T) { m.check(t, tab) },
		})
	})
}

// Thousands of objects, whose numbers fill several blocks and are used again.
func TestManyObjects(t *testing.T) {
	tab := table.New()
	const n = 20_000
	for round := range 2 {
		for i := range n {
			tab.Put(idOf(i), table.Place{Segment: 1, Offset: uint32(i), Size: table.Large})
		}
		blocks := tab.Blocks()
		if tab.Len() != n || blocks > n/4096+2 {
			t.Fatalf("round %d: %d objects in %d blocks", round, tab.Len(), blocks)
		}
		for i := range n {
			r, ok := tab.Lookup(idOf(i))
			if !ok || tab.Place(r).Offset != uint32(i) {
				t.Fatalf("object %d: %d, %t", i, r, ok)
			}
			tab.SetSize(r, int64(i)<<32)
			if tab.Size(r) != int64(i)<<32 {
				t.Fatalf("size %d", tab.Size(r))
			}
		}
		for _, r := range slices.Collect(maps.Keys(refs(tab))) {
			tab.Drop(r)
			tab.Reuse([]table.Ref{r})
		}
		if _, ok := tab.Lookup(idOf(1)); ok || tab.Len() != 0 {
			t.Fatal("not empty")
		}
	}
}

func refs(tab *table.Table) map[table.Ref]bool {
	out := map[table.Ref]bool{}
	for r := range tab.All() {
		out[r] = true
	}
	return out
}

// A few objects whose numbers are far apart take little memory, and the numbers between are used before new ones.
func TestNumbersFarApart(t *testing.T) {
	tab := table.New()
	for _, r := range []table.Ref{5, 40_000_000, 40_000_001} {
		if !tab.Restore(r, idOf(int(r)), table.Place{Segment: 1}) {
			t.Fatal(r)
		}
	}
	tab.Seal()
	if tab.Valid(20_000_000) || tab.Valid(4) || !tab.Valid(5) || tab.Len() != 3 {
		t.Error("other objects")
	}
	seen := map[table.Ref]bool{5: true, 40_000_000: true, 40_000_001: true}
	for i := range 20_000 {
		r, _ := tab.Put(idOf(-1-i), table.Place{Segment: 1})
		if seen[r] || r > 40_000_001 {
			t.Fatalf("number %d", r)
		}
		seen[r] = true
	}
	if n := len(refs(tab)); n != 20_003 || tab.Len() != n {
		t.Errorf("%d objects", n)
	}
}
