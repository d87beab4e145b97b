package frame_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/repa-app/repa/cas/internal/frame"
)

// The bytes of format 1 never change.
func TestGoldenBytes(t *testing.T) {
	for want, got := range map[string][]byte{
		"0500000003010200" + "0700000000000000" + "971d7867" + "68656c6c6f": frame.Append(nil, 7, 3, 1, frame.First, []byte("he"), []byte("llo")),
		"0000000009010100" + "efcdab8967452301" + "667fdc48":                frame.Append(nil, 0x0123456789abcdef, 9, 1, frame.More),
	} {
		if hex.EncodeToString(got) != want {
			t.Errorf("%x, want %s", got, want)
		}
	}
	if got := frame.Sum([]byte("1234"), []byte("56789")); got != 0xe3069283 { // the check value of CRC-32C
		t.Errorf("sum %x", got)
	}
}

func TestParse(t *testing.T) {
	whole := frame.Append([]byte("before"), 7, 3, 1, frame.First, bytes.Repeat([]byte("payload "), 9))[6:]
	f, ok := frame.Parse(append(bytes.Clone(whole), "behind"...), 7, 72)
	if !ok || f.Type != 3 || f.Version != 1 || f.Flags != frame.First || len(f.Payload) != 72 || f.Len() != len(whole) || !frame.BeginsWrite(f) {
		t.Fatalf("%+v, %t", f, ok)
	}
	if n, ok := frame.Length(whole[:frame.Size], 7, 72); !ok || n != 72 {
		t.Errorf("length %d, %t", n, ok)
	}
	if _, ok := frame.Parse(whole, 8, 72); ok {
		t.Error("of another generation")
	}
	if _, ok := frame.Parse(whole, 7, 71); ok {
		t.Error("over the limit")
	}
	for n := range whole {
		if _, ok := frame.Parse(whole[:n], 7, 72); ok {
			t.Errorf("cut at %d", n)
		}
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[n] ^= 1 << bit
			if _, ok := frame.Parse(flipped, 7, 1<<20); ok {
				t.Errorf("bit %d of byte %d flipped", bit, n)
			}
		}
	}
}

func TestNext(t *testing.T) {
	plain := frame.Append(nil, 300, 1, 1, 0, []byte("plain"))
	first := frame.Append(nil, 300, 1, 1, frame.First, []byte("first"))
	other := frame.Append(nil, 301, 1, 1, frame.First, []byte("other"))
	noise := bytes.Repeat([]byte{0, 0x2c, 1}, 50)
	data := bytes.Join([][]byte{noise, other, plain, noise, first}, nil)
	any := func(frame.Frame) bool { return true }
	for _, c := range []struct {
		data       []byte
		generation uint64
		accept     func(frame.Frame) bool
		want       int
	}{
		{data, 300, any, len(noise) + len(other)},
		{data, 300, frame.BeginsWrite, len(data) - len(first)},
		{data, 301, any, len(noise)},
		{data, 302, any, -1},
		{data[:len(data)-1], 300, frame.BeginsWrite, -1},
		{nil, 300, any, -1},
		{first, 300, any, 0},
	} {
		if got := frame.Next(c.data, c.generation, 100, c.accept); got != c.want {
			t.Errorf("generation %d: %d, want %d", c.generation, got, c.want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(frame.Append(nil, 7, 3, 1, frame.First, []byte("payload")), uint64(7))
	f.Add(append([]byte("noise"), frame.Append(nil, 1<<40, 9, 1, frame.More)...), uint64(1<<40))
	f.Add(bytes.Repeat([]byte{0xff}, 100), ^uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, generation uint64) {
		if p, ok := frame.Parse(data, generation, 1<<20); ok {
			if again := frame.Append(nil, generation, p.Type, p.Version, p.Flags, p.Payload); !bytes.Equal(again, data[:p.Len()]) {
				t.Fatalf("%x is written as %x", data, again)
			}
		}
		at := frame.Next(data, generation, 1<<20, func(frame.Frame) bool { return true })
		for i := range data {
			if _, ok := frame.Parse(data[i:], generation, 1<<20); ok != (i == at) {
				if i < at || at < 0 {
					t.Fatalf("next is %d, but %d parses %t", at, i, ok)
				}
			}
		}
	})
}
