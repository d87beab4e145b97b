package reftree_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/repa-app/repa/testkit/reftree"
)

const scale = 0.005

func read(t *testing.T, f reftree.File) []byte {
	t.Helper()
	data, err := io.ReadAll(f.Open())
	if err != nil || int64(len(data)) != f.Size {
		t.Fatalf("%s: %d bytes of %d, %v", f.Name, len(data), f.Size, err)
	}
	return data
}

func TestSameBytesForAllTime(t *testing.T) {
	sum := sha256.New()
	count := 0
	for f := range reftree.Files(1, scale) {
		count++
		sum.Write([]byte(f.Name))
		sum.Write(read(t, f))
	}
	if count != 100+10+4 {
		t.Errorf("%d files", count)
	}
	const golden = "7ef488ecd7131772cf74a99eea8de4ce7ab44eb10fa504d0a353ec07ea52ffd6"
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
		t.Errorf("the tree changed: %s", got)
	}
}

func TestAnotherSeedIsAnotherTree(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2) {
		for f := range reftree.Files(seed, scale) {
			if f.Name != "notes/000/note-00000.md" && !strings.HasPrefix(f.Name, "media/") {
				continue
			}
			data := string(read(t, f))
			if seen[data] {
				t.Errorf("%s with seed %d is in another tree", f.Name, seed)
			}
			seen[data] = true
		}
	}
}

func TestCountsAndSizesOfTheWholeTree(t *testing.T) {
	var total int64
	var sizes []int64
	folders := map[string]int{}
	for f := range reftree.Files(1, 1) {
		total += f.Size
		folder, _, _ := strings.Cut(f.Name, "/")
		folders[folder]++
		if folder == "notes" {
			sizes = append(sizes, f.Size)
		}
	}
	if folders["notes"] != 20_000 || folders["copies"] != 2_000 || folders["media"] != 2 || folders["books"] != 2 {
		t.Errorf("files: %v", folders)
	}
	if total < 1_009e6 || total > 1_019e6 {
		t.Errorf("%d bytes, want about 1,014 MB", total)
	}
	slices.Sort(sizes)
	if low, median, high := sizes[0], sizes[len(sizes)/2], sizes[len(sizes)-1]; low < 1<<10 || median < 7_500 || median > 8_700 || high > 24<<10 {
		t.Errorf("notes of %d, median %d, to %d bytes", low, median, high)
	}
}

func TestCopiesAreOfNotes(t *testing.T) {
	notes := map[string]bool{}
	for f := range reftree.Files(1, scale) {
		data := string(read(t, f))
		switch folder, _, _ := strings.Cut(f.Name, "/"); folder {
		case "notes":
			if notes[data] {
				t.Errorf("%s is there twice", f.Name)
			}
			notes[data] = true
		case "copies":
			if !notes[data] {
				t.Errorf("%s is no copy", f.Name)
			}
		}
	}
}

func TestAnnotatedBookHasScatteredInsertions(t *testing.T) {
	books := map[string][]byte{}
	for f := range reftree.Files(1, scale) {
		if strings.HasPrefix(f.Name, "books/") {
			books[f.Name] = read(t, f)
		}
	}
	plain, annotated := books["books/book.txt"], books["books/book-annotated.txt"]
	if bytes.ContainsRune(plain, '!') {
		t.Fatal("the book has the byte that is inserted")
	}
	if !bytes.Equal(bytes.ReplaceAll(annotated, []byte("!"), nil), plain) {
		t.Error("the books differ by more than insertions")
	}
	parts := bytes.Split(annotated, []byte("!"))
	if len(parts) != 201 {
		t.Errorf("%d insertions", len(parts)-1)
	}
	for i, p := range parts {
		if len(p) > len(plain)/100+1 {
			t.Errorf("%d bytes before insertion %d", len(p), i)
		}
	}
}

// Natural English of some kilobytes becomes half as large, of a megabyte a third.
func TestTextsCompressLikeNaturalOnes(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	for _, c := range []struct {
		prefix    string
		low, high float64
	}{{"notes/", 1.9, 2.6}, {"books/book.txt", 2.5, 3.6}, {"media/", 0.99, 1.01}} {
		var all, packed int
		for f := range reftree.Files(1, scale) {
			if strings.HasPrefix(f.Name, c.prefix) {
				data := read(t, f)
				all, packed = all+len(data), packed+len(encoder.EncodeAll(data, nil))
			}
		}
		if ratio := float64(all) / float64(packed); ratio < c.low || ratio > c.high {
			t.Errorf("%s compresses %.2f to 1, want %.2f to %.2f", c.prefix, ratio, c.low, c.high)
		}
	}
}

func TestReadsOfAnySizeGiveTheSameBytes(t *testing.T) {
	for f := range reftree.Files(1, 0.001) {
		want := read(t, f)
		r := f.Open()
		var got []byte
		for size := 1; ; size = size%613 + 1 {
			buf := make([]byte, size)
			n, err := r.Read(buf)
			got = append(got, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs when it is read in small parts", f.Name)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := reftree.Write(dir, 2, 0.001); err != nil {
		t.Fatal(err)
	}
	for f := range reftree.Files(2, 0.001) {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil || !bytes.Equal(data, read(t, f)) {
			t.Errorf("%s: %d bytes, %v", f.Name, len(data), err)
		}
	}
	if err := reftree.Write(filepath.Join(dir, "media", "lecture-1.bin"), 2, 0.001); err == nil {
		t.Error("a tree was written below a file")
	}
}
