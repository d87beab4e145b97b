package crashfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// model is the slow, obvious disk: one folder, whole copies.
type model struct {
	names, kept map[string]*modelFile
	led         map[string][]*modelFile // each name to whatever it led to since the last SyncDir, and durably before
}

type modelFile struct {
	now, durable []byte
	dirty        map[int]bool
	held         map[int]map[string]bool // every value a sector ever had, padded with zeros
	sizes        map[int]bool
}

const sectorSize = 512

func sectorOf(data []byte, s int) string {
	out := make([]byte, sectorSize)
	if at := s * sectorSize; at < len(data) {
		copy(out, data[at:])
	}
	return string(out)
}

func (f *modelFile) become(next []byte) {
	for s := range (max(len(f.now), len(next)) + sectorSize - 1) / sectorSize {
		if sectorOf(f.now, s) != sectorOf(next, s) {
			f.dirty[s] = true
		}
		f.hold(s, sectorOf(next, s))
	}
	for size := len(f.now); size <= len(next); size++ {
		f.sizes[size] = true
	}
	f.sizes[len(next)] = true
	f.now = next
}

func (f *modelFile) hold(s int, value string) {
	if f.held[s] == nil {
		f.held[s] = map[string]bool{sectorOf(nil, 0): true}
	}
	f.held[s][value] = true
}

func (f *modelFile) sync(ok bool) {
	if ok {
		durable := make([]byte, len(f.now))
		copy(durable, f.durable)
		for s := range f.dirty {
			if at := s * sectorSize; at < len(f.now) {
				copy(durable[at:min(at+sectorSize, len(durable))], f.now[at:])
			}
		}
		f.durable = durable
	}
	f.dirty = map[int]bool{}
}

func (m *model) set(name string, f *modelFile) {
	if f == nil {
		delete(m.names, name)
	} else {
		m.names[name] = f
	}
	m.led[name] = append(m.led[name], f)
}

func (m *model) syncDir() {
	m.kept = maps.Clone(m.names)
	m.led = map[string][]*modelFile{}
	for name, f := range m.kept {
		m.led[name] = []*modelFile{f}
	}
}

func contents(names map[string]*modelFile, of func(*modelFile) []byte) map[string]string {
	out := map[string]string{}
	for name, f := range names {
		out[name] = string(of(f))
	}
	return out
}

func (m *model) visible() map[string]string {
	return contents(m.names, func(f *modelFile) []byte { return f.now })
}
func (m *model) safe() map[string]string {
	return contents(m.kept, func(f *modelFile) []byte { return f.durable })
}

// legal says why a crash state cannot be, or nothing.
func (m *model) legal(state map[string]string) string {
	for name := range m.kept {
		if _, there := state[name]; !there && !slices.Contains(m.led[name], nil) {
			return name + " is durable and gone"
		}
	}
	for name, data := range state {
		if !slices.ContainsFunc(m.led[name], func(f *modelFile) bool { return f != nil && f.mayBe(data) }) {
			return fmt.Sprintf("%s holds %d bytes that it cannot", name, len(data))
		}
	}
	return ""
}

func (f *modelFile) mayBe(data string) bool {
	if !f.sizes[len(data)] {
		return false
	}
	for s := range (len(data) + sectorSize - 1) / sectorSize {
		got, ok := sectorOf([]byte(data), s), false
		for value := range f.held[s] {
			ok = ok || got == sectorOf([]byte(value)[:min(sectorSize, len(data)-s*sectorSize)], 0)
		}
		if !ok {
			return false
		}
	}
	return true
}

