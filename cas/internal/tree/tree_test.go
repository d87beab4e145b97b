package tree_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/internal/tree"
)

const mib = 1 << 20

// random returns n bytes that depend on seed only.
func random(n int, seed byte) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// values cuts data into groups and returns their values.
func values(data []byte) []tree.Value {
	var out []tree.Value
	for group := range slices.Chunk(data, tree.GroupSize) {
		out = append(out, tree.GroupValue(group, int64(len(out))))
	}
	return out
}

func sizes() []int {
	out := []int{0, 1, 63, 64, 65, 5000, 15360, 15361, 9*mib + 12345}
	for _, edge := range []int{1 << 10, 2 << 10, 3 << 10, 8 << 10, 16 << 10, 17 << 10, 32 << 10, 48 << 10, mib / 2, mib - 16<<10,
		mib, mib + 1<<10, mib + 16<<10, 2 * mib, 3 * mib, 4 * mib, 5 * mib, 7 * mib, 8 * mib, 9 * mib} {
		out = append(out, edge-1, edge, edge+1)
	}
	return out
}

func TestEqualsPlainBLAKE3(t *testing.T) {
	all := random(10*mib, 1)
	var h tree.Hasher
	for _, size := range sizes() {
		data := all[:size]
		want := [32]byte(blake3.Sum256(data))
		if got := tree.Sum(data); got != want {
			t.Errorf("Sum of %d bytes: %x, want %x", size, got, want)
		}
		h.Reset()
		if n, err := h.Write(data); n != size || err != nil {
			t.Fatalf("Write of %d bytes: %d, %v", size, n, err)
		}
		root, streamed := h.Sum()
		if root != want {
			t.Errorf("Hasher over %d bytes: %x, want %x", size, root, want)
		}
		if size <= tree.GroupSize {
			if streamed != nil {
				t.Errorf("Hasher over %d bytes gave %d values, want nil", size, len(streamed))
			}
			continue
		}
		if direct := values(data); !slices.Equal(streamed, direct) {
			t.Errorf("Hasher over %d bytes gave other values than GroupValue", size)
		}
		if got, ok := tree.Root(streamed, int64(size)); !ok || got != want {
			t.Errorf("Root for %d bytes: %x, %v, want %x", size, got, ok, want)
		}
	}
}

