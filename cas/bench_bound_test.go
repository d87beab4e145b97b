package cas_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/reftree"
)

// BenchmarkBound measures what the machine allows, one core and one caller.
func BenchmarkBound(b *testing.B) {
	b.Run("blake3-4KiB", func(b *testing.B) { boundHash(b, 4<<10) })
	b.Run("blake3-1MiB", func(b *testing.B) { boundHash(b, 1<<20) })
	b.Run("zstd", func(b *testing.B) { boundCompress(b, false) })
	b.Run("unzstd", func(b *testing.B) { boundCompress(b, true) })
	b.Run("append-fsync", func(b *testing.B) { boundSync(b, 0) })
	b.Run("zeroed-fsync", func(b *testing.B) { boundSync(b, 64<<20) })
}

func boundHash(b *testing.B, size int) {
	data := numbered(1, size)
	b.SetBytes(int64(size))
	for b.Loop() {
		cas.Sum(data)
	}
}

func boundCompress(b *testing.B, open bool) {
	data := make([]byte, 256<<10)
	if _, err := io.ReadFull(reftree.Text(1, int64(len(data))), data); err != nil {
		b.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		b.Fatal(err)
	}
	defer encoder.Close()
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		b.Fatal(err)
	}
	defer decoder.Close()
	packed, opened := encoder.EncodeAll(data, nil), make([]byte, 0, len(data)+1024)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if !open {
			packed = encoder.EncodeAll(data, packed[:0])
		} else if opened, err = decoder.DecodeAll(packed, opened[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data))/float64(len(packed)), "ratio")
}

// boundSync writes 4 KiB behind each other and syncs each, over so many zeros that were written before.
func boundSync(b *testing.B, zeros int) {
	f, err := os.Create(filepath.Join(benchFolder(b), "bound"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, zeros)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	data := numbered(1, 4096)
	at := int64(0)
	for b.Loop() {
		if _, err := f.WriteAt(data, at); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if at += 4096; at == int64(zeros) {
			at = 0
		}
	}
}
