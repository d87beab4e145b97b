package cas_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/testkit/reftree"
)

// streams are contents of any length, another for each number: none compresses, all does.
var streams = []struct {
	name string
	data func(n uint64, size int64) []byte
}{
	{"raw", func(n uint64, size int64) []byte { return numbered(int(n), int(size)) }},
	{"text", func(n uint64, size int64) []byte {
		data := make([]byte, size)
		if _, err := io.ReadFull(reftree.Text(n, size), data); err != nil {
			panic(err)
		}
		return data
	}},
}

// BenchmarkStream puts a stream durably and reads it verified. The bounds are one core's BLAKE3 of the same bytes and, for text, one core's
// fastest zstd of pieces of 256 KiB; for what does not compress, a write of it to a file of its own, and a sync.
func BenchmarkStream(b *testing.B) {
	for _, stream := range streams {
		for _, mib := range []int64{16, 512} {
			b.Run(fmt.Sprintf("%s/%dMiB", stream.name, mib), func(b *testing.B) {
				dir := benchFolder(b)
				s, err := cas.Open(ctx, filepath.Join(dir, "cas"), cas.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				var put, read, hash, write, pack, open time.Duration
				for b.Loop() {
					data := stream.data(benchSerial.Add(1), mib<<20)
					var id cas.ID
					put += timed(b, func() (err error) { id, err = s.PutReader(ctx, bytes.NewReader(data)); return err })
					read += timed(b, func() error { return readStream(s, id, int64(len(data))) })
					hash += timed(b, func() error { cas.Sum(data); return nil })
					write += timed(b, func() error { return writeSynced(filepath.Join(dir, fmt.Sprint(benchSerial.Add(1))), data) })
					p, o := zstdTimes(b, data)
					pack, open = pack+p, open+o
				}
				rate := func(d time.Duration) float64 { return float64(mib<<20) * float64(b.N) / 1e9 / d.Seconds() }
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(rate(put), "GB/s-put")
				b.ReportMetric(rate(read), "GB/s-read")
				if stream.name == "raw" {
					b.ReportMetric(write.Seconds()/put.Seconds(), "x-write-put")
					b.ReportMetric(hash.Seconds()/read.Seconds(), "x-blake3-read")
					return
				}
				b.ReportMetric((hash+pack).Seconds()/put.Seconds(), "x-blake3+zstd-put")
				b.ReportMetric((hash+open).Seconds()/read.Seconds(), "x-blake3+zstd-read")
			})
		}
	}
}

// writeSynced writes a file by the megabyte and syncs it.
func writeSynced(name string, data []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(data, 1<<20) {
		if _, err = f.Write(part); err != nil {
			break
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func readStream(s *cas.Store, id cas.ID, size int64) error {
	o, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	defer o.Close()
	n, err := o.WriteTo(io.Discard)
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes of %d", n, size)
	}
	return err
}

// zstdTimes is how long one core takes to compress data in pieces, and to open them.
func zstdTimes(b *testing.B, data []byte) (pack, open time.Duration) {
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
	const piece = 256 << 10
	packed, opened := make([]byte, 0, 2*piece), make([]byte, 0, 2*piece)
	for at := 0; at < len(data); at += piece {
		pack += timed(b, func() error { packed = encoder.EncodeAll(data[at:min(len(data), at+piece)], packed[:0]); return nil })
		open += timed(b, func() (err error) { opened, err = decoder.DecodeAll(packed, opened[:0]); return err })
	}
	return pack, open
}
