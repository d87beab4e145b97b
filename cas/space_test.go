package cas_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/testkit/crashfs"
)

// fillUp puts until the disk is full, collects at no bytes free, and goes on (C7). Each object has a document of its own.
func fillUp(t *testing.T, s *cas.Store, clock *manual, fillRest func(), rounds int) {
	t.Helper()
	held := map[int]cas.ID{}
	next := 0
	put := func() error {
		ids, err := s.PutHeld(ctx, document(number(next)), content(uint64(next), 150_000))
		if err == nil {
			held[next] = ids[0]
			next++
		}
		return err
	}
	for round := range rounds {
		var err error
		before := next
		for err = put(); err == nil; err = put() {
			if next > 1000 {
				t.Fatal("the disk is never full")
			}
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("full: %v", err)
		}
		if round == 0 && next < 20 || next == before {
			t.Fatalf("round %d: only %d objects fit", round, next-before)
		}
		fillRest()
		for i, id := range held {
			wantBytes(t, s, id, content(uint64(i), 150_000))
		}
		if _, err := s.Put(ctx, content(9999, 1<<20)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("put on a full disk: %v", err)
		}
		// The older half, and each eighth of the others. When half of each pack lives, the reserve of a store as small as this does not
		// suffice to copy it.
		order := slices.Sorted(maps.Keys(held))
		for n, i := range order {
			if n >= len(order)/2 && n%8 > 0 {
				continue
			}
			if err := s.Release(ctx, document(number(i))); err != nil {
				t.Fatalf("release: %v", err)
			}
			delete(held, i)
		}
		clock.at += time.Hour
		c, err := s.Collect(ctx)
		t.Logf("round %d: %d objects fit, collected %d of them, %d bytes, %v", round, next-before, c.Objects, c.Bytes, err)
		if err != nil || c.Bytes < 1<<20 {
			t.Fatalf("collect on a full disk: %+v, %v", c, err)
		}
		for i, id := range held {
			wantBytes(t, s, id, content(uint64(i), 150_000))
		}
	}
	if err := put(); err != nil {
		t.Errorf("service does not resume: %v", err)
	}
	if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
		t.Errorf("%+v", v)
	}
}

func number(i int) string {
	return string(rune('a'+i/26%26)) + string(rune('a'+i%26)) + string(rune('a'+i/676))
}

func TestFullDisk(t *testing.T) {
	disk := crashfs.New()
	disk.SetSpace(16 << 20)
	clock := &manual{}
	opts := cas.Options{FS: disk, SegmentSize: 2 << 20, Elapsed: clock.now, Grace: time.Minute, Checkpoint: 1 << 20}
	s := open(t, opts)
	fillUp(t, s, clock, func() {}, 3)
	closeStore(t, s)
	s = open(t, opts)
	if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
		t.Errorf("%+v", v)
	}
	closeStore(t, s)
	if err := tidy(disk); err != nil {
		t.Error(err)
	}
}

func TestRealFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "repa-test", dir).CombinedOutput(); err != nil {
		t.Skipf("mounting a small disk does not work here: %v, %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v, %s", err, out)
		}
	})
	clock := &manual{}
	store := filepath.Join(dir, "store")
	opts := cas.Options{SegmentSize: 2 << 20, Elapsed: clock.now, Grace: time.Minute, Checkpoint: 1 << 20}
	s := must[*cas.Store](t)(cas.Open(ctx, store, opts))
	rest := 0
	t.Cleanup(func() { s.Close() }) // before the unmounting, whatever happens
	fillUp(t, s, clock, func() {
		fsys := must[*vfs.OSFS](t)(vfs.OS(dir))
		defer fsys.Close()
		f, err := os.OpenFile(filepath.Join(dir, number(rest)), os.O_CREATE|os.O_WRONLY, 0o600)
		if rest++; err != nil {
			return
		}
		defer f.Close()
		for err == nil { // not a byte is left
			_, err = f.Write(make([]byte, 4096))
		}
	}, 2)
	closeStore(t, s)
}
