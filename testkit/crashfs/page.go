package crashfs

import "slices"

const (
	// sector is what a drive writes whole or not at all.
	sector = 512
	// pageSize is the unit of sharing and of space: the block of common file systems.
	pageSize = 4096
	// chunkPages makes a change of one page in a 64 MiB file copy about 2.5 KiB of tables besides the page.
	chunkPages = 64
)

type page = [pageSize]byte

type chunk [chunkPages]*page

var zeros page

// image is the content of a file at one moment. Pages and tables are never changed once made, so images share them and copying
// an image costs nothing. A page that is nil is a hole; bytes behind size are zero.
type image struct {
	size   int64
	pages  int64 // that are not holes
	chunks []*chunk
}

func (m image) page(i int64) *page {
	if at := i / chunkPages; at < int64(len(m.chunks)) && m.chunks[at] != nil {
		return m.chunks[at][i%chunkPages]
	}
	return nil
}

// read returns how many bytes there were at off.
func (m image) read(p []byte, off int64) int {
	p = p[:max(0, min(int64(len(p)), m.size-off))]
	for n := 0; n < len(p); {
		at := off + int64(n)
		from := &zeros
		if pg := m.page(at / pageSize); pg != nil {
			from = pg
		}
		n += copy(p[n:], from[at%pageSize:])
	}
	return len(p)
}

// sector returns the bytes of a sector; they may not be changed.
func (m image) sector(s int64) []byte {
	at := s * sector
	from := &zeros
	if pg := m.page(at / pageSize); pg != nil {
		from = pg
	}
	return from[at%pageSize : at%pageSize+sector]
}

// fit returns how many of the want bytes at off can be written when holes may take free bytes of disk.
func (m image) fit(off, want, free int64) int64 {
	end := off + want
	for at := off; at < end; at = at - at%pageSize + pageSize {
		if m.page(at/pageSize) != nil {
			continue
		}
		if free < pageSize {
			return at - off
		}
		free -= pageSize
	}
	return want
}

// end returns where the last page ends that may hold anything but zeros.
func (m image) end() int64 {
	i := (m.size + pageSize - 1) / pageSize
	for i > 0 && (m.page(i-1) == nil || m.page(i-1) == &zeros) {
		i--
	}
	return min(i*pageSize, m.size)
}

func (m image) write(p []byte, off int64) image {
	e := m.edit()
	e.write(p, off)
	return e.image
}

// resize cuts the image or extends it by a hole.
func (m image) resize(size int64) image {
	if size >= m.size {
		m.size = size
		return m
	}
	e := m.edit()
	e.size = size
	keep := (size + pageSize - 1) / pageSize
	for i := keep; i < int64(len(e.chunks))*chunkPages; i++ {
		if e.page(i) != nil {
			e.table(i)[i%chunkPages] = nil
			e.pages--
		}
	}
	e.chunks = slices.Clip(e.chunks[:min(int64(len(e.chunks)), (keep+chunkPages-1)/chunkPages)])
	if rest := size % pageSize; rest > 0 && e.page(keep-1) != nil {
		clear(e.own(keep - 1)[rest:])
	}
	return e.image
}

// reserve extends the image to size and fills the holes in what it adds.
func (m image) reserve(size int64) image {
	e := m.edit()
	for i := m.size / pageSize; i*pageSize < size; i++ {
		if e.page(i) == nil {
			e.table(i)[i%chunkPages] = &zeros
			e.pages++
		}
	}
	e.size = size
	return e.image
}

// editor makes a new image from an old one. It is fast when edits go upwards: the last table and page touched are its own.
type editor struct {
	image
	ownChunk, ownPage int64
}

func (m image) edit() *editor {
	m.chunks = slices.Clone(m.chunks)
	return &editor{image: m, ownChunk: -1, ownPage: -1}
}

// table returns the table that holds page i, for changing.
func (e *editor) table(i int64) *chunk {
	at := i / chunkPages
	for at >= int64(len(e.chunks)) {
		e.chunks = append(e.chunks, nil)
	}
	if e.ownChunk != at {
		fresh := new(chunk)
		if old := e.chunks[at]; old != nil {
			*fresh = *old
		}
		e.chunks[at], e.ownChunk = fresh, at
	}
	return e.chunks[at]
}

// own returns page i, for changing.
func (e *editor) own(i int64) *page {
	t := e.table(i)
	slot := &t[i%chunkPages]
	if e.ownPage != i {
		fresh := new(page)
		if *slot != nil {
			*fresh = **slot
		} else {
			e.pages++
		}
		*slot, e.ownPage = fresh, i
	}
	return *slot
}

func (e *editor) write(p []byte, off int64) {
	e.size = max(e.size, off+int64(len(p)))
	for len(p) > 0 {
		n := copy(e.own(off / pageSize)[off%pageSize:], p)
		p, off = p[n:], off+int64(n)
	}
}
