package tree_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"github.com/repa-app/repa/cas/internal/tree"
)

// beside measures f and reports how many times as long it takes as zeebo's Sum256 of the same bytes.
func beside(b *testing.B, data []byte, f func()) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
	ours := b.Elapsed()
	b.StopTimer()
	start := time.Now()
	for range b.N {
		blake3.Sum256(data)
	}
	b.ReportMetric(float64(ours)/float64(time.Since(start)), "x-bound")
}

func BenchmarkGroupValue(b *testing.B) {
	data := random(16*mib, 1)
	beside(b, data, func() { values(data) })
}

func BenchmarkHasher(b *testing.B) {
	data := random(16*mib, 1)
	for _, part := range []int{mib, 32 << 10, 10_000} {
		b.Run(fmt.Sprintf("parts of %d", part), func(b *testing.B) {
			var h tree.Hasher
			beside(b, data, func() {
				h.Reset()
				for rest := data; len(rest) > 0; rest = rest[min(part, len(rest)):] {
					h.Write(rest[:min(part, len(rest))])
				}
				h.Sum()
			})
		})
	}
}

func BenchmarkSum(b *testing.B) {
	for _, size := range []int{200, 1 << 10, 2 << 10, 4 << 10, 16 << 10, 64 << 10, mib} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			data := random(size, 1)
			beside(b, data, func() { tree.Sum(data) })
		})
	}
}
