//go:build !unix

package vfs

import (
	"os"
	"path/filepath"
)

// renameBetween renames by path: an open directory keeps its path from being changed on these platforms.
func renameBetween(from *os.Root, oldName string, to *os.Root, newName string) error {
	return os.Rename(filepath.Join(from.Name(), oldName), filepath.Join(to.Name(), newName))
}
