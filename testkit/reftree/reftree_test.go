package reftree_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/flate"

	"github.com/repa-app/repa/testkit/reftree"
)

func TestTree(t *testing.T) {
	const scale = 0.005
	sum := sha256.New()
	count, packed := 0, new(counter)
	compressor, err := flate.NewWriter(packed, 1)
	if err != nil {
		t.Fatal(err)
	}
	var text int64
	for f := range reftree.Files(1, scale) {
		count++
		data, err := io.ReadAll(f.Open())
		if err != nil || int64(len(data)) != f.Size {
			t.Fatalf("%s: %d bytes of %d, %v", f.Name, len(data), f.Size, err)
		}
		sum.Write([]byte(f.Name))
		sum.Write(data)
		if filepath.Ext(f.Name) == ".md" {
			text += f.Size
			if _, err := compressor.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	if count != 100+10+4 {
		t.Errorf("%d files", count)
	}
	if ratio := float64(text) / float64(*packed); ratio < 1.8 || ratio > 4 {
		t.Errorf("notes compress %.2f to 1, unlike natural text", ratio)
	}
	const golden = "15be34e959bf6132e55ac04f34a90fc040ce3cfcca554a2e4eeb98047af70366"
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
		t.Errorf("the tree changed: %s", got)
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := reftree.Write(dir, 2, 0.001); err != nil {
		t.Fatal(err)
	}
	for f := range reftree.Files(2, 0.001) {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil || info.Size() != f.Size {
			t.Errorf("%s: %v, %v", f.Name, info, err)
		}
	}
}
