package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// long reports whether the long form of the batteries is wanted.
func long() bool { return os.Getenv("REPA_TEST") == "long" }

// scale chooses between the short and the long form of a battery.
func scale(short, many int) int {
	if long() {
		return many
	}
	return short
}

// fewer is a number of rounds, and a fifth of it in the short form under the race detector.
func fewer(n int) int {
	if raced && !long() {
		return max(1, n/5)
	}
	return n
}

// seed is REPA_TEST_SEED or any; it is printed.
func seed(t testing.TB) uint64 {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("REPA_TEST_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("REPA_TEST_SEED: %v", err)
		}
		s = n
	}
	t.Logf("REPA_TEST_SEED=%d", s)
	return s
}

// state is what a model says that a store holds: objects that are there, and who holds which.
type state struct {
	objects map[cas.ID]bool
	held    map[cas.Owner]map[cas.ID]bool
}

func newState() state {
	return state{map[cas.ID]bool{}, map[cas.Owner]map[cas.ID]bool{}}
}

func (m state) clone() state {
	out := state{maps.Clone(m.objects), map[cas.Owner]map[cas.ID]bool{}}
	for o, ids := range m.held {
		out.held[o] = maps.Clone(ids)
	}
	return out
}

func (m state) hold(o cas.Owner, ids ...cas.ID) {
	if m.held[o] == nil {
		m.held[o] = map[cas.ID]bool{}
	}
	for _, id := range ids {
		m.held[o][id] = true
	}
}

func (m state) release(o cas.Owner, ids ...cas.ID) {
	for _, id := range ids {
		delete(m.held[o], id)
	}
	if len(m.held[o]) == 0 || len(ids) == 0 {
		delete(m.held, o)
	}
}

// collect drops what nobody holds.
func (m state) collect() {
	kept := map[cas.ID]bool{}
	for _, ids := range m.held {
		maps.Copy(kept, ids)
	}
	maps.DeleteFunc(m.objects, func(id cas.ID, _ bool) bool { return !kept[id] })
}

// holds is the text of who holds what, for comparing.
func (m state) holds() string {
	var lines []string
	for o, ids := range m.held {
		var names []string
		for id := range ids {
			names = append(names, id.String()[:8])
		}
		slices.Sort(names)
		lines = append(lines, o.String()+"="+strings.Join(names, ","))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// holdsOf is the same of a store.
func holdsOf(s *cas.Store) string {
	m := newState()
	for o := range s.AllOwners("") {
		m.hold(o, s.Held(o)...)
	}
	return m.holds()
}

// sound checks what must be true of every store without damage: objects that are there or held are read back exactly, and it is not in doubt.
func sound(s *cas.Store, bytesOf map[cas.ID][]byte, want map[cas.ID]bool) error {
	for o := range s.AllOwners("") {
		for _, id := range s.Held(o) {
			if got, err := s.Get(ctx, id, -1); err != nil || !bytes.Equal(got, bytesOf[id]) {
				return fmt.Errorf("held by %s: %d bytes, %w", o, len(got), err)
			}
		}
	}
	for id := range want {
		if got, err := s.Get(ctx, id, -1); err != nil || !bytes.Equal(got, bytesOf[id]) {
			return fmt.Errorf("acknowledged %s: %d bytes, %w", id, len(got), err)
		}
	}
	if doubt := s.Stats().InDoubt; doubt != "" {
		return errors.New("in doubt: " + doubt)
	}
	v, err := s.Verify(ctx, nil)
	if err != nil {
		return err
	}
	if !v.Sound() {
		return fmt.Errorf("not sound: %+v", v)
	}
	return nil
}

// tidy checks that a closed store left nothing open and no temporary file.
func tidy(disk *crashfs.FS) error {
	if open := disk.OpenFiles(); len(open) > 0 {
		return fmt.Errorf("left open: %v", open)
	}
	for _, dir := range []string{".", "packs"} {
		entries, err := disk.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), ".tmp") {
				return fmt.Errorf("left behind: %s", path.Join(dir, e.Name()))
			}
		}
	}
	return nil
}

// nothing tells an object apart from all others of the batteries.
func nothing(i int) []byte { return fmt.Appendf(nil, "written after the crash, %d", i) }

// packs lists the pack files of a store.
func packs(t testing.TB, disk *crashfs.FS) (out []string) {
	t.Helper()
	entries, err := disk.ReadDir("packs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, "packs/"+e.Name())
	}
	return out
}

func isDamage(err error) bool {
	var damage *cas.DamageError
	return errors.As(err, &damage)
}

func isNotFound(err error) bool { return errors.Is(err, cas.ErrNotFound) }

// subOf opens a folder for a store of its own.
func subOf(disk *crashfs.FS) (vfs.FS, error) {
	if err := vfs.MkdirAll(disk, "fresh", 0o700); err != nil {
		return nil, err
	}
	return disk.Sub("fresh")
}
