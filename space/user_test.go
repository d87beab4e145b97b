//go:build unix

package space_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/repa-app/repa/space"
)

// runAs runs TestOpenAsOther as user nobody, who may not enter dir.
func runAs(t *testing.T, dir string) {
	t.Helper()
	binary := t.TempDir() + "/test"
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for p := binary; len(p) > 1; p = p[:len(p)-1] {
		if info, err := os.Stat(p); err == nil && info.IsDir() && p != "/tmp" {
			_ = os.Chmod(p, info.Mode().Perm()|0o055)
		}
	}
	child := exec.Command(binary, "-test.run=^TestOpenAsOther$", "-test.v")
	child.Env = append(os.Environ(), "REPA_OTHER="+dir, "HOME=/nonexistent")
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOpenAsOther is the child process of runAs.
func TestOpenAsOther(t *testing.T) {
	dir := os.Getenv("REPA_OTHER")
	if dir == "" {
		return
	}
	if _, err := space.Open(ctx, dir, options()); code(err) != "permission_denied" {
		t.Errorf("open a folder of another user: %v", err)
	}
}
