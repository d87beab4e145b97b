//go:build unix

package backend

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once   sync.Once
	folder string
	err    error
}

// Build compiles the program on its first call, as it is released (without cgo), and returns its path. It fails the test when
// that does not work.
func Build(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() { built.folder, built.err = build() })
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return filepath.Join(built.folder, "repa")
}

func build() (string, error) {
	folder, err := os.MkdirTemp("", "repa-build-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(folder, "repa"), "github.com/repa-app/repa/cmd/repa")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build cmd/repa: %w\n%s", err, out), os.RemoveAll(folder))
	}
	return folder, nil
}

// RemoveBuild removes what Build made, if anything. Nothing may be built afterwards.
func RemoveBuild() error {
	built.once.Do(func() { built.err = errors.New("the build was removed already") })
	if built.folder == "" {
		return nil
	}
	return os.RemoveAll(built.folder)
}
