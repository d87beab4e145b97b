package example

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/repa-app/repa/cas/vfs"
)

// Folder is the name of the unpacked space in its parent folder.
const Folder = "example"

const (
	tempPrefix = Folder + ".tmp"
	// leftoverAge tells what a crash left behind from what another process is writing: unpacking takes well under a second.
	leftoverAge = time.Hour
)

//go:embed files
var files embed.FS

// Unpack makes the folder example in the given folder, unless something of that name is there already. Errors: those of the disk;
// then there is no folder example, and the next call begins anew.
func Unpack(parent vfs.FS) error {
	if err := unpack(parent); err != nil {
		return fmt.Errorf("unpack the sample space: %w", err)
	}
	return nil
}

func unpack(parent vfs.FS) error {
	if err := removeLeftovers(parent); err != nil {
		return err
	}
	if there, err := exists(parent); there || err != nil {
		return err
	}
	temp := tempPrefix + rand.Text()
	err := write(parent, temp)
	if err == nil {
		err = parent.Rename(temp, Folder)
	}
	if err != nil {
		err = errors.Join(err, removeAll(parent, temp))
		if there, statErr := exists(parent); there && statErr == nil {
			return nil // another process was faster
		}
		return err
	}
	return parent.SyncDir(".")
}

func exists(parent vfs.FS) (bool, error) {
	_, err := parent.Lstat(Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// write makes the folder with everything in it, durable but for its own name.
func write(parent vfs.FS, folder string) error {
	var folders []string
	err := fs.WalkDir(files, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := path.Join(folder, strings.TrimPrefix(name, "files"))
		if d.IsDir() {
			folders = append(folders, target)
			return parent.Mkdir(target, 0o700)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return writeFile(parent, target, data)
	})
	for _, f := range folders {
		if err == nil {
			err = parent.SyncDir(f)
		}
	}
	return err
}

func writeFile(parent vfs.FS, name string, data []byte) error {
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// removeLeftovers removes the temporary folders of calls that did not end.
func removeLeftovers(parent vfs.FS) error {
	entries, err := parent.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) || !e.IsDir() {
			continue
		}
		info, err := parent.Lstat(e.Name())
		if err == nil && time.Since(info.ModTime()) > leftoverAge {
			err = removeAll(parent, e.Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeAll removes a tree; what is gone already is fine.
func removeAll(parent vfs.FS, name string) error {
	info, err := parent.Lstat(name)
	if err == nil && info.IsDir() {
		var entries []fs.DirEntry
		entries, err = parent.ReadDir(name)
		for _, e := range entries {
			err = errors.Join(err, removeAll(parent, path.Join(name, e.Name())))
		}
	}
	if err == nil {
		err = parent.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
