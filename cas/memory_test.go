package cas_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/repa-app/repa/cas"
)

// half is a stream of which every other stretch can be compressed.
type half struct {
	noise *rand.ChaCha8
	left  int64
	at    int64
}

func newHalf(size int64) *half { return &half{noise: rand.NewChaCha8([32]byte{1}), left: size} }

// Read implements io.Reader.
func (h *half) Read(p []byte) (int, error) {
	if h.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), h.left, 64<<10)]
	if h.at>>20%2 == 0 {
		h.noise.Read(p) // never fails
	} else {
		for i := range p {
			p[i] = byte((h.at + int64(i)) >> 9)
		}
	}
	h.at, h.left = h.at+int64(len(p)), h.left-int64(len(p))
	return len(p), nil
}

// Memory stays flat while a stream of any length is put and read; the long form takes 4 GiB.
func TestStreamInConstantMemory(t *testing.T) {
	size := int64(2+fewer(3)) * 40 << 20
	if long() {
		size = 4 << 30
	}
	s := open(t, cas.Options{})
	defer closeStore(t, s)
	debug.FreeOSMemory()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	id, err := s.PutReader(ctx, newHalf(size))
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if n, err := o.WriteTo(&same{want: newHalf(size)}); err != nil || n != size {
		t.Fatalf("read %d bytes of %d, %v", n, size, err)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%d MiB: the process took %d MiB more from the system", size>>20, (after.Sys-before.Sys)>>20)
	if grown := after.Sys - before.Sys; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB for a stream of %d MiB", grown>>20, size>>20)
	}
}

// same compares what is written to it.
type same struct {
	want io.Reader
	buf  []byte
}

func (s *same) Write(p []byte) (int, error) {
	if len(s.buf) < len(p) {
		s.buf = make([]byte, len(p))
	}
	if _, err := io.ReadFull(s.want, s.buf[:len(p)]); err != nil {
		return 0, err
	}
	if string(s.buf[:len(p)]) != string(p) {
		return 0, errors.New("other bytes")
	}
	return len(p), nil
}
