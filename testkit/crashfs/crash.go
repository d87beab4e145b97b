package crashfs

import (
	"bytes"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash returns the disk as it may be found after power loss; f itself goes on unharmed. With a nil rng only what was synced
// is kept; otherwise rng decides about every unsynced sector, size and name. Of a file that grew it takes the durable size in
// half of the cases and else any byte up to the current one: good for torn tails, while the whole size with holes before it is
// rare; for those take Subsets. On the new disk everything is durable, nothing is open or locked, no fault is installed, and the
// space is the same.
func (f *FS) Crash(rng *rand.Rand) *FS {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if rng == nil {
		return f.crash(oldest, oldest.size)
	}
	return f.crash(random(rng), anyByte(rng))
}

// All returns the disk as the next process finds it when this one was killed and the machine goes on: everything is there, and
// what was not synced is still not durable, so that a Crash of the new disk may lose it. Nothing is open or locked.
func (f *FS) All() *FS {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return newDisk(copies{}.of(f.root), f.d.limit, f.d.seed)
}

// Subsets yields what power loss may leave: each legal state once or, when there are more than limit, limit of them chosen by a
// fixed seed (a state may come twice then), the first with synced effects only and the second with all. A limit below 1 yields none.
// The states are those at the moment the iteration begins.
func (f *FS) Subsets(limit int) iter.Seq[*FS] {
	return func(yield func(*FS) bool) {
		still := f.All()
		if limit < 1 {
			return
		}
		if still.states(limit) > limit {
			still.sample(limit, yield)
			return
		}
		for o := (odometer{}); ; {
			if p := pick(o.pick); !yield(still.crash(p, p.size)) || !o.next() {
				return
			}
		}
	}
}

func (f *FS) sample(limit int, yield func(*FS) bool) {
	rng := rand.New(rand.NewPCG(f.d.seed, uint64(limit)))
	for i := range limit {
		p := random(rng)
		switch i {
		case 0:
			p = oldest
		case 1:
			p = newest
		}
		if !yield(f.crash(p, p.size)) {
			return
		}
	}
}

// states counts the crash states, at most to limit+1.
func (f *FS) states(limit int) int {
	known := map[*node]int{}
	total := 0
	for o := (odometer{}); ; {
		product := 1
		c := crash{pick: o.pick, seen: map[*node]*node{}, file: func(n *node) image {
			if known[n] == 0 {
				known[n] = n.states(limit)
			}
			product = min(product*known[n], limit+1)
			return image{}
		}}
		c.dirOf(f.root)
		if total += product; total > limit {
			return limit + 1
		}
		if !o.next() {
			return total
		}
	}
}

// pick chooses one of n possibilities for one effect. 0 is the durable one, current the one of the running disk.
type pick func(n, current int) int

var (
	oldest pick = func(int, int) int { return 0 }
	newest pick = func(_, current int) int { return current }
)

// sizer chooses one of the different sizes of a file, the first of which is durable.
type sizer func(sizes []int64, current int) int64

func (p pick) size(sizes []int64, current int) int64 { return sizes[p(len(sizes), current)] }

func anyByte(rng *rand.Rand) sizer {
	return func(sizes []int64, current int) int64 {
		durable, now := sizes[0], sizes[current]
		switch {
		case rng.IntN(2) == 0:
			return durable
		case now > durable:
			return durable + rng.Int64N(now-durable+1)
		default:
			return sizes[rng.IntN(len(sizes))]
		}
	}
}

// random favours both ends, so that a long row of possible sizes still often gives the old and the new size.
func random(rng *rand.Rand) pick {
	return func(n, current int) int {
		switch rng.IntN(3) {
		case 0:
			return 0
		case 1:
			return current
		default:
			return rng.IntN(n)
		}
	}
}

// odometer goes through all rows of choices, the last choice fastest. Which choices there are may depend on those before.
type odometer struct {
	digits, sizes []int
	at            int
}

func (o *odometer) pick(n, _ int) int {
	if o.at == len(o.digits) {
		o.digits, o.sizes = append(o.digits, 0), append(o.sizes, n)
	}
	o.at++
	return o.digits[o.at-1]
}

func (o *odometer) next() bool {
	for o.at = len(o.digits) - 1; o.at >= 0; o.at-- {
		if o.digits[o.at]++; o.digits[o.at] < o.sizes[o.at] {
			o.digits, o.sizes, o.at = o.digits[:o.at+1], o.sizes[:o.at+1], 0
			return true
		}
	}
	return false
}

func (f *FS) crash(p pick, size sizer) *FS {
	c := crash{pick: p, seen: map[*node]*node{}, file: func(n *node) image { return n.after(p, size) }}
	return newDisk(c.dirOf(f.root), f.d.limit, f.d.seed)
}

// crash builds the tree after power loss, in an order that depends on the choices alone.
type crash struct {
	pick pick
	file func(*node) image
	seen map[*node]*node
}

func (c *crash) dirOf(n *node) *node {
	out := newDir(n.mode, n.modified)
	c.seen[n] = out
	for _, name := range n.everyName() {
		if child := n.choose(name, c.pick); child != nil {
			if placed := c.child(child); placed != nil {
				placed.links++
				out.names[name], out.kept[name] = placed, placed
			}
		}
	}
	return out
}

// child returns nil for a folder that has a place already: a move left both names, and repair takes one away.
func (c *crash) child(n *node) *node {
	placed := c.seen[n]
	switch {
	case placed != nil && n.dir:
		return nil
	case placed != nil:
		return placed
	case n.dir:
		return c.dirOf(n)
	}
	content := c.file(n)
	c.seen[n] = &node{mode: n.mode, modified: n.modified, now: content, durable: content}
	return c.seen[n]
}

func (n *node) everyName() []string {
	names := slices.Collect(maps.Keys(n.kept))
	for name := range n.past {
		if n.kept[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// choose says what a name leads to: what it durably led to, or what any change since made of it.
func (n *node) choose(name string, p pick) *node {
	possible, current := []*node{n.kept[name]}, 0
	for _, child := range n.past[name] {
		if current = slices.Index(possible, child); current < 0 {
			current = len(possible)
			possible = append(possible, child)
		}
	}
	if len(possible) == 1 {
		return possible[0]
	}
	return possible[p(len(possible), current)]
}

func (n *node) undecided() []version { return slices.Concat(n.lost, n.pending) }

// after chooses the content of a file.
func (n *node) after(p pick, choose sizer) image {
	versions := n.undecided()
	if len(versions) == 0 {
		return n.durable
	}
	sizes, current := n.sizes(versions)
	size := sizes[0]
	if len(sizes) > 1 {
		size = choose(sizes, current)
	}
	e := n.durable.resize(size).edit()
	for _, u := range touched(versions, size) {
		if values, current := n.values(u, size); len(values) > 1 {
			if i := p(len(values), current); i > 0 {
				e.write(values[i], u.sector*sector)
			}
		}
	}
	return e.image
}

// states counts the contents a file may have, at most to limit+1.
func (n *node) states(limit int) int {
	versions := n.undecided()
	sizes, _ := n.sizes(versions)
	total := 0
	for _, size := range sizes {
		product := 1
		for _, u := range touched(versions, size) {
			values, _ := n.values(u, size)
			if product *= len(values); product > limit {
				return limit + 1
			}
		}
		if total += product; total > limit {
			return limit + 1
		}
	}
	return total
}

// sizes returns the sizes a file may have. A write that made it grow may have been under way: every sector's end counts.
func (n *node) sizes(versions []version) (out []int64, current int) {
	out = []int64{n.durable.size}
	known := map[int64]int{n.durable.size: 0}
	add := func(size int64) {
		if _, ok := known[size]; !ok {
			known[size] = len(out)
			out = append(out, size)
		}
		current = known[size]
	}
	before := n.durable.size
	for _, v := range versions {
		if !v.sized {
			continue
		}
		if v.grown {
			for s := before/sector + 1; s*sector < v.size; s++ {
				add(s * sector)
			}
		}
		add(v.size)
		before = v.size
	}
	return out, current
}

// unsure is a sector that some versions wrote, in their order.
type unsure struct {
	sector   int64
	versions []*version
}

// touched returns the sectors below size that were written, upwards.
func touched(versions []version, size int64) []unsure {
	at := map[int64]int{}
	var out []unsure
	for i, v := range versions {
		for s := v.from; s < v.to && s*sector < size; s++ {
			u, ok := at[s]
			if !ok {
				u = len(out)
				at[s] = u
				out = append(out, unsure{sector: s})
			}
			out[u].versions = append(out[u].versions, &versions[i])
		}
	}
	slices.SortFunc(out, func(a, b unsure) int { return int(a.sector - b.sector) })
	return out
}

// values returns the different bytes a sector may hold below size, the durable ones first.
func (n *node) values(u unsure, size int64) (out [][]byte, current int) {
	length := min(sector, size-u.sector*sector)
	out = [][]byte{n.durable.sector(u.sector)[:length]}
	for _, v := range u.versions {
		value := v.sector(u.sector)[:length]
		current = slices.IndexFunc(out, func(b []byte) bool { return bytes.Equal(b, value) })
		if current < 0 {
			current = len(out)
			out = append(out, value)
		}
	}
	return out, current
}

// copies makes equal trees that change apart from the first, what is not durable included.
type copies map[*node]*node

func (c copies) of(n *node) *node {
	if n == nil || c[n] != nil {
		return c[n]
	}
	out := new(node)
	*out = *n
	c[n] = out
	out.handles = 0
	out.lost, out.pending = slices.Clone(n.lost), slices.Clone(n.pending)
	if !n.dir {
		return out
	}
	out.names, out.kept, out.past = c.entries(n.names), c.entries(n.kept), map[string][]*node{}
	for name, children := range n.past {
		for _, child := range children {
			out.past[name] = append(out.past[name], c.of(child))
		}
	}
	out.left = slices.Clone(n.left)
	for i := range out.left {
		out.left[i].dir = c.of(out.left[i].dir)
	}
	return out
}

func (c copies) entries(names map[string]*node) map[string]*node {
	out := make(map[string]*node, len(names))
	for name, child := range names {
		out[name] = c.of(child)
	}
	return out
}
