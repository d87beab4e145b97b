package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// damagedStore is a small store that is to be damaged, and what it acknowledged.
type damagedStore struct {
	disk    *crashfs.FS
	opts    cas.Options
	bytesOf map[cas.ID][]byte
	holds   string
}

// newDamagedStore makes a store in a few packs with two checkpoints. When it was killed, its last pack lies behind them.
func newDamagedStore(t testing.TB, killed bool) *damagedStore {
	d := &damagedStore{disk: crashfs.New(), bytesOf: map[cas.ID][]byte{}}
	d.opts = cas.Options{FS: d.disk, SegmentSize: 3000, Elapsed: (&manual{}).now}
	var s *cas.Store
	n := uint64(0)
	for round := range 3 {
		s = open(t, d.opts)
		for i := range 3 {
			n++
			data := content(n, 200+300*i)
			d.bytesOf[must[[]cas.ID](t)(s.PutHeld(ctx, document(fmt.Sprint(n)), data))[0]] = data
			if err := s.Hold(ctx, ownerB, cas.Sum(data)); err != nil {
				t.Fatal(err)
			}
		}
		d.holds = holdsOf(s)
		if round == 2 && killed {
			d.disk = d.disk.All()
			d.opts.FS = d.disk
		}
		closeStore(t, s)
	}
	return d
}

// check opens the store and checks C4: right bytes or an error that Verify knows of, never other bytes; everything heals when it is put again, and
// Repair makes it sound. The end of what was acknowledged may be missing silently when acknowledgedEnd is false.
func (d *damagedStore) check(disk *crashfs.FS, acknowledgedEnd bool, most int) error {
	opts := d.opts
	opts.FS = disk
	before := snapshot(disk)
	s, err := cas.Open(ctx, "store", opts)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	v, err := s.Verify(ctx, nil)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	missing := 0
	for id, want := range d.bytesOf {
		got, err := s.Get(ctx, id, -1)
		switch {
		case err == nil && !bytes.Equal(got, want):
			return fmt.Errorf("%s: other bytes", id)
		case err != nil && !isDamage(err) && !isNotFound(err):
			return fmt.Errorf("%s: %w", id, err)
		case err != nil:
			missing++
		}
	}
	if missing > most {
		return fmt.Errorf("%d objects are gone", missing)
	}
	if (missing > 0 || holdsOf(s) != d.holds) && v.Sound() && acknowledgedEnd {
		return fmt.Errorf("%d objects are gone and it is sound; holds %s, want %s", missing, holdsOf(s), d.holds)
	}
	if _, err := s.Collect(ctx); err != nil && !errors.Is(err, cas.ErrInDoubt) {
		return fmt.Errorf("collect: %w", err)
	}
	held := holdsOf(s)
	if err := d.heal(s); err != nil {
		return err
	}
	out, err := s.Repair(ctx, nil)
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	for _, name := range out.Aside {
		was := before[strings.TrimPrefix(name, "damaged/")]
		if got, err := readAll(disk, name); err != nil || !bytes.HasPrefix(got, bytes.TrimRight(was, "\x00")) {
			return fmt.Errorf("%s was changed (%d bytes, were %d): %w", name, len(got), len(was), err)
		}
	}
	for range 2 {
		if err := sound(s, d.bytesOf, keys(d.bytesOf)); err != nil {
			return fmt.Errorf("repaired: %w (%+v)", err, out)
		}
		if got := holdsOf(s); !strings.Contains(got, "recovered") && got != held {
			return fmt.Errorf("repaired: holds %s, want %s", got, held)
		}
		if err := s.Close(); err != nil {
			return err
		}
		if s, err = cas.Open(ctx, "store", opts); err != nil {
			return fmt.Errorf("open after repair: %w", err)
		}
		defer s.Close()
	}
	return nil
}

// heal puts everything again.
func (d *damagedStore) heal(s *cas.Store) error {
	for id, data := range d.bytesOf {
		if _, err := s.Put(ctx, data); err != nil {
			return fmt.Errorf("put again: %w", err)
		}
		if got, err := s.Get(ctx, id, -1); err != nil || !bytes.Equal(got, data) {
			return fmt.Errorf("put again: %d bytes, %w", len(got), err)
		}
	}
	return nil
}

func keys[V any](m map[cas.ID]V) map[cas.ID]bool {
	out := map[cas.ID]bool{}
	for id := range m {
		out[id] = true
	}
	return out
}

// snapshot returns the files that damage may hit, by their last name.
func snapshot(disk *crashfs.FS) map[string][]byte {
	out := map[string][]byte{}
	for _, dir := range []string{".", "packs"} {
		entries, _ := disk.ReadDir(dir)
		for _, e := range entries {
			if name := dir + "/" + e.Name(); !e.IsDir() && (dir == "packs" || strings.HasPrefix(e.Name(), "checkpoint-")) {
				out[e.Name()], _ = readAll(disk, strings.TrimPrefix(name, "./"))
			}
		}
	}
	return out
}

func readAll(disk *crashfs.FS, name string) ([]byte, error) {
	f, err := disk.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	if info.Size() == 0 {
		err = nil
	}
	return data, err
}

// write replaces a file.
func write(t testing.TB, disk *crashfs.FS, name string, data []byte) {
	t.Helper()
	f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(data)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func fileOf(name string) string {
	if strings.HasSuffix(name, ".pack") {
		return "packs/" + name
	}
	return name
}

// TestEveryFlippedBit (C4).
func TestEveryFlippedBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 4))
	stride := scale(305/fewer(5), 1)
	flips := 0
	for _, killed := range []bool{false, true} {
		d := newDamagedStore(t, killed)
		files := snapshot(d.disk)
		names := slices.Sorted(maps.Keys(files))
		newest := slices.Max(packs(t, d.disk))
		for _, name := range names {
			data := bytes.TrimRight(files[name], "\x00")
			for bit := rng.IntN(stride); bit < 8*len(data); bit += stride {
				flips++
				disk := d.disk.Crash(nil)
				disk.Flip(fileOf(name), bit/8, uint(bit%8))
				// Of the newest pack of a killed store, nobody can tell a flip in the last write from one that did not come to its end.
				if err := d.check(disk, !(killed && fileOf(name) == newest), 1); err != nil {
					t.Fatalf("killed %t: bit %d of %s: %v", killed, bit, name, err)
				}
			}
		}
	}
	t.Logf("%d bits flipped", flips)
}

// TestEveryTruncation (C4): each file is cut in its last two records and at random places.
func TestEveryTruncation(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 5))
	cuts := 0
	for _, killed := range []bool{false, true} {
		d := newDamagedStore(t, killed)
		files := snapshot(d.disk)
		newest := slices.Max(packs(t, d.disk))
		for name, data := range files {
			end := len(bytes.TrimRight(data, "\x00"))
			last := max(0, end-1100) // two records at least
			for range scale(12, 2*1100) {
				n := rng.IntN(end + 1)
				if rng.IntN(3) > 0 {
					n = last + rng.IntN(end-last+1)
				}
				cuts++
				disk := d.disk.Crash(nil)
				write(t, disk, fileOf(name), data[:n])
				if err := d.check(disk, n == end || !(killed && fileOf(name) == newest), len(d.bytesOf)); err != nil {
					t.Fatalf("killed %t: %s of %d bytes cut at %d: %v", killed, name, end, n, err)
				}
			}
		}
	}
	t.Logf("%d cuts", cuts)
}
