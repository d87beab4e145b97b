package catalog

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Change is one item's step of a delta. A nil Before makes it; After is never nil.
type Change struct {
	Before *Item `json:"before,omitzero"`
	After  *Item `json:"after"`
}

// Catalog is the items of a space with indexes by id and by place.
type Catalog struct {
	items map[string]*Item
	at    map[Location]string        // of active items
	under map[string]map[string]bool // folder of a relative active item → ids
}

// New is an empty catalog.
func New() *Catalog {
	return &Catalog{items: map[string]*Item{}, at: map[Location]string{}, under: map[string]map[string]bool{}}
}

// Get returns the record of an id, nil when there is none.
func (c *Catalog) Get(id string) *Item { return c.items[id] }

// At returns the active item at a place, nil when there is none.
func (c *Catalog) At(l Location) *Item {
	if id, ok := c.at[l]; ok {
		return c.items[id]
	}
	return nil
}

// Len is the number of records, tombstones included.
func (c *Catalog) Len() int { return len(c.items) }

// All goes over the records in the order of their ids.
func (c *Catalog) All() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, id := range slices.Sorted(maps.Keys(c.items)) {
			if !yield(c.items[id]) {
				return
			}
		}
	}
}

// In lists the active items that lie directly in a folder ("." is the space), by path.
func (c *Catalog) In(folder string) []*Item {
	out := make([]*Item, 0, len(c.under[folder]))
	for id := range c.under[folder] {
		out = append(out, c.items[id])
	}
	slices.SortFunc(out, func(a, b *Item) int { return strings.Compare(a.Location.Path, b.Location.Path) })
	return out
}

// Below lists the active items at a path and below it, by path.
func (c *Catalog) Below(path string) (out []*Item) {
	if i := c.At(Here(path)); i != nil && path != "." {
		out = append(out, i)
	}
	for folder := range c.under {
		if path == "." || folder == path || strings.HasPrefix(folder, path+"/") {
			out = append(out, c.In(folder)...)
		}
	}
	slices.SortFunc(out, func(a, b *Item) int { return strings.Compare(a.Location.Path, b.Location.Path) })
	return out
}

// External lists the active items outside of the space, by path.
func (c *Catalog) External() (out []*Item) {
	for l, id := range c.at {
		if l.Kind == External {
			out = append(out, c.items[id])
		}
	}
	slices.SortFunc(out, func(a, b *Item) int { return strings.Compare(a.Location.Path, b.Location.Path) })
	return out
}

// TakenError says that two active items would have one place.
type TakenError struct {
	Location Location
	IDs      [2]string
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s belongs to two items, %s and %s", e.Location.Path, e.IDs[0], e.IDs[1])
}

// MissingError says that a member names an item which was never there.
type MissingError struct{ ID, Member string }

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("item %s has a member %s, and there is no such item", e.ID, e.Member)
}

// ChangedError says that an item is not what a delta counts on.
type ChangedError struct{ ID string }

// Error implements error.
func (e *ChangedError) Error() string { return fmt.Sprintf("item %s was changed meanwhile", e.ID) }

// Check says whether a delta can be applied: each item is as it was before, no two active items have one place afterwards, and every
// member is there. Errors: *ChangedError, *TakenError, *MissingError.
func (c *Catalog) Check(delta []Change) error {
	next := make(map[string]*Item, len(delta))
	for _, d := range delta {
		if !c.items[d.After.ID].Same(d.Before) {
			return &ChangedError{d.After.ID}
		}
		next[d.After.ID] = d.After
	}
	places := map[Location]string{}
	for _, d := range delta {
		i := d.After
		if i.State == Active {
			owner := c.at[i.Location]
			if moved, ok := next[owner]; ok && (moved.State != Active || moved.Location != i.Location) {
				owner = ""
			}
			if other := places[i.Location]; other != "" {
				owner = other
			}
			if owner != "" && owner != i.ID {
				return &TakenError{i.Location, [2]string{owner, i.ID}}
			}
			places[i.Location] = i.ID
		}
		for _, m := range i.Members {
			if m.Target.ID != "" && next[m.Target.ID] == nil && c.items[m.Target.ID] == nil {
				return &MissingError{i.ID, m.Target.ID}
			}
		}
	}
	return nil
}

// Apply makes a delta true, whatever was before.
func (c *Catalog) Apply(delta []Change) {
	for _, d := range delta {
		c.forget(c.items[d.After.ID])
	}
	for _, d := range delta {
		c.put(d.After)
	}
}

func (c *Catalog) forget(i *Item) {
	if i == nil || i.State != Active || c.at[i.Location] != i.ID {
		return
	}
	delete(c.at, i.Location)
	if i.Location.Kind == Relative {
		folder := Folder(i.Location.Path)
		if delete(c.under[folder], i.ID); len(c.under[folder]) == 0 {
			delete(c.under, folder)
		}
	}
}

func (c *Catalog) put(i *Item) {
	c.items[i.ID] = i
	if i.State != Active {
		return
	}
	c.at[i.Location] = i.ID
	if i.Location.Kind == Relative && i.Location.Path != "." {
		folder := Folder(i.Location.Path)
		if c.under[folder] == nil {
			c.under[folder] = map[string]bool{}
		}
		c.under[folder][i.ID] = true
	}
}

// Folder is the path of the folder in which a path of the space lies; "." for those at its top.
func Folder(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// Fold is what two paths have in common that some file system or some eye takes for one: canonical composition and full case folding.
func Fold(path string) string { return norm.NFC.String(cases.Fold().String(norm.NFC.String(path))) }
