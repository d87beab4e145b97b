package cas_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/internal/frame"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "1", "make testdata/store-1 anew")

const goldenDir = "testdata/store-1"

var goldenKinds = []cas.OwnerKind{cas.OwnerDocument, cas.OwnerSession, cas.OwnerRequest, cas.OwnerOperation, cas.OwnerDisplay}

// goldenText is compressible, goldenRaw is not; the large one is more of both.
func goldenText(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "line %d of 复习. ", i), 40) }
func goldenRaw(i int) []byte  { id := cas.Sum(goldenText(i)); return id[:] }
func goldenLarge() []byte     { return bytes.Repeat(goldenText(7), 1700) }

func makeGolden(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(goldenDir); err != nil {
		t.Fatal(err)
	}
	clock := &manual{}
	opts := cas.Options{SegmentSize: 700, Elapsed: clock.now, Grace: -1}
	s := must[*cas.Store](t)(cas.Open(ctx, goldenDir, opts))
	must[cas.ID](t)(s.Put(ctx, goldenRaw(100)))
	for i := range 8 { // collected
		must[cas.ID](t)(s.Put(ctx, goldenRaw(200+i)))
	}
	for i, kind := range goldenKinds {
		must[[]cas.ID](t)(s.PutHeld(ctx, cas.Owner{Kind: kind, ID: "one:two"}, goldenText(i), goldenRaw(i)))
	}
	must[[]cas.ID](t)(s.PutHeld(ctx, document("large"), goldenLarge()))
	ok(t, s.Lease(ctx, lease("running"), time.Hour, cas.Sum(goldenText(0))))
	ok(t, s.Lease(ctx, lease("ended"), time.Hour, cas.Sum(goldenText(0))))
	ok(t, s.EndLease(ctx, lease("ended")))
	if c := must[cas.Collected](t)(s.Collect(ctx)); c.Segments == 0 {
		t.Fatal("no segment was removed")
	}
	closeStore(t, s)
	// Behind the last checkpoint the log goes on.
	s = must[*cas.Store](t)(cas.Open(ctx, goldenDir, opts))
	ok(t, s.Replace(ctx, document("replaced"), cas.Sum(goldenText(1)), cas.Sum(goldenRaw(2))))
	ok(t, s.Renew(ctx, lease("running"), 2*time.Hour))
	ok(t, s.Release(ctx, document("one:two"), cas.Sum(goldenRaw(0))))
	killed := t.TempDir()
	ok(t, os.CopyFS(filepath.Join(killed, "s"), os.DirFS(goldenDir)))
	closeStore(t, s)
	ok(t, os.RemoveAll(goldenDir))
	ok(t, os.CopyFS(goldenDir, os.DirFS(filepath.Join(killed, "s"))))
	for _, name := range []string{"owner.json", "lock", "reserve"} {
		if err := os.Remove(filepath.Join(goldenDir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func goldenCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	ok(t, os.CopyFS(dir, os.DirFS(goldenDir)))
	return dir
}

// The store that this version of the format wrote first is read exactly by all later versions (C10).
func TestGoldenStore(t *testing.T) {
	if *update {
		makeGolden(t)
	}
	dir := goldenCopy(t)
	for round := range 3 {
		opts := cas.Options{ReadOnly: round == 0, Elapsed: (&manual{}).now}
		s := must[*cas.Store](t)(cas.Open(ctx, dir, opts))
		want := newState()
		for i, kind := range goldenKinds {
			wantBytes(t, s, cas.Sum(goldenText(i)), goldenText(i))
			want.hold(cas.Owner{Kind: kind, ID: "one:two"}, cas.Sum(goldenText(i)), cas.Sum(goldenRaw(i)))
		}
		want.release(document("one:two"), cas.Sum(goldenRaw(0)))
		want.hold(document("replaced"), cas.Sum(goldenText(1)), cas.Sum(goldenRaw(2)))
		want.hold(document("large"), cas.Sum(goldenLarge()))
		want.hold(lease("running"), cas.Sum(goldenText(0)))
		if got := holdsOf(s); got != want.holds() {
			t.Errorf("holds %s, want %s", got, want.holds())
		}
		wantBytes(t, s, cas.Sum(goldenRaw(0)), goldenRaw(0))
		wantBytes(t, s, cas.Sum(goldenLarge()), goldenLarge())
		if info := must[cas.Info](t)(s.Stat(cas.Sum(goldenText(3)))); info.Stored >= info.Size {
			t.Errorf("not compressed: %+v", info)
		}
		if info := must[cas.Info](t)(s.Stat(cas.Sum(goldenLarge()))); info.Pieces < 1 {
			t.Errorf("not in pieces: %+v", info)
		}
		if left, there := s.Remains(lease("running")); !there || left != 2*time.Hour {
			t.Errorf("lease: %s, %t", left, there)
		}
		if s.Has(cas.Sum(goldenRaw(100))) {
			t.Error("what was collected is there")
		}
		if v := must[cas.Verification](t)(s.Verify(ctx, nil)); !v.Sound() {
			t.Errorf("%+v", v)
		}
		if err := s.Renew(ctx, lease("ended"), time.Hour); round > 0 && !errors.Is(err, cas.ErrLeaseEnded) {
			t.Errorf("the lease that had ended: %v", err)
		}
		closeStore(t, s)
	}
}

// fileBytes are all files below a folder.
func fileBytes(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"checkpoint-*", "packs/*"} {
		for _, name := range must[[]string](t)(filepath.Glob(filepath.Join(dir, pattern))) {
			out[name] = string(must[[]byte](t)(os.ReadFile(name)))
		}
	}
	return out
}

func sameFiles(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, data := range before {
		if after[name] != data {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, were %d", len(after), len(before))
	}
}

// A store of a newer format is refused and left as it is.
func TestNewerFormatIsRefused(t *testing.T) {
	for _, pattern := range []string{"checkpoint-*", "packs/*"} {
		dir := goldenCopy(t)
		names := must[[]string](t)(filepath.Glob(filepath.Join(dir, pattern)))
		name := names[len(names)-1]
		data := must[[]byte](t)(os.ReadFile(name))
		if pattern == "packs/*" {
			data[8] = 2
			binary.LittleEndian.PutUint32(data[60:], frame.Sum(data[:60]))
		} else {
			n := frame.Size + int(binary.LittleEndian.Uint32(data))
			data[5] = 2
			binary.LittleEndian.PutUint32(data[16:], frame.Sum(data[:16], data[frame.Size:n]))
		}
		ok(t, os.WriteFile(name, data, 0o600))
		before := fileBytes(t, dir)
		for _, readOnly := range []bool{false, true} {
			if _, err := cas.Open(ctx, dir, cas.Options{ReadOnly: readOnly}); !errors.Is(err, cas.ErrNewerFormat) {
				t.Errorf("%s of format 2: %v", name, err)
			}
		}
		sameFiles(t, before, fileBytes(t, dir))
	}
}

// A record that this version does not know makes the store read-only, and is kept.
func TestNewerRecordMakesReadOnly(t *testing.T) {
	dir := goldenCopy(t)
	names := must[[]string](t)(filepath.Glob(filepath.Join(dir, "packs/*")))
	name := names[len(names)-1]
	var data []byte
	var generation uint64
	if _, err := fmt.Sscanf(filepath.Base(name), "%x.pack", &generation); err != nil {
		t.Fatal(err)
	}
	at := 64
	for whole := must[[]byte](t)(os.ReadFile(name)); ; {
		f, ok := frame.Parse(whole[at:], generation, 1<<20)
		if !ok {
			data = whole[:at]
			break
		}
		at += f.Len()
	}
	ok(t, os.WriteFile(name, frame.Append(data, generation, 77, 1, frame.First, []byte("from the future")), 0o600))
	before := fileBytes(t, dir)
	s := must[*cas.Store](t)(cas.Open(ctx, dir, cas.Options{}))
	wantBytes(t, s, cas.Sum(goldenLarge()), goldenLarge())
	_, err := s.Put(ctx, []byte("new"))
	if !errors.Is(err, cas.ErrReadOnly) || !errors.Is(err, cas.ErrNewerFormat) {
		t.Errorf("put: %v", err)
	}
	_, cerr := s.Collect(ctx)
	_, rerr := s.Repair(ctx, nil)
	for _, err := range []error{s.Release(ctx, document("large")), cerr, rerr} {
		if !errors.Is(err, cas.ErrReadOnly) {
			t.Errorf("changed: %v", err)
		}
	}
	closeStore(t, s)
	sameFiles(t, before, fileBytes(t, dir))
}