func files(t interface{ Fatal(...any) }, fsys vfs.FS) map[string]string {
	entries, err := fsys.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := vfs.ReadFile(fsys, e.Name(), -1)
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// same compares without printing kilobytes.
func same(t *rapid.T, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for name := range want {
		if g, ok := got[name]; !ok || g != want[name] {
			t.Fatalf("%s: %s has %d bytes (there: %v), want %d", what, name, len(g), ok, len(want[name]))
		}
	}
	t.Fatalf("%s: %d names, want %d", what, len(got), len(want))
}

type moment struct{ visible, safe map[string]string }

// Any sequence of calls gives what the model gives, at every step of the trace, in any order of looking; every crash state is legal.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := crashfs.New()
		m := &model{names: map[string]*modelFile{}, kept: map[string]*modelFile{}, led: map[string][]*modelFile{}}
		trace := disk.Record()
		moments := []moment{{m.visible(), m.safe()}}
		for range rapid.IntRange(1, 25).Draw(rt, "calls") {
			before := trace.Len()
			step(rt, disk, m)
			for range trace.Len() - before {
				moments = append(moments, moment{m.visible(), m.safe()})
			}
			same(rt, "live", files(rt, disk), m.visible())
			same(rt, "synced", files(rt, disk.Crash(nil)), m.safe())
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
			states := []*crashfs.FS{disk.Crash(rng), disk.Crash(rng)}
			states = slices.AppendSeq(states, disk.Subsets(12))
			for _, s := range states {
				if why := m.legal(files(rt, s)); why != "" {
					rt.Fatal(why)
				}
			}
		}
		if trace.Len()+1 != len(moments) {
			rt.Fatalf("%d steps, %d moments", trace.Len(), len(moments))
		}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 2)).Perm(len(moments))
		for _, i := range append(order, slices.Sorted(slices.Values(order))...) {
			at := trace.At(i)
			same(rt, fmt.Sprint("all at ", i), files(rt, at.All()), moments[i].visible)
			same(rt, fmt.Sprint("synced at ", i), files(rt, at.Crash(nil)), moments[i].safe)
			same(rt, fmt.Sprint("killed, then no power, at ", i), files(rt, at.All().Crash(nil)), moments[i].safe)
		}
	})
}

// step does one call that makes exactly one step or none.
func step(rt *rapid.T, disk *crashfs.FS, m *model) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
	f := m.names[name]
	switch call := rapid.IntRange(0, 9).Draw(rt, "call"); {
	case f == nil && call < 7:
		h, err := disk.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			rt.Fatal(err)
		}
		defer h.Close()
		m.set(name, &modelFile{dirty: map[int]bool{}, held: map[int]map[string]bool{}, sizes: map[int]bool{0: true}})
	case call < 7:
		h, err := disk.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			rt.Fatal(err)
		}
		defer h.Close()
		if err := fileCall(rt, disk, h, f, call); err != nil {
			rt.Fatal(err)
		}
	case call == 7 && f != nil:
		to := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "new name")
		if err := disk.Rename(name, to); err != nil {
			rt.Fatal(err)
		}
		if to != name {
			m.set(name, nil)
			m.set(to, f)
		}
	case call == 8 && f != nil:
		if err := disk.Remove(name); err != nil {
			rt.Fatal(err)
		}
		m.set(name, nil)
	default:
		if err := disk.SyncDir("."); err != nil {
			rt.Fatal(err)
		}
		m.syncDir()
	}
}

func fileCall(rt *rapid.T, disk *crashfs.FS, h vfs.File, f *modelFile, call int) error {
	size := rapid.SampledFrom([]int{1, 100, 511, 512, 513, 1024, 3000, 4095, 4097, 9000}).Draw(rt, "size")
	switch call {
	case 0, 1:
		off := rapid.SampledFrom([]int{0, len(f.now), 300, 5000}).Draw(rt, "offset")
		p := bytes.Repeat([]byte{byte('A' + rapid.IntRange(0, 25).Draw(rt, "letter"))}, size)
		next := make([]byte, max(len(f.now), off+size))
		copy(next, f.now)
		copy(next[off:], p)
		f.become(next)
		_, err := h.WriteAt(p, int64(off))
		clear(p) // the disk may not keep the caller's buffer
		return err
	case 2:
		next := make([]byte, size)
		copy(next, f.now)
		f.become(next)
		return h.Truncate(int64(size))
	case 3:
		next := make([]byte, max(size, len(f.now)))
		copy(next, f.now)
		f.become(next)
		return h.Preallocate(int64(size))
	case 4:
		disk.SetFault(crashfs.SyncFailsOnce("*"))
		defer disk.SetFault(nil)
		f.sync(false)
		if err := h.Sync(); !errors.Is(err, syscall.EIO) {
			return fmt.Errorf("a sync that must fail: %w", err)
		}
		return nil
	default:
		f.sync(true)
		return h.Sync()
	}
}
