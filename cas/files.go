package cas

import (
	"errors"
	"os"
	"sync"

	"github.com/repa-app/repa/cas/vfs"
)

// openFiles bounds the packs that are open for reading at once: far below any limit of a process.
const openFiles = 128

// files keeps packs open for reading. It is safe for concurrent use. A file that is in use stays open; what is removed from the folder can
// be read by those who have it.
type files struct {
	fsys vfs.FS
	mu   sync.Mutex
	open map[uint32]*packFile
	tick int64
}

type packFile struct {
	vfs.File
	users int
	last  int64
	gone  bool // closed by its last user
}

func newFiles(fsys vfs.FS) *files { return &files{fsys: fsys, open: map[uint32]*packFile{}} }

// use returns a pack for reading; done must be called with it.
func (f *files) use(generation uint32) (*packFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.open[generation]
	if p == nil {
		if err := f.evict(); err != nil {
			return nil, err
		}
		file, err := f.fsys.OpenFile(segmentPath(generation), os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		p = &packFile{File: file}
		f.open[generation] = p
	}
	f.tick++
	p.users, p.last = p.users+1, f.tick
	return p, nil
}

func (f *files) evict() error {
	if len(f.open) < openFiles {
		return nil
	}
	var oldest uint32
	for g, p := range f.open {
		if p.users == 0 && (oldest == 0 || p.last < f.open[oldest].last) {
			oldest = g
		}
	}
	if oldest == 0 {
		return nil
	}
	p := f.open[oldest]
	delete(f.open, oldest)
	return p.Close()
}

func (f *files) done(p *packFile) {
	f.mu.Lock()
	p.users--
	last := p.gone && p.users == 0
	f.mu.Unlock()
	if last {
		_ = p.Close() // it was only read
	}
}

// forget closes a pack as soon as nobody uses it.
func (f *files) forget(generation uint32) {
	f.mu.Lock()
	p := f.open[generation]
	delete(f.open, generation)
	unused := p != nil && p.users == 0
	if p != nil {
		p.gone = true
	}
	f.mu.Unlock()
	if unused {
		_ = p.Close() // it was only read
	}
}

func (f *files) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for g, p := range f.open {
		delete(f.open, g)
		if p.gone = true; p.users == 0 {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
