package cas_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

// packOf returns the only pack of a store.
func packOf(t testing.TB, disk *crashfs.FS) string {
	t.Helper()
	entries, err := disk.ReadDir("packs")
	if err != nil || len(entries) == 0 {
		t.Fatalf("packs: %v, %v", entries, err)
	}
	return "packs/" + entries[len(entries)-1].Name()
}

func TestDamageNamesTheObjectAndPutHeals(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	one := content(1, 5000)
	ids := must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), one))
	ids = append(ids, must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(2, 6000), content(3, 2<<20)))...)
	closeStore(t, s)
	disk.Flip(packOf(t, disk), 64+20+44+100, 3)

	s = open(t, cas.Options{FS: disk})
	v := must[cas.Verification](t)(s.Verify(ctx, nil))
	if len(v.Damaged) != 1 || v.Damaged[0].ID != ids[0] || !slices.Equal(v.Damaged[0].Owners, []cas.Owner{document("d")}) || v.Damaged[0].Offset != 64 {
		t.Fatalf("verify: %+v", v)
	}
	var damage *cas.DamageError
	if _, err := s.Get(ctx, ids[0], -1); !errors.As(err, &damage) || damage.ID != ids[0] {
		t.Errorf("get: %v", err)
	}
	wantBytes(t, s, ids[1], content(2, 6000))
	wantBytes(t, s, ids[2], content(3, 2<<20))
	if must[cas.ID](t)(s.Put(ctx, one)) != ids[0] {
		t.Error("another id")
	}
	wantBytes(t, s, ids[0], one)
	if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
		t.Errorf("healed: %+v", v)
	}
	closeStore(t, s)
}

func TestRepair(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	ids := must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(1, 5000)))
	ids = append(ids, must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(2, 6000)))...)
	loose := must[cas.ID](t)(s.Put(ctx, content(3, 3000)))
	if err := s.Hold(ctx, document("late"), ids[1]); err != nil {
		t.Fatal(err)
	}
	killed := disk.All() // no checkpoint: the log is all there is
	closeStore(t, s)
	// The first record of the log is damaged, and what it was is not known for certain.
	killed.Flip(packOf(t, killed), 64+20+44+100, 3)

	s = open(t, cas.Options{FS: killed})
	if _, err := s.Collect(ctx); !errors.Is(err, cas.ErrInDoubt) {
		t.Errorf("collect: %v", err)
	}
	out := must[cas.Repaired](t)(s.Repair(ctx, nil))
	if len(out.Aside) != 1 || out.Recovered == nil {
		t.Errorf("repaired: %+v", out)
	}
	for range 2 {
		wantBytes(t, s, ids[1], content(2, 6000))
		wantBytes(t, s, loose, content(3, 3000))
		if got := s.Owners(loose); len(got) != 1 || got[0].Kind != cas.OwnerRecovered {
			t.Errorf("owners of what nobody was known to hold: %v", got)
		}
		if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
			t.Errorf("verify: %+v", v)
		}
		must[cas.Collected](t)(s.Collect(ctx))
		closeStore(t, s)
		s = open(t, cas.Options{FS: killed})
	}
	closeStore(t, s)
	if entries, err := killed.ReadDir("damaged"); err != nil || len(entries) != 1 {
		t.Errorf("damaged: %v, %v", entries, err)
	}
}

func TestDamagedCheckpointFallsBack(t *testing.T) {
	dir := t.TempDir()
	ids := []cas.ID{}
	for i := range 3 {
		s := must[*cas.Store](t)(cas.Open(ctx, dir, cas.Options{}))
		ids = append(ids, must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(uint64(i), 900)))...)
		closeStore(t, s)
	}
	names, err := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	if err != nil || len(names) != 2 {
		t.Fatalf("%v, %v", names, err)
	}
	for n := range 2 {
		name := names[len(names)-1-n]
		data := must[[]byte](t)(os.ReadFile(name))
		data[len(data)/2] ^= 4
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := must[*cas.Store](t)(cas.Open(ctx, dir, cas.Options{ReadOnly: true}))
		for i, id := range ids {
			wantBytes(t, s, id, content(uint64(i), 900))
		}
		if got := s.Held(document("d")); len(got) != 3 {
			t.Errorf("%d held", len(got))
		}
		if v := must[cas.Verification](t)(s.Verify(ctx, nil)); len(v.Files) != n+1 || len(v.Damaged) != 0 {
			t.Errorf("verify with %d damaged checkpoints: %+v", n+1, v)
		}
		closeStore(t, s)
	}
}

// What Repair found missing is put again as new, also by a process that has not read it.
func TestPutHealsAfterRepairAndRestart(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	data := content(1, 5000)
	id := must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), data))[0]
	closeStore(t, s)
	disk.Flip(packOf(t, disk), 64+20+44+100, 3)
	s = open(t, cas.Options{FS: disk})
	if out := must[cas.Repaired](t)(s.Repair(ctx, nil)); len(out.Missing) != 1 {
		t.Fatalf("%+v", out)
	}
	closeStore(t, s)
	s = open(t, cas.Options{FS: disk})
	if s.Has(id) {
		t.Error("what is missing counts as there")
	}
	if err := s.Hold(ctx, document("e"), id); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("hold of what is missing: %v", err)
	}
	must[[]cas.ID](t)(s.PutHeld(ctx, document("e"), data))
	wantBytes(t, s, id, data)
	if got := s.Owners(id); len(got) != 2 {
		t.Errorf("owners %v", got)
	}
	closeStore(t, s)
}
