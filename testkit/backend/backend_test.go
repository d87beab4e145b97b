//go:build unix

package backend_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/backend"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := backend.RemoveBuild(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestLife(t *testing.T) {
	p := backend.Start(t, backend.Options{})
	if p.PID != p.Connection.PID || p.ReadyIn <= 0 || !alive(p.PID) {
		t.Fatalf("started as %+v", p)
	}
	c := p.Client(t)
	if _, err := client.Call(t.Context(), c, protocol.SpaceList, protocol.Empty{}); err != nil {
		t.Error(err)
	}
	first := p.PID
	if code, err := p.Stop(); err != nil || code != 0 || alive(first) {
		t.Errorf("stopped with %d, %v", code, err)
	}
	p.Restart(t)
	second := p.PID
	if second == first || !alive(second) {
		t.Errorf("restarted as process %d", second)
	}
	p.Kill()
	p.Kill()
	if code, err := p.Stop(); err != nil || code != -1 || alive(second) {
		t.Errorf("killed: %d, %v", code, err)
	}
	p.Restart(t)
	p.Restart(t)
	if p.Log() == "" || p.RSS() < 1<<20 && p.RSS() != 0 {
		t.Errorf("log %q, memory %d", p.Log(), p.RSS())
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) { pid = backend.Start(t, backend.Options{}).PID })
	if alive(pid) {
		t.Errorf("process %d is left", pid)
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "of-the-machine")
	p := backend.Start(t, backend.Options{Env: []string{"MORE=1"}})
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
	if err != nil {
		t.Skip("the system does not show environments")
	}
	for name, want := range map[string]bool{"OPENAI_API_KEY": false, "MORE": true, "REPA_HOME": true} {
		if got := bytes.Contains(data, []byte("\x00"+name+"=")); got != want {
			t.Errorf("%s is set: %v", name, got)
		}
	}
}

func TestCommandOfTheSameHome(t *testing.T) {
	p := backend.Start(t, backend.Options{})
	out, err := p.Command(context.Background(), "status", "--output", "json").Output()
	if want := fmt.Sprintf(`"pid":%d`, p.PID); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
}
