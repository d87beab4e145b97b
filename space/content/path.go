package content

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/repa-app/repa/cas/vfs"
)

// own is the folder of a space that belongs to Repa.
const ownFolder = ".repa"

// tempFolder, in Repa's folder, has files that are about to be renamed into the space. When a space is opened it is emptied.
const tempFolder = ownFolder + "/tmp"

// Hidden reports whether a name in a folder is never shown: Repa's own folder, temporary files of other versions, and names that are no text, which
// nobody could write down.
func Hidden(name string) bool {
	return isOwn(name) || !utf8.ValidString(name) || strings.HasPrefix(name, ".repa-") && strings.HasSuffix(name, ".tmp")
}

func isOwn(name string) bool {
	return strings.EqualFold(norm.NFKC.String(strings.TrimRight(name, " .")), ownFolder)
}

// clean turns what a person or model wrote into a slash-separated path below the space; "." is the space itself. An absolute path is
// accepted when it lies in the space; a backslash counts as a slash on every platform, because models write both.
func (e *Engine) clean(name string) (string, error) {
	original := name
	name = strings.TrimPrefix(name, "@")
	if name == "" {
		return "", fail(codeInput, "the path is empty; give one relative to the space's folder")
	}
	if !utf8.ValidString(name) {
		return "", fail(codeInput, "path %q is no text", original)
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "", fail(codeInput, "path %q contains a control character; no file of a space is named so", original)
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(e.path, name)
		if err != nil {
			return "", outside(original)
		}
		name = rel
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if name != "." && (!fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name))) {
		return "", outside(original)
	}
	first, _, _ := strings.Cut(name, "/")
	if isOwn(first) {
		return "", belongsToRepa(original)
	}
	if Hidden(path.Base(name)) {
		return "", fail(codePermission, "%q is the name of a temporary file of Repa; choose another", original)
	}
	return name, nil
}

func outside(name string) error {
	return fail(codePermission, "%q is not inside this space; give a path relative to the space's folder", name)
}

func belongsToRepa(name string) error {
	return fail(codePermission, "%q lies in %s, which belongs to Repa itself", name, ownFolder)
}

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// resolve follows the symbolic links of a cleaned path as far as it exists. What leads out of the space is refused.
func (e *Engine) resolve(name string) (string, error) {
	if name == "." {
		return name, nil
	}
	real, rest := "", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(real, rest[0])
		info, err := e.root.Lstat(next)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return path.Join(append([]string{real}, rest...)...), nil
			}
			return "", diskError(name, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(rest) > 1 && !info.IsDir() {
				return "", fail(codeNotFound, "%s does not exist: %s is a file, not a folder", name, next)
			}
			real, rest = next, rest[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", fail(codeInput, "%s leads through a circle of symbolic links", name)
		}
		target, err := e.root.Readlink(next)
		if err != nil {
			return "", diskError(name, err)
		}
		if path.IsAbs(target) || filepath.IsAbs(target) {
			rel, err := filepath.Rel(e.path, target)
			if err != nil {
				return "", outside(name)
			}
			target = filepath.ToSlash(rel)
		} else {
			target = path.Join(real, target)
		}
		target = path.Clean(target)
		if target == ".." || strings.HasPrefix(target, "../") {
			return "", fail(codePermission, "%s is a symbolic link that leads out of this space", name)
		}
		var through []string
		if target != "." {
			through = strings.Split(target, "/")
		}
		real, rest = "", append(through, rest[1:]...)
	}
	if first, _, _ := strings.Cut(real, "/"); isOwn(first) {
		return "", belongsToRepa(name)
	}
	if real == "" {
		return ".", nil
	}
	return real, nil
}

// folder opens the folder of a resolved path, component by component, and returns it with the file's own name. A component that
// is a symbolic link is refused, also when it is swapped in between check and use: the folder that was opened must be the very
// one that was seen. The folder .repa is recognised under any spelling. The caller closes the folder.
func (e *Engine) folder(name string) (vfs.FS, string, error) {
	parts := strings.Split(name, "/")
	current, err := e.root.Sub(".")
	if err != nil {
		return nil, "", diskError("folder "+e.path, err)
	}
	for i, part := range parts[:len(parts)-1] {
		next, err := e.step(current, part, strings.Join(parts[:i+1], "/"))
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

func (e *Engine) step(current vfs.FS, part, name string) (vfs.FS, error) {
	seen, err := current.Lstat(part)
	if err != nil {
		return nil, diskError("folder "+name, err)
	}
	if seen.Mode()&fs.ModeSymlink != 0 {
		return nil, fail(codeConflict, "%s became a symbolic link meanwhile; try again", name)
	}
	if !seen.IsDir() {
		return nil, fail(codeNotFound, "%s is a file, not a folder", name)
	}
	if e.own != nil && os.SameFile(seen, e.own) {
		return nil, belongsToRepa(name)
	}
	next, err := current.Sub(part)
	if err != nil {
		return nil, diskError("folder "+name, err)
	}
	opened, err := next.Stat(".")
	if err = diskError("folder "+name, err); err == nil && !sameFile(seen, opened) {
		err = fail(codeConflict, "%s changed while it was opened; try again", name)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// sameFile compares two looks at a file; a disk that does not tell one file from another, as in tests, is trusted.
func sameFile(a, b fs.FileInfo) bool { return a.Sys() == nil || os.SameFile(a, b) }