// The lengths and digests are from the official BLAKE3 test vectors; the input is 0, 1, 2 … modulo 251.
func TestOfficialVectors(t *testing.T) {
	for _, tc := range []struct {
		size int
		want string
	}{
		{0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
		{1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
		{1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
		{1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
		{2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
		{8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
		{16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4"},
		{31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
		{100000, "d93c23eedaf165a7e0be908ba86f1a7a520d568d2d13cde787c8580c5c72cc54"},
	} {
		data := make([]byte, tc.size)
		for i := range data {
			data[i] = byte(i % 251)
		}
		if got := tree.Sum(data); hex.EncodeToString(got[:]) != tc.want {
			t.Errorf("Sum of %d bytes: %x, want %s", tc.size, got, tc.want)
		}
	}
}

func TestHasherTakesAnySplit(t *testing.T) {
	all := random(5*mib, 2)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 40<<10), rapid.IntRange(mib-20, mib+20), rapid.IntRange(0, len(all))).Draw(t, "size")
		part := rapid.OneOf(rapid.IntRange(1, 3000), rapid.Just(16<<10), rapid.IntRange(1, 3*mib))
		data := all[:size]
		var h tree.Hasher
		for rest := data; len(rest) > 0; {
			n := min(part.Draw(t, "part"), len(rest))
			if len(all)/n > 2000 { // a few small parts are as good as many
				n = min(len(rest), 4000)
				h.Write(rest[:1])
				h.Write(rest[1:n])
			} else {
				h.Write(rest[:n])
			}
			rest = rest[n:]
		}
		root, got := h.Sum()
		if root != blake3.Sum256(data) {
			t.Fatalf("%d bytes in parts have another digest than in one", size)
		}
		if size > tree.GroupSize && !slices.Equal(got, values(data)) {
			t.Fatalf("%d bytes in parts have other values than in one", size)
		}
	})
}

func TestSumKeepsTheHasherAsItIs(t *testing.T) {
	data := random(3*mib+20<<10, 3)
	var h tree.Hasher
	for from, step := 0, 333<<10; from < len(data); from += step {
		to := min(from+step, len(data))
		h.Write(data[from:to])
		for range 2 {
			root, got := h.Sum()
			if root != blake3.Sum256(data[:to]) {
				t.Fatalf("wrong digest after %d bytes", to)
			}
			clear(got) // the caller's own
		}
	}
	h.Reset()
	if root, got := h.Sum(); root != blake3.Sum256(nil) || got != nil {
		t.Errorf("after Reset: %x with %d values, want the digest of nothing", root, len(got))
	}
}

func TestChangedByteChangesItsGroupOnly(t *testing.T) {
	data := random(4*mib+777, 4)
	before := values(data)
	for _, at := range []int{0, mib - 1, mib, 2*mib + 5, 4 * mib, len(data) - 1} {
		data[at] ^= 1
		after := values(data)
		data[at] ^= 1
		for i := range before {
			if changed, want := before[i] != after[i], i == at/mib; changed != want {
				t.Errorf("byte %d changed: value %d changed is %v, want %v", at, i, changed, want)
			}
		}
		if root, ok := tree.Root(after, int64(len(data))); !ok || root == tree.Sum(data) {
			t.Errorf("byte %d changed: the id did not change", at)
		}
	}
}

// Equal groups in other places must not stand for each other.
func TestValueDependsOnPlace(t *testing.T) {
	group := random(mib, 5)
	if tree.GroupValue(group, 0) == tree.GroupValue(group, 1) {
		t.Error("a group has the same value in two places")
	}
	if tree.GroupValue(group, 0) == tree.Value(tree.Sum(group)) {
		t.Error("the value of a group is the digest of an object")
	}
}

func TestRootRefusesWrongCounts(t *testing.T) {
	list := make([]tree.Value, 4)
	for _, tc := range []struct {
		values int
		size   int64
		want   bool
	}{
		{0, 0, false}, {0, mib, false}, {1, mib, false}, {1, 1, false}, {1, mib + 1, false}, {0, -1, false}, {2, -5 * mib, false},
		{2, mib + 1, true}, {2, 2 * mib, true}, {3, 2 * mib, false}, {2, 2*mib + 1, false}, {3, 2*mib + 1, true}, {4, 1<<63 - 1, false},
	} {
		if root, ok := tree.Root(list[:tc.values], tc.size); ok != tc.want || !ok && root != [32]byte{} {
			t.Errorf("Root of %d values for %d bytes: %x, %v; want %v", tc.values, tc.size, root, ok, tc.want)
		}
	}
}

func TestGroupValuePanicsOnWhatIsNoGroup(t *testing.T) {
	for _, tc := range []struct {
		size  int
		index int64
	}{{0, 0}, {mib + 1, 0}, {1, -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("GroupValue of %d bytes as number %d did not panic", tc.size, tc.index)
				}
			}()
			tree.GroupValue(make([]byte, tc.size), tc.index)
		}()
	}
}

func TestNothingIsAllocated(t *testing.T) {
	data := random(mib, 6)
	list := values(random(5*mib, 7))
	var h tree.Hasher
	for name, f := range map[string]func(){
		"GroupValue": func() { tree.GroupValue(data[:mib-5], 3) },
		"Sum":        func() { tree.Sum(data[:5000]) },
		"Root":       func() { tree.Root(list, 5*mib) },
		"Write":      func() { h.Reset(); h.Write(data[:20000]); h.Sum() },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func ExampleRoot() {
	object := make([]byte, 5*mib/2)
	var h tree.Hasher
	h.Write(object)
	id, values := h.Sum()

	// Later, with the list of values and one group read from disk:
	root, ok := tree.Root(values, int64(len(object)))
	fmt.Println("the list is genuine:", ok && root == id)
	fmt.Println("the group is genuine:", tree.GroupValue(object[1*mib:2*mib], 1) == values[1])
	// Output:
	// the list is genuine: true
	// the group is genuine: true
}
