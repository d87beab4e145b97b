package squeeze_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/repa-app/repa/cas/internal/squeeze"
)

var sources = []struct {
	name string
	data []byte
}{
	{"4KiB random", random(4<<10, 1)},
	{"4KiB text", text(4<<10, 1)},
	{"256KiB text", text(256<<10, 1)},
	{"1MiB random", random(1<<20, 1)},
}

// beside reports how many times as long the measured loop took as bound does.
func beside(b *testing.B, bound func()) {
	ours := b.Elapsed()
	b.StopTimer()
	bound()
	start := time.Now()
	for range b.N {
		bound()
	}
	b.ReportMetric(float64(ours)/float64(time.Since(start)), "x-bound")
}

func BenchmarkEncode(b *testing.B) {
	raw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sources {
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = squeeze.Encode(dst[:0], s.data)
			}
			beside(b, func() { dst = raw.EncodeAll(s.data, dst[:0]) })
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	raw, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sources {
		record, ok := squeeze.Encode(nil, s.data)
		if !ok {
			continue
		}
		b.Run(fmt.Sprintf("%s at %d %%", s.name, 100*len(record)/len(s.data)), func(b *testing.B) {
			b.SetBytes(int64(len(s.data)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = squeeze.Decode(dst[:0], record, len(s.data))
			}
			roomy := make([]byte, 0, len(s.data)+1024)
			beside(b, func() { roomy, _ = raw.DecodeAll(record, roomy[:0]) })
		})
	}
}
