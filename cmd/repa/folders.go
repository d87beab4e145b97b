package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/adrg/xdg"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
)

// folders are where the application keeps what belongs to no space.
type folders struct {
	config, state, cache, run string
}

// findFolders follows REPA_HOME, else the platform's conventions (XDG on Linux). It makes nothing.
func findFolders(getenv func(string) string) folders {
	if home := getenv("REPA_HOME"); home != "" {
		if abs, err := filepath.Abs(home); err == nil {
			home = abs
		}
		return folders{filepath.Join(home, "config"), filepath.Join(home, "state"), filepath.Join(home, "cache"), filepath.Join(home, "run")}
	}
	f := folders{config: filepath.Join(xdg.ConfigHome, "repa"), state: filepath.Join(xdg.StateHome, "repa"), cache: filepath.Join(xdg.CacheHome, "repa")}
	f.run = filepath.Join(xdg.RuntimeDir, "repa")
	if info, err := os.Stat(xdg.RuntimeDir); err != nil || !info.IsDir() || !ownedByUser(info) {
		f.run = filepath.Join(os.TempDir(), fmt.Sprintf("repa-%d", os.Getuid()))
	}
	return f
}

func (f folders) connectionFile() string { return filepath.Join(f.run, "connection.json") }
func (f folders) logFile() string        { return filepath.Join(f.state, "log", "backend.log") }
func (f folders) example() string        { return filepath.Join(f.state, "example") }

// privateFolder makes a folder that only the user can enter and opens it. One that others can enter, or that is somebody else's,
// is refused.
func (t *terminal) privateFolder(path string) (vfs.FS, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || !private(info) || !ownedByUser(info) {
		return nil, t.fail(exitFailed, messages.BadFolder, path)
	}
	return vfs.OS(path)
}
