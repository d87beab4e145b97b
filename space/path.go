package space

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/repa-app/repa/cas/vfs"
)

// cleanPath turns what a person or model wrote into a slash-separated path below the space. An absolute path is accepted when
// it lies in the space; a backslash counts as a slash on every platform, because models write both.
func (s *Space) cleanPath(name string) (string, error) {
	original := name
	name = strings.TrimPrefix(name, "@")
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "", fail("invalid_path", "path %q contains a control character; no file of a space is named so", original)
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(s.path, name)
		if err != nil {
			return "", fail("invalid_path", "%q is outside of this space", original)
		}
		name = rel
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if name == "." || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fail("invalid_path", "%q is not a file inside this space; give a path relative to the space's folder", original)
	}
	first, _, _ := strings.Cut(name, "/")
	if strings.EqualFold(norm.NFKC.String(strings.TrimRight(first, " .")), MetaFolder) {
		return "", fail("invalid_path", "%q lies in %s, which belongs to Repa itself", original, MetaFolder)
	}
	return name, nil
}

// folder opens the folder of a cleaned path, component by component, and returns it with the file's own name. A component that
// is a symbolic link is refused, also when it is swapped in between check and use: the folder that was opened must be the very
// one that was seen. The folder .repa is recognised under any spelling. With make, missing folders are made. The caller closes
// the folder.
func (s *Space) folder(name string, make bool) (vfs.FS, string, error) {
	parts := strings.Split(name, "/")
	current, err := s.root.Sub(".")
	if err != nil {
		return nil, "", diskError("folder "+s.path, err)
	}
	for i, part := range parts[:len(parts)-1] {
		next, err := s.step(current, part, strings.Join(parts[:i+1], "/"), make)
		if cerr := current.Close(); err == nil && cerr != nil {
			err = errors.Join(cerr, next.Close())
		}
		if err != nil {
			return nil, "", err
		}
		current = next
	}
	return current, parts[len(parts)-1], nil
}

func (s *Space) step(current vfs.FS, part, name string, make bool) (vfs.FS, error) {
	seen, err := current.Lstat(part)
	if make && errors.Is(err, fs.ErrNotExist) {
		if err = current.Mkdir(part, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			if err = current.SyncDir("."); err == nil {
				seen, err = current.Lstat(part)
			}
		}
	}
	if err != nil {
		return nil, diskError("folder "+name, err)
	}
	if seen.Mode()&fs.ModeSymlink != 0 {
		return nil, fail("invalid_path", "%s is a symbolic link; use the path of the folder it points to", name)
	}
	if !seen.IsDir() {
		return nil, fail("invalid_path", "%s is a file, not a folder", name)
	}
	if os.SameFile(seen, s.own) {
		return nil, fail("invalid_path", "%s belongs to Repa itself", name)
	}
	next, err := current.Sub(part)
	if err != nil {
		return nil, diskError("folder "+name, err)
	}
	opened, err := next.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = fail("invalid_path", "%s changed while it was opened; try again", name)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}
