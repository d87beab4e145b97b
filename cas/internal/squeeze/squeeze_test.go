package squeeze_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/cas/internal/squeeze"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// random returns n bytes that depend on seed only.
func random(n int, seed byte) []byte {
	data := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// text returns n bytes of words from a vocabulary of 5,000, as unequally frequent as in natural languages.
func text(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	frequency := rand.NewZipf(r, 1.2, 3, 4999)
	words := make([][]byte, 5000)
	for i := range words {
		word := make([]byte, 2+r.IntN(4)+r.IntN(6))
		for j := range word {
			word[j] = "etaoinshrdlucmfwypvbgkqjxz"[min(r.IntN(26), r.IntN(26))]
		}
		words[i] = word
	}
	out := make([]byte, 0, n+16)
	for len(out) < n {
		out = append(append(out, words[frequency.Uint64()]...), ' ')
	}
	return out[:n]
}

func base64Of(data []byte) []byte { return base64.StdEncoding.AppendEncode(nil, data) }

func TestWhatPays(t *testing.T) {
	for _, tc := range []struct {
		name string
		data []byte
		want bool
		most float64 // share of the size that the result may have
	}{
		{"nothing", nil, false, 0},
		{"63 equal bytes", make([]byte, 63), false, 0},
		{"64 equal bytes", make([]byte, 64), true, 0.4},
		{"64 bytes of text", text(64, 1), false, 0},
		{"1 KiB of text", text(1<<10, 1), true, 0.75},
		{"4 KiB of text", text(4<<10, 1), true, 0.5},
		{"256 KiB of text", text(256<<10, 1), true, 0.4},
		{"2 MiB of text", text(2<<20, 1), true, 0.4},
		{"4 KiB of base64", base64Of(random(3<<10, 1)), true, 0.8},
		{"1 MiB of base64", base64Of(random(3<<18, 1)), true, 0.8},
		{"64 random bytes", random(64, 1), false, 0},
		{"4 KiB random", random(4<<10, 1), false, 0},
		{"1 MiB random", random(1<<20, 1), false, 0},
		{"1 MiB of a repeated random KiB", bytes.Repeat(random(1<<10, 1), 1<<10), true, 0.01},
		{"random head, text after it", append(random(40<<10, 1), text(400<<10, 1)...), true, 0.5},
		{"text head, random after it", append(text(20<<10, 1), random(400<<10, 1)...), false, 0},
		{"random with an even head and a repeated middle",
			slices.Concat(random(100<<10, 1), bytes.Repeat(random(500, 2), 200), random(100<<10, 3)), true, 0.8},
		{"more than MaxSize", make([]byte, squeeze.MaxSize+1), false, 0},
	} {
		prefix := []byte("before")
		out, ok := squeeze.Encode(prefix, tc.data)
		switch {
		case !bytes.HasPrefix(out, []byte("before")):
			t.Errorf("%s: Encode changed what dst held", tc.name)
		case ok != tc.want:
			t.Errorf("%s: compression pays is %v, want %v", tc.name, ok, tc.want)
		case !ok && len(out) != len(prefix):
			t.Errorf("%s: Encode left %d bytes though it does not pay", tc.name, len(out)-len(prefix))
		case ok && float64(len(out)-len(prefix)) > tc.most*float64(len(tc.data)):
			t.Errorf("%s: %d bytes became %d", tc.name, len(tc.data), len(out)-len(prefix))
		}
	}
}

// sourceOf draws data that is even, uneven or repeated, in runs.
func sourceOf(t *rapid.T) []byte {
	var data []byte
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 200<<10)).Draw(t, "length")
		seed := rapid.Byte().Draw(t, "seed")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			data = append(data, random(n, seed)...)
		case 1:
			data = append(data, text(n, uint64(seed))...)
		case 2:
			data = append(data, bytes.Repeat([]byte{seed}, n)...)
		case 3:
			data = append(data, bytes.Repeat(random(100, seed), n/100)...)
		}
	}
	return data
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := sourceOf(t)
		record, ok := squeeze.Encode(nil, data)
		if !ok {
			if len(record) != 0 {
				t.Fatalf("%d bytes though it does not pay", len(record))
			}
			return
		}
		if len(record) > len(data)-len(data)/10 {
			t.Fatalf("%d bytes became %d, which does not pay", len(data), len(record))
		}
		back, err := squeeze.Decode([]byte("before"), record, len(data))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back, append([]byte("before"), data...)) {
			t.Fatalf("%d bytes came back changed", len(data))
		}
		for _, size := range []int{0, len(data) - 1, len(data) + 1, -1, squeeze.MaxSize + 1} {
			checkRefused(t, record, size)
		}
		checkRefused(t, record[:rapid.IntRange(0, len(record)-1).Draw(t, "cut")], len(data))
	})
}

func checkRefused(t interface{ Fatalf(string, ...any) }, record []byte, size int) {
	back, err := squeeze.Decode([]byte("before"), record, size)
	if !errors.Is(err, squeeze.ErrCorrupt) || string(back) != "before" {
		t.Fatalf("record of %d bytes as %d: %d bytes, error %v; want dst and ErrCorrupt", len(record), size, len(back), err)
	}
}

