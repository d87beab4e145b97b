package cas_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/crashfs"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	if raced && !long() {
		_ = flag.Set("rapid.checks", "15") // of 100
	}
	goleak.VerifyTestMain(m)
}

// sizes of objects around every boundary of the store.
var sizes = []int{0, 1, 63, 64, 4096, 16 << 10, 64 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 17}

// content is deterministic: half of it can be compressed.
func content(seed uint64, size int) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(size)))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(rng.Uint32())
		if i%512 < 256 {
			data[i] = "spacing practice 复习 "[i%23]
		}
	}
	return data
}

func open(t testing.TB, opts cas.Options) *cas.Store {
	t.Helper()
	dir := "store"
	if opts.FS == nil {
		dir = t.TempDir()
	}
	s, err := cas.Open(ctx, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t testing.TB, s *cas.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func document(id string) cas.Owner { return cas.Owner{Kind: cas.OwnerDocument, ID: id} }

func wantBytes(t testing.TB, s *cas.Store, id cas.ID, want []byte) {
	t.Helper()
	got, err := s.Get(ctx, id, -1)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("get %s: %d bytes, %v; want %d", id, len(got), err, len(want))
	}
}

func TestRoundTrip(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	var ids []cas.ID
	for i, size := range sizes {
		data := content(1, size)
		var id cas.ID
		if i%2 == 0 {
			id = must[cas.ID](t)(s.Put(ctx, data))
		} else {
			id = must[cas.ID](t)(s.PutReader(ctx, io.MultiReader(bytes.NewReader(data[:size/3]), bytes.NewReader(data[size/3:]))))
		}
		if id != cas.Sum(data) {
			t.Errorf("%d bytes: id %s, want %s", size, id, cas.Sum(data))
		}
		ids = append(ids, id)
	}
	for range 2 {
		for i, size := range sizes {
			wantBytes(t, s, ids[i], content(1, size))
			info := must[cas.Info](t)(s.Stat(ids[i]))
			if info.Size != int64(size) || info.ID != ids[i] {
				t.Errorf("stat of %d bytes: %+v", size, info)
			}
			if _, err := s.Get(ctx, ids[i], int64(size)-1); size > 0 && !errors.Is(err, cas.ErrTooLarge) {
				t.Errorf("get %d bytes with less allowed: %v", size, err)
			}
		}
		v := must[cas.Verification](t)(s.Verify(ctx, nil))
		if !v.Sound() {
			t.Errorf("verify: %+v", v)
		}
		closeStore(t, s)
		s = open(t, cas.Options{FS: disk})
	}
	closeStore(t, s)
}

func TestPutOfWhatIsThereWritesNothing(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	defer closeStore(t, s)
	for _, size := range sizes {
		must[cas.ID](t)(s.Put(ctx, content(2, size)))
	}
	before := s.Stats()
	writes := 0
	disk.SetFault(func(c crashfs.Call) error {
		if c.Op == "write" || c.Op == "sync" {
			writes++
		}
		return nil
	})
	for _, size := range sizes[:len(sizes)-2] {
		must[cas.ID](t)(s.Put(ctx, content(2, size)))
	}
	disk.SetFault(nil)
	if after := s.Stats(); writes != 0 || after.Stored != before.Stored || after.Dead != before.Dead {
		t.Errorf("%d writes; %+v, before %+v", writes, after, before)
	}
}

func TestRandomAccess(t *testing.T) {
	s := open(t, cas.Options{})
	defer closeStore(t, s)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, size := range sizes {
		data := content(3, size)
		id := must[cas.ID](t)(s.Put(ctx, data))
		o := must[*cas.Object](t)(s.Open(ctx, id))
		for range 50 {
			from := rng.IntN(size + 1)
			p := make([]byte, rng.IntN(size-from+10))
			n, err := o.ReadAt(p, int64(from))
			want := data[from:min(size, from+len(p))]
			if !bytes.Equal(p[:n], want) || (n < len(p)) != errors.Is(err, io.EOF) {
				t.Fatalf("%d of %d at %d: %d, %v", len(p), size, from, n, err)
			}
		}
		if at, err := o.Seek(int64(-size/2), io.SeekEnd); err != nil || at != int64(size-size/2) {
			t.Errorf("seek: %d, %v", at, err)
		}
		if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, data[size-size/2:]) {
			t.Errorf("read from the middle of %d: %d bytes, %v", size, len(got), err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if _, err := o.ReadAt(make([]byte, 1), 0); size > 0 && !errors.Is(err, cas.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
	}
}

func TestHolds(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk})
	a, b := document("a"), cas.Owner{Kind: cas.OwnerSession, ID: "b:c"}
	ids := must[[]cas.ID](t)(s.PutHeld(ctx, a, []byte("one"), []byte("two"), []byte("three")))
	if err := s.Hold(ctx, b, ids[0], ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(ctx, b, ids[1], cas.Sum([]byte("absent"))); !errors.Is(err, cas.ErrNotFound) {
		t.Errorf("hold of what is absent: %v", err)
	}
	if err := s.Replace(ctx, a, ids[2], ids[0]); err != nil {
		t.Fatal(err)
	}
	check := func(owner cas.Owner, want ...cas.ID) {
		t.Helper()
		got := s.Held(owner)
		slices.SortFunc(got, func(x, y cas.ID) int { return bytes.Compare(x[:], y[:]) })
		slices.SortFunc(want, func(x, y cas.ID) int { return bytes.Compare(x[:], y[:]) })
		if !slices.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", owner, got, want)
		}
	}
	for range 2 {
		check(a, ids[0], ids[2])
		check(b, ids[0])
		if got := s.Owners(ids[0]); !slices.Equal(got, []cas.Owner{a, b}) {
			t.Errorf("owners %v", got)
		}
		if st := s.Stats(); st.Holds[cas.OwnerDocument] != 2 || st.Holds[cas.OwnerSession] != 1 || st.Objects != 3 {
			t.Errorf("%+v", st)
		}
		closeStore(t, s)
		s = open(t, cas.Options{FS: disk})
	}
	if err := s.Release(ctx, a, ids[0]); err != nil {
		t.Fatal(err)
	}
	check(a, ids[2])
	if err := s.Release(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(s.AllOwners("")); !slices.Equal(got, []cas.Owner{a}) {
		t.Errorf("owners %v", got)
	}
	for _, bad := range []cas.Owner{{}, {Kind: "document"}, {Kind: "Doc", ID: "x"}, {ID: "x"}} {
		if err := s.Hold(ctx, bad, ids[2]); err == nil {
			t.Errorf("%q may hold", bad)
		}
	}
	closeStore(t, s)
}

// manual is a clock that goes when it is told.
type manual struct{ at time.Duration }

func (m *manual) now() time.Duration { return m.at }

func TestCollectKeepsWhatIsHeldOrRead(t *testing.T) {
	disk := crashfs.New()
	clock := &manual{}
	opts := cas.Options{FS: disk, SegmentSize: 1 << 20, Elapsed: clock.now}
	s := open(t, opts)
	owner := document("d")
	held := must[[]cas.ID](t)(s.PutHeld(ctx, owner, content(1, 2000), content(1, 3<<20)))
	var loose []cas.ID
	for i := range 40 {
		loose = append(loose, must[cas.ID](t)(s.Put(ctx, content(uint64(i+10), 100_000))))
	}
	if c := must[cas.Collected](t)(s.Collect(ctx)); c.Objects != 0 || c.Waiting != 40 {
		t.Errorf("within the grace: %+v", c)
	}
	clock.at += 11 * time.Minute
	reading := must[*cas.Object](t)(s.Open(ctx, loose[0]))
	c := must[cas.Collected](t)(s.Collect(ctx))
	if c.Objects != 39 || c.Bytes < 39*50_000 || c.Segments == 0 {
		t.Errorf("after the grace: %+v", c)
	}
	if got, err := io.ReadAll(reading); err != nil || !bytes.Equal(got, content(10, 100_000)) {
		t.Errorf("read during the collection: %d bytes, %v", len(got), err)
	}
	reading.Close()
	for range 2 {
		wantBytes(t, s, held[0], content(1, 2000))
		wantBytes(t, s, held[1], content(1, 3<<20))
		if _, err := s.Get(ctx, loose[1], -1); !errors.Is(err, cas.ErrNotFound) {
			t.Errorf("collected: %v", err)
		}
		closeStore(t, s)
		s = open(t, opts)
	}
	if err := s.Release(ctx, owner); err != nil {
		t.Fatal(err)
	}
	clock.at += 11 * time.Minute
	must[cas.Collected](t)(s.Collect(ctx))
	if st := s.Stats(); st.Objects != 0 || st.Stored != 0 || st.Bytes != 0 || st.Dead > 1000 {
		t.Errorf("empty: %+v", st)
	}
	closeStore(t, s)
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	s, err := cas.Open(ctx, dir, cas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := must[cas.ID](t)(s.Put(ctx, []byte("beside")))
	var busy *cas.InUseError
	if _, err := cas.Open(ctx, dir, cas.Options{}); !errors.As(err, &busy) || busy.PID == 0 || busy.Dir != dir {
		t.Errorf("second owner: %v", err)
	}
	r, err := cas.Open(ctx, dir, cas.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, r, id, []byte("beside"))
	if _, err := r.Put(ctx, []byte("x")); !errors.Is(err, cas.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	closeStore(t, r)
	closeStore(t, s)
	if _, err := s.Put(ctx, []byte("late")); !errors.Is(err, cas.ErrClosed) {
		t.Errorf("put after close: %v", err)
	}
}

func TestBatch(t *testing.T) {
	s := open(t, cas.Options{})
	defer closeStore(t, s)
	b := s.Batch()
	var ids []cas.ID
	for i := range 3000 {
		ids = append(ids, must[cas.ID](t)(b.Put(ctx, fmt.Appendf(nil, "note %d", i))))
	}
	if s.Has(ids[0]) {
		t.Error("seen before the commit")
	}
	if err := b.CommitHeld(ctx, document("batch")); err != nil {
		t.Fatal(err)
	}
	b.Discard()
	for i, id := range ids {
		wantBytes(t, s, id, fmt.Appendf(nil, "note %d", i))
	}
	if got := s.Held(document("batch")); len(got) != 3000 {
		t.Errorf("%d held", len(got))
	}
}

// A reader beside the owner goes on with what it saw while the owner collects.
func TestReaderBesideCollection(t *testing.T) {
	disk := crashfs.New()
	s := open(t, cas.Options{FS: disk, SegmentSize: 64 << 10, Grace: -1})
	ids := must[[]cas.ID](t)(s.PutHeld(ctx, document("d"), content(1, 50_000), content(2, 50_000), content(3, 50_000)))
	r := open(t, cas.Options{FS: disk, ReadOnly: true})
	if err := s.Release(ctx, document("d")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		must[cas.Collected](t)(s.Collect(ctx))
	}
	if st := s.Stats(); st.Objects != 0 || st.Dead > 1000 {
		t.Errorf("%+v", st)
	}
	for i, id := range ids {
		wantBytes(t, r, id, content(uint64(i+1), 50_000))
	}
	if v := must[cas.Verification](t)(r.Verify(ctx, nil)); !v.Sound() || v.Objects != 3 {
		t.Errorf("%+v", v)
	}
	closeStore(t, r)
	closeStore(t, s)
}
