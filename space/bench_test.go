package space_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/repa-app/repa/space"
)

// BenchmarkOpen is opening and closing a folder: one that becomes a space by it, and one that is a space.
func BenchmarkOpen(b *testing.B) {
	open := func(b *testing.B, dir string) {
		s, err := space.Open(ctx, dir, options())
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("new", func(b *testing.B) {
		dir, i := b.TempDir(), 0
		for b.Loop() {
			open(b, filepath.Join(dir, strconv.Itoa(i)))
			i++
		}
	})
	b.Run("again", func(b *testing.B) {
		dir := b.TempDir()
		open(b, dir)
		for b.Loop() {
			open(b, dir)
		}
	})
}
