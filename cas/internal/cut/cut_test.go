package cut_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/internal/cut"
	"github.com/repa-app/repa/cas/internal/tree"
)

// random returns n bytes that depend on seed only.
func random(n int, seed byte) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// text returns n bytes of words, frequent ones more often, from a vocabulary of 5,000.
func text(n int, seed byte) []byte {
	source := rand.NewChaCha8([32]byte{seed})
	below := func(n uint64) uint64 { return source.Uint64() % n }
	words := make([][]byte, 5000)
	for i := range words {
		word := make([]byte, 1+below(4)+below(8))
		for j := range word {
			word[j] = "etaoinshrdlucmfwypvbgkqjxz"[min(below(26), below(26))]
		}
		words[i] = word
	}
	out := make([]byte, 0, n+16)
	for len(out) < n {
		out = append(out, words[min(below(5000), below(5000))]...)
		if below(60) == 0 {
			out = append(out, ".\n"...)
		} else {
			out = append(out, ' ')
		}
	}
	return out[:n]
}

// pieces cuts all of data.
func pieces(data []byte, next func([]byte) int) [][]byte {
	var out [][]byte
	for len(data) > 0 {
		n := next(data)
		out = append(out, data[:n])
		data = data[n:]
	}
	return out
}

// fresh returns how many pieces of changed, and bytes in them, are not among those of original.
func fresh(original, changed [][]byte) (count, size int) {
	known := make(map[[32]byte]bool, len(original))
	for _, p := range original {
		known[tree.Sum(p)] = true
	}
	for _, p := range changed {
		if !known[tree.Sum(p)] {
			count++
			size += len(p)
		}
	}
	return count, size
}

// The numbers are the contract: where they change, what is stored already is not found again.
func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want []int
	}{
		{"random", random(3<<20, 1), []int{279870, 112144, 240523, 286282, 231570, 216059, 317604, 298878, 226071, 398797, 376876, 161054}},
		{"text", text(3<<20, 1), []int{239176, 282212, 200761, 264784, 340296, 237334, 385343, 299617, 223475, 282230, 249946, 140554}},
		{"zeros", make([]byte, 5<<19), []int{1 << 20, 1 << 20, 1 << 19}},
	} {
		var got []int
		for _, p := range pieces(tc.data, cut.Next) {
			got = append(got, len(p))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s is cut at %v, want %v", tc.name, got, tc.want)
		}
	}
}

// The first four numbers are the published output of SplitMix64 from state 0.
func TestGearIsSplitMix64(t *testing.T) {
	table := cut.Gear()
	want := []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec}
	if !slices.Equal(table[:4], want) {
		t.Errorf("the table begins with %x, want %x", table[:4], want)
	}
}

// reference is the definition, byte by byte: a piece ends where the hash of the 64 bytes before is below the limit of its length.
func reference(data []byte) int {
	table := cut.Gear()
	for n := cut.Min + 1; n <= min(len(data), cut.Max); n++ {
		hash := uint64(0)
		for _, b := range data[n-64 : n] {
			hash = hash<<1 + table[b]
		}
		if n <= 208<<10 && hash < 1<<44 || n > 208<<10 && hash < 1<<48 {
			return n
		}
	}
	return min(len(data), cut.Max)
}

func TestNextIsTheReference(t *testing.T) {
	for name, data := range map[string][]byte{"random": random(1<<20, 9), "text": text(1<<20, 9), "zeros": make([]byte, 9<<17)} {
		for rest := data; len(rest) > 0; {
			n := cut.Next(rest)
			if want := reference(rest); n != want {
				t.Fatalf("%s: piece of %d bytes at %d, want %d", name, n, len(data)-len(rest), want)
			}
			rest = rest[n:]
		}
	}
}

func TestPiecesLieInBoundsAndJoinToTheWhole(t *testing.T) {
	all := [][]byte{random(3<<20, 2), text(3<<20, 2), make([]byte, 5<<19)}
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SampledFrom(all).Draw(t, "data")
		from := rapid.IntRange(0, len(data)).Draw(t, "from")
		data = data[from:]
		data = data[:rapid.OneOf(rapid.IntRange(0, min(len(data), 3*cut.Min)), rapid.IntRange(0, len(data))).Draw(t, "size")]
		list := pieces(data, cut.Next)
		for i, p := range list {
			if len(p) < 1 || len(p) > cut.Max || len(p) < cut.Min && i < len(list)-1 {
				t.Fatalf("piece %d of %d has %d bytes", i, len(list), len(p))
			}
		}
		if joined := bytes.Join(list, nil); !bytes.Equal(joined, data) {
			t.Fatalf("%d bytes became %d", len(data), len(joined))
		}
	})
}

// What lies more than Max bytes ahead must not matter: callers read ahead no further.
func TestNextLooksNoFurtherThanMax(t *testing.T) {
	data := random(8<<20, 3)
	for rest := data; len(rest) > cut.Max; {
		whole, short := cut.Next(rest), cut.Next(rest[:cut.Max])
		if whole != short {
			t.Fatalf("a piece of %d bytes has %d when only Max bytes are seen", whole, short)
		}
		rest = rest[whole:]
	}
}

func TestSmallestInputs(t *testing.T) {
	for _, n := range []int{0, 1, 63, cut.Min - 1, cut.Min} {
		if got := cut.Next(make([]byte, n)); got != n {
			t.Errorf("Next of %d bytes is %d", n, got)
		}
	}
}

func TestMeanIsNearAverage(t *testing.T) {
	for name, data := range map[string][]byte{"random": random(24<<20, 4), "text": text(24<<20, 4)} {
		mean := len(data) / len(pieces(data, cut.Next))
		if mean < cut.Average*9/10 || mean > cut.Average*11/10 {
			t.Errorf("%s: pieces have %d bytes on average, want about %d", name, mean, cut.Average)
		}
	}
}

func TestInsertionChangesFewPieces(t *testing.T) {
	sources := map[string][]byte{"random": random(6<<20, 5), "text": text(6<<20, 5)}
	rapid.Check(t, func(t *rapid.T) {
		data := sources[rapid.SampledFrom([]string{"random", "text"}).Draw(t, "source")]
		from := rapid.IntRange(0, 4<<20).Draw(t, "from")
		data = data[from : from+3<<19]
		at := rapid.IntRange(0, len(data)).Draw(t, "at")
		changed := slices.Insert(slices.Clone(data), at, rapid.Byte().Draw(t, "byte"))
		count, _ := fresh(pieces(data, cut.Next), pieces(changed, cut.Next))
		if count < 1 || count > 10 {
			t.Fatalf("an insertion made %d pieces new", count)
		}
	})
}