// The form on disk is zstd's: a decoder that knows nothing of this package reads it, and its header says what doc.go says.
func TestFormIsOneZstdFrame(t *testing.T) {
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, n := range []int{200, 1 << 10, 256 << 10, 3 << 20} {
		data := make([]byte, n)
		copy(data, text(n/2, 3))
		record, ok := squeeze.Encode(nil, data)
		if !ok {
			t.Fatalf("%d bytes do not pay", n)
		}
		if back, err := reader.DecodeAll(record, nil); err != nil || !bytes.Equal(back, data) {
			t.Errorf("another decoder reads %d of %d bytes: %v", len(back), n, err)
		}
		var header zstd.Header
		if err := header.Decode(record); err != nil || !header.SingleSegment || header.HasCheckSum || header.FrameContentSize != uint64(n) {
			t.Errorf("header of %d bytes is %+v, %v", n, header, err)
		}
	}
}

func TestDecodeRefusesOtherFrames(t *testing.T) {
	data := text(4<<10, 1)
	frame := func(options ...zstd.EOption) []byte {
		w, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderConcurrency(1))...)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(data, nil)
	}
	single := frame(zstd.WithSingleSegment(true))
	for name, record := range map[string][]byte{
		"nothing":           {},
		"text":              data,
		"window":            frame(zstd.WithSingleSegment(false)),
		"dictionary":        frame(zstd.WithSingleSegment(true), zstd.WithEncoderDictRaw(7, text(2<<10, 2))),
		"two frames":        slices.Concat(single, single),
		"garbage after it":  append(slices.Clone(single), "garbage"...),
		"skippable frame":   {0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0},
		"damaged last byte": append(slices.Clone(single[:len(single)-1]), single[len(single)-1]^0xff),
	} {
		t.Run(name, func(t *testing.T) { checkRefused(t, record, len(data)) })
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A frame of a few bytes can claim any size, in its header or by a block that repeats one byte.
func TestDecodeAllocatesNoMoreThanSize(t *testing.T) {
	const slack = 2 << 20                     // a decoder and one block
	block := []byte{0b00000010, 0, 0x10, 'x'} // not the last, repeats 'x' 2^17 times
	claim := func(size uint64) []byte {
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0b11100000}, byte(size), byte(size>>8), byte(size>>16), byte(size>>24),
			byte(size>>32), byte(size>>40), byte(size>>48), byte(size>>56))
	}
	for name, record := range map[string][]byte{
		"header":     append(claim(1<<40), block...),
		"most":       append(claim(1<<64-1), block...),
		"repetition": append(claim(1000), bytes.Repeat(block, 4000)...),
		"hidden":     append(append(claim(1000), 1, 0, 0), append(claim(1<<30), bytes.Repeat(block, 4000)...)...),
	} {
		var err error
		if n := allocated(func() { _, err = squeeze.Decode(nil, record, 1000) }); n > 1000+slack {
			t.Errorf("%s: %d bytes allocated for a size of 1000", name, n)
		}
		if !errors.Is(err, squeeze.ErrCorrupt) {
			t.Errorf("%s: error %v, want ErrCorrupt", name, err)
		}
	}
	full := append(claim(8*1<<17), bytes.Repeat(block, 7)...)
	full = append(full, block[0]|1, block[1], block[2], block[3])
	if out, err := squeeze.Decode(nil, full, 1<<20); err != nil || !bytes.Equal(out, bytes.Repeat([]byte("x"), 1<<20)) {
		t.Errorf("the frame that this test is built on is not what it should be: %d bytes, %v", len(out), err)
	}
}

func TestConcurrentUse(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			var record, back []byte
			for j := range 20 {
				data := text(1000+i*10_000+j, uint64(i))
				var ok bool
				var err error
				if record, ok = squeeze.Encode(record[:0], data); !ok {
					t.Errorf("%d bytes of text do not pay", len(data))
				} else if back, err = squeeze.Decode(back[:0], record, len(data)); err != nil || !bytes.Equal(back, data) {
					t.Errorf("%d bytes came back as %d: %v", len(data), len(back), err)
				}
			}
		})
	}
	group.Wait()
}

// FuzzDecode gives Decode any bytes and a place of exactly the size, with a fence behind it.
func FuzzDecode(f *testing.F) {
	for _, data := range [][]byte{make([]byte, 64), text(1<<10, 1), base64Of(random(900, 1)), text(150<<10, 1), make([]byte, 300<<10)} {
		record, ok := squeeze.Encode(nil, data)
		if !ok {
			f.Fatalf("%d bytes do not pay", len(data))
		}
		f.Add(record, len(data))
		f.Add(record[:len(record)/2], len(data))
		f.Add(append(record, record...), 2*len(data))
	}
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, record []byte, size int) {
		if size > 1<<20 {
			size %= 1 << 20
		}
		const front, fence = 3, 64
		arena := bytes.Repeat([]byte{0xa5}, front+max(size, 0)+fence)
		dst := arena[: front : len(arena)-fence]
		out, err := squeeze.Decode(dst, record, size)
		switch {
		case err != nil && (!errors.Is(err, squeeze.ErrCorrupt) || len(out) != front):
			t.Fatalf("%d bytes and error %v", len(out), err)
		case err == nil && len(out) != front+size:
			t.Fatalf("%d bytes, want %d", len(out)-front, size)
		case err == nil && size > 0 && &out[front] != &arena[front]:
			t.Fatal("memory was allocated though there was room")
		}
		for _, part := range [][]byte{arena[:front], arena[len(arena)-fence:]} {
			if len(bytes.Trim(part, "\xa5")) != 0 {
				t.Fatal("bytes outside the place were written")
			}
		}
	})
}
