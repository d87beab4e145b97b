package content

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/vfs"
)

// look is what was seen at a resolved path.
type look struct {
	path  string
	was   string // the path from which the file seems to have come
	image Image
	info  fs.FileInfo // nil: nothing is there
	data  []byte      // of a file that was read whole
	file  vfs.File    // the open file, so that what is written to it later is not lost; nil when it is not needed
}

func (l *look) close() {
	if l.file != nil {
		_ = l.file.Close() // only read from
		l.file = nil
	}
}

// stat looks at a path without reading. Errors (codes): unsupported_content for what is neither file nor folder.
func (e *Engine) stat(name string) (*look, error) {
	info, err := e.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // below a file there is nothing
		return &look{path: name, image: absent}, nil
	}
	if err != nil {
		return nil, diskError(name, err)
	}
	l := &look{path: name, info: info}
	switch {
	case info.IsDir():
		l.image = directory(info.Mode())
	case info.Mode().IsRegular():
		l.image = Image{Kind: kindFile, Size: info.Size(), Mode: info.Mode().Perm()}
	default:
		return nil, fail(codeUnsupported, "%s is neither a file nor a folder (%v)", name, info.Mode().Type())
	}
	return l, nil
}

// read looks at a path and reads the file that is there: whole when it has at most limit bytes, else into the store. The caller closes it.
func (e *Engine) read(ctx context.Context, name string, limit int64) (*look, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := e.stat(name)
	if err != nil || l.image.Kind != kindFile {
		return l, err
	}
	folder, base, err := e.folder(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	f, err := folder.OpenFile(base, 0, 0)
	if err != nil {
		return nil, diskError(name, err)
	}
	l.file = f
	if err := e.fill(ctx, l, limit); err != nil {
		l.close()
		return nil, diskError(name, err)
	}
	return l, nil
}

// fill completes a look at an open file: with its bytes up to limit, with those of a larger one in the store, or with a negative limit without any.
func (e *Engine) fill(ctx context.Context, l *look, limit int64) (err error) {
	if l.info, err = l.file.Stat(); err != nil {
		return err
	}
	if !l.info.Mode().IsRegular() {
		return fail(codeUnsupported, "%s is neither a file nor a folder", l.path)
	}
	size := l.info.Size()
	l.image = Image{Kind: kindFile, Size: size, Mode: l.info.Mode().Perm()}
	var body cas.ID
	switch {
	case limit < 0:
		return nil
	case size <= limit:
		l.data, err = readAll(l.file, size, limit)
		body, size = cas.Sum(l.data), int64(len(l.data))
	default:
		body, err = e.store.PutReader(ctx, l.file)
	}
	l.image = file(body, size, l.info.Mode())
	return err
}

// readAll reads a file from its start; a growing one is refused with vfs.ErrTooLarge above limit.
func readAll(f vfs.File, size, limit int64) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.ReadAt(data[len(data):cap(data)], int64(len(data)))
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, vfs.ErrTooLarge
		}
		if n == 0 || err != nil {
			if err == nil || errors.Is(err, io.EOF) {
				return data, nil
			}
			return nil, err
		}
	}
}

// unchanged reports whether a later look at the same file shows nothing new: a program that writes changes the time or the size.
func unchanged(a, b fs.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && sameFile(a, b)
}

// matches looks at a path again and reports whether it still is as an image says. before is the first look, nil when there was none.
func (e *Engine) matches(ctx context.Context, name string, want Image, before *look) (bool, error) {
	now, err := e.stat(name)
	if err != nil {
		return false, err
	}
	if now.image.Kind != want.Kind || want.Body == nil {
		return now.image.Kind == want.Kind, nil
	}
	if before != nil && unchanged(before.info, now.info) {
		return true, nil
	}
	if want.Size != now.image.Size {
		return false, nil
	}
	body, err := e.sum(ctx, name)
	return err == nil && body == *want.Body, err
}

// sum is the id of a file's bytes, without storing them.
func (e *Engine) sum(ctx context.Context, name string) (cas.ID, error) {
	folder, base, err := e.folder(name)
	if err != nil {
		return cas.ID{}, err
	}
	defer folder.Close()
	f, err := folder.OpenFile(base, 0, 0)
	if err != nil {
		return cas.ID{}, diskError(name, err)
	}
	defer f.Close()
	id, err := cas.SumReader(ctx, f)
	if err != nil {
		return cas.ID{}, diskError(name, err)
	}
	return id, nil
}
