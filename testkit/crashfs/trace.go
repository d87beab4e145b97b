package crashfs

import (
	"fmt"
	"slices"
	"sync"
)

// Step is a call that changed the disk, or a sync, which changes what a crash leaves.
type Step struct {
	Op     string // create, write, truncate, preallocate, sync, mkdir, rename, remove, syncdir; flip for Flip
	Path   string // from the disk's root
	To     string // of a rename
	Offset int64  // of a write
	Size   int64  // bytes written, or the new size
	Failed bool   // a sync that reported an error
}

// String names the step for messages: "write a/b 512+100".
func (s Step) String() string {
	text := s.Op + " " + s.Path
	switch s.Op {
	case "write":
		text += fmt.Sprintf(" %d+%d", s.Offset, s.Size)
	case "truncate", "preallocate":
		text += fmt.Sprintf(" to %d", s.Size)
	case "rename":
		text += " to " + s.To
	case "sync":
		if s.Failed {
			text += " (failed)"
		}
	}
	return text
}

// Mark says that something had happened when so many steps were done: what was acknowledged there must be found in every crash
// state of At(Step) and later ones.
type Mark struct {
	Label string
	Step  int
}

// Trace is the record of what was done to a disk. Steps are counted from 1, in the order in which they took effect. A Trace is
// safe for concurrent use, also while it grows; it keeps a copy of all bytes written.
type Trace struct {
	disk *FS // its root

	mu    sync.Mutex
	steps []change
	marks []Mark

	// base is the disk when the recording began, and known its nodes by those of the recorded disk. replica has seen done steps.
	base    *node
	known   map[*node]*node
	replica *node
	now     map[*node]*node
	done    int
}

// Record starts a trace of the whole disk, also when called on a folder of it. It ends the trace before, which stays readable.
func (f *FS) Record() *Trace {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	known := copies{}
	t := &Trace{disk: &FS{d: f.d, root: f.d.root}, base: known.of(f.d.root)}
	for _, h := range f.d.open {
		known.of(h.node) // removed, and still written to
	}
	t.known = known
	f.d.trace = t
	return t
}

// Stop ends the recording. The trace stays readable.
func (t *Trace) Stop() {
	t.disk.d.mu.Lock()
	defer t.disk.d.mu.Unlock()
	if t.disk.d.trace == t {
		t.disk.d.trace = nil
	}
}

func (t *Trace) add(c change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, c)
}

// Len returns how many steps were done so far.
func (t *Trace) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.steps)
}

// Steps returns the steps done so far; Steps()[i-1] is the one that leads to At(i).
func (t *Trace) Steps() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Step, len(t.steps))
	for i, c := range t.steps {
		out[i] = c.Step
	}
	return out
}

// Mark notes that something happened after the steps so far, typically that an operation was acknowledged. When other
// goroutines work on the disk, the mark may be late by their steps, never early.
func (t *Trace) Mark(label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, Mark{label, len(t.steps)})
}

// Marks returns the marks so far in their order.
func (t *Trace) Marks() []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.marks)
}

// At returns the disk right after step i with all that was not durable then; At(0) is the disk when the recording began. It
// panics when there is no such step. The disk returned is a new one, on which nothing is open, and its space is the recorded disk's.
//
// Going upwards costs the bytes of the steps in between, going back those of all steps before i; besides, each call costs one
// visit of each file and name. The bytes of files are shared, not copied.
func (t *Trace) At(i int) *FS {
	t.disk.d.mu.Lock()
	limit := t.disk.d.limit
	t.disk.d.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if i < 0 || i > len(t.steps) {
		panic(fmt.Sprintf("step %d of a trace of %d", i, len(t.steps)))
	}
	if t.replica == nil || i < t.done {
		t.rewind()
	}
	for ; t.done < i; t.done++ {
		t.replay(t.steps[t.done])
	}
	return newDisk(copies{}.of(t.replica), limit, uint64(i))
}

func (t *Trace) rewind() {
	fresh := copies{}
	t.replica, t.done = fresh.of(t.base), 0
	t.now = make(map[*node]*node, len(t.known))
	for recorded, copied := range t.known {
		t.now[recorded] = fresh.of(copied)
	}
}

// replay does a step of the recorded disk to the replica.
func (t *Trace) replay(c change) {
	switch c.Op {
	case "create":
		t.now[c.node] = newFile(c.node.mode, c.at)
	case "mkdir":
		t.now[c.node] = newDir(c.node.mode, c.at)
	}
	c.node, c.dir, c.to = t.now[c.node], t.now[c.dir], t.now[c.to]
	c.apply()
}
