package cut_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/repa-app/repa/cas/internal/cut"
)

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name string
		data []byte
	}{{"random", random(32<<20, 1)}, {"text", text(32<<20, 1)}, {"zeros", make([]byte, 32<<20)}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			for b.Loop() {
				for rest := c.data; len(rest) > 0; {
					rest = rest[cut.Next(rest):]
				}
			}
		})
	}
}

// BenchmarkInsertions reports what 200 scattered insertions of one byte into 192 MiB of text make new, for several averages. The
// time is of cutting and hashing both.
func BenchmarkInsertions(b *testing.B) {
	original := text(192<<20, 1)
	r := rand.NewChaCha8([32]byte{2})
	places := make([]int, 200)
	for i := range places {
		places[i] = int(r.Uint64() % uint64(len(original)))
	}
	slices.Sort(places)
	changed := make([]byte, 0, len(original)+len(places))
	from := 0
	for _, at := range places {
		changed = append(append(changed, original[from:at]...), 'q')
		from = at
	}
	changed = append(changed, original[from:]...)
	for _, average := range []int{64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", average>>10), func(b *testing.B) {
			next := cut.NextWith(average)
			for b.Loop() {
				before, after := pieces(original, next), pieces(changed, next)
				count, size := fresh(before, after)
				b.ReportMetric(100*float64(size)/float64(len(changed)), "%new")
				b.ReportMetric(float64(count), "new-pieces")
				b.ReportMetric(float64(len(original)>>10)/float64(len(before)), "mean-KiB")
			}
		})
	}
}
