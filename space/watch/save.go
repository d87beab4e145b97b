package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/repa-app/repa/cas/vfs"
)

const (
	magic       = "repaseen"
	saveVersion = 1
	// maxSaved bounds a saved table: 100,000 files take about 5 MiB.
	maxSaved = 1 << 30
)

// ErrDamaged says that a saved table cannot be used; it is made anew.
var ErrDamaged = errors.New("the saved table of files is damaged or of another version")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode is the saved form of the table.
func (t *Tree) encode() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := append([]byte(magic), saveVersion)
	out = binary.LittleEndian.AppendUint64(out, uint64(t.seen))
	names := make([]string, 0, len(t.folders))
	for name := range t.folders {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = appendText(out, name)
		out = binary.AppendUvarint(out, uint64(len(t.folders[name])))
		for _, e := range t.folders[name] {
			out = appendText(out, e.name)
			kind := byte(0)
			if e.folder {
				kind = 1
			}
			out = append(out, kind)
			out = binary.AppendUvarint(out, uint64(e.size))
			out = binary.LittleEndian.AppendUint64(out, uint64(e.mtime))
			out = binary.LittleEndian.AppendUint64(out, e.inode)
		}
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// Decode reads a saved table of any origin. Errors: ErrDamaged.
func (t *Tree) Decode(data []byte) error {
	const head = len(magic) + 1 + 8
	if len(data) < head+4 || string(data[:len(magic)]) != magic || data[len(magic)] != saveVersion {
		return ErrDamaged
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return ErrDamaged
	}
	seen := int64(binary.LittleEndian.Uint64(body[len(magic)+1:]))
	r := reader{body[head:], true}
	folders, files := map[string][]entry{}, 0
	for len(r.rest) > 0 && r.ok {
		name, n := r.text(), r.number()
		if n > uint64(len(r.rest)) { // an entry has more than one byte
			return ErrDamaged
		}
		entries := make([]entry, 0, n)
		for range n {
			e := entry{name: r.text(), folder: r.byte() == 1, size: int64(r.number()), mtime: int64(r.fixed()), inode: r.fixed()}
			if len(entries) > 0 && entries[len(entries)-1].name >= e.name {
				return ErrDamaged
			}
			if !e.folder {
				files++
			}
			entries = append(entries, e)
		}
		folders[name] = entries
	}
	if _, top := folders["."]; !r.ok || !top && len(folders) > 0 {
		return ErrDamaged
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.folders, t.seen, t.files = folders, seen, files
	return nil
}

// reader takes values from bytes; ok ends at the first that is not there.
type reader struct {
	rest []byte
	ok   bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.ok = nil, false
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.ok = nil, false
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *reader) text() string { return string(r.take(r.number())) }

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) fixed() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Save writes the table to a file of fsys.
func (t *Tree) Save(fsys vfs.FS, name string) error {
	if err := vfs.PublishFile(fsys, name, t.encode(), 0o600); err != nil {
		return fmt.Errorf("save the table of files: %w", err)
	}
	return nil
}

// Load reads a table that Save wrote. Errors: ErrDamaged, and of the disk; then the tree is as it was.
func (t *Tree) Load(fsys vfs.FS, name string) error {
	data, err := vfs.ReadFile(fsys, name, maxSaved)
	if err != nil {
		return err
	}
	return t.Decode(data)
}
