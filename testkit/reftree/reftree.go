// Package reftree makes the reference tree on which stores are compared: what a learner's folder holds, in the sizes in which it
// becomes interesting. At scale 1 it has 22,004 files of 1,014 MB: 20,000 notes of 1 to 24 KiB (log-normal, median 8 KB, words like English and
// Chinese ones), 2,000 exact copies of some, two incompressible files of 192 MiB, a text of 192 MiB, and a copy of it with 200
// scattered insertions of one byte. The same seed and scale give the same bytes for all time.
package reftree

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"
)

const (
	notes      = 20_000
	copies     = 2_000
	large      = 192 << 20
	insertions = 200
)

// File is one file of the tree.
type File struct {
	Name string // slash-separated, relative
	Size int64
	Open func() io.Reader
}

// Files goes over the tree. Scale divides the number of notes and the size of large files: 0.1 is a tenth. Nothing is kept in memory.
func Files(seed uint64, scale float64) iter.Seq[File] {
	return func(yield func(File) bool) {
		n := max(10, int(notes*scale))
		for i := range n {
			if !yield(note(seed, fmt.Sprintf("notes/%03d/note-%05d.md", i/100, i), i)) {
				return
			}
		}
		for i := range max(1, int(copies*scale)) {
			if !yield(note(seed, fmt.Sprintf("copies/copy-%05d.md", i), i*7%n)) {
				return
			}
		}
		size := int64(float64(large)*scale) &^ 7
		text := func() io.Reader { return &words{rng: source(seed, 3), left: size} }
		for _, f := range []File{
			{"media/lecture-1.bin", size, func() io.Reader { return noise(seed, 1, size) }},
			{"media/lecture-2.bin", size, func() io.Reader { return noise(seed, 2, size) }},
			{"books/book.txt", size, text},
			{"books/book-annotated.txt", size + insertions, func() io.Reader { return inserted(seed, text(), size) }},
		} {
			if !yield(f) {
				return
			}
		}
	}
}

// Write makes the tree below dir.
func Write(dir string, seed uint64, scale float64) error {
	for f := range Files(seed, scale) {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		out, err := os.Create(name)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, f.Open())
		if cerr := out.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func source(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// note is a text whose size is log-normal with a median of 8 KB.
func note(seed uint64, name string, i int) File {
	rng := source(seed, 1000+uint64(i))
	size := min(24<<10, max(1<<10, int64(8192*math.Exp(0.6*rng.NormFloat64()))))
	return File{name, size, func() io.Reader { return &words{rng: source(seed, 1_000_000+uint64(i)), left: size} }}
}

func noise(seed, stream uint64, size int64) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Appendf(nil, "%d %d", seed, stream))
	return bufio.NewReaderSize(io.LimitReader(rand.NewChaCha8(key), size), 64<<10)
}

// Text is size bytes of text like that of the notes, another for each seed.
func Text(seed uint64, size int64) io.Reader { return &words{rng: source(seed, 5), left: size} }

// words is text of a vocabulary in which few words are frequent and many are rare, as in natural ones.
type words struct {
	rng  *rand.Rand
	left int64
	buf  []byte // made, not yet read
	room []byte // what buf is a part of
}

// Read implements io.Reader.
func (w *words) Read(p []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	if want := min(int64(len(p)), w.left); int64(len(w.buf)) < want {
		w.buf = append(w.room[:0], w.buf...)
		all := vocabulary()
		for int64(len(w.buf)) < want {
			n := w.rng.Uint64()
			w.buf = append(w.buf, all[n%drawn]...)
			if n>>32%14 == 0 {
				w.buf = append(w.buf, '\n')
			}
		}
		w.room = w.buf
	}
	n := copy(p[:min(int64(len(p)), w.left)], w.buf)
	w.buf, w.left = w.buf[n:], w.left-int64(n)
	return n, nil
}

const (
	ranks = 20_000
	drawn = 1 << 16 // how finely the ranks are drawn from
)

// vocabulary is what words are drawn from, the frequent ones being there often.
var vocabulary = sync.OnceValue(func() [][]byte {
	all := make([][]byte, ranks)
	for rank := range all {
		all[rank] = word(rank)
	}
	for rank := 1; rank < ranks; rank += 4 { // a phrase
		all[rank] = slices.Concat(all[rank], all[(rank*31+2)%ranks], all[(rank*17+3)%ranks])
	}
	out := make([][]byte, drawn)
	for i := range out {
		out[i] = all[int(math.Exp(float64(i)/drawn*math.Log(ranks)))]
	}
	return out
})

// word is the word of a rank with the space that follows it. Every fifth is Chinese, and none does.
func word(rank int) (out []byte) {
	h := uint64(rank)*0x9e3779b97f4a7c15 + 0x1234567
	if rank%5 == 0 {
		for range 1 + h>>60%3 {
			out = utf8.AppendRune(out, rune(0x4e00+h>>20%0x1000))
			h = h*0x9e3779b97f4a7c15 + 1
		}
		return out
	}
	for range 2 + h>>60%8 {
		out = append(out, "etaoinshrdlucmfwypvbgkqjxz"[h>>32%26])
		h = h*0x9e3779b97f4a7c15 + 1
	}
	return append(out, ' ')
}

// inserted copies r with single bytes put in at places that lie about equally far from each other.
func inserted(seed uint64, r io.Reader, size int64) io.Reader {
	rng := source(seed, 4)
	var parts []io.Reader
	gap := size / insertions
	for i := range int64(insertions) {
		n := gap
		if i == insertions-1 {
			n = size - gap*i
		}
		at := rng.Int64N(n)
		parts = append(parts, io.LimitReader(r, at), bytes.NewReader([]byte{'!'}), io.LimitReader(r, n-at))
	}
	return io.MultiReader(parts...)
}
