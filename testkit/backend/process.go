//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/repa-app/repa/protocol/client"
)

const (
	// readyDeadline bounds a start: three hundred times what a start takes on an idle machine, since a tested one is not idle.
	readyDeadline = 15 * time.Second
	// readyPoll is far below what is measured with it.
	readyPoll = time.Millisecond
	// endDeadline bounds an end that was asked for: longer than the backend's own deadlines for work that does not end.
	endDeadline = 30 * time.Second
)

// Options of a Process; the zero value is a backend in a new home.
type Options struct {
	Home string   // the value of REPA_HOME; empty: a new folder that goes with the test
	Env  []string // more variables, as NAME=value
	Args []string // more arguments of `repa serve`
}

// Connection is the content of a connection file.
type Connection struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Process is a backend in a process of its own.
type Process struct {
	Home    string
	PID     int
	ReadyIn time.Duration // from the start of the process to the answer to its first initialize
	Connection

	program string
	options Options
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process was waited for
}

// Start runs a backend and waits until it answers. A backend that does not get there fails the test with its log.
func Start(tb testing.TB, o Options) *Process {
	tb.Helper()
	if o.Home == "" {
		o.Home = filepath.Join(tb.TempDir(), "home")
	}
	p := &Process{Home: o.Home, program: Build(tb), options: o}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Log(p.Log())
		}
	})
	p.start(tb)
	return p
}

// Restart starts the backend again in the same home. One that still runs is stopped first.
func (p *Process) Restart(tb testing.TB) {
	tb.Helper()
	if _, err := p.Stop(); err != nil {
		tb.Fatal(err)
	}
	p.start(tb)
}

// ConnectionFile is where the commands of the same home look for a backend.
func (p *Process) ConnectionFile() string { return filepath.Join(p.Home, "run", "connection.json") }

func (p *Process) logFile() string { return filepath.Join(p.Home, "serve.log") }

// Log is what all backends of this Process wrote to standard error.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Command is a command of the program in the same home. Starting and waiting for it is up to the caller.
func (p *Process) Command(ctx context.Context, args ...string) *exec.Cmd {
	return Command(ctx, p.program, p.Home, p.options.Env, args...)
}

// Command is a command of a program from Build in a home. Its standard input is empty. When ctx ends, it is killed.
func Command(ctx context.Context, program, home string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REPA_HOME=" + home, "LANG=C.UTF-8"}, env...)
	return cmd
}

func (p *Process) start(tb testing.TB) {
	tb.Helper()
	if err := os.MkdirAll(p.Home, 0o700); err != nil {
		tb.Fatal(err)
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	args := append([]string{"serve", "--connection-file", p.ConnectionFile()}, p.options.Args...)
	p.cmd = p.Command(context.Background(), args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)
	begin := time.Now()
	if p.ended, err = hold(p.cmd); err != nil {
		tb.Fatal(err)
	}
	p.PID = p.cmd.Process.Pid
	if err := p.untilReady(); err != nil {
		p.Kill()
		tb.Fatalf("backend is not ready: %v\n%s", err, p.Log())
	}
	p.ReadyIn = time.Since(begin)
}

// hold starts a process and waits for it in a goroutine that keeps its thread: the process may be tied to the thread's life.
func hold(cmd *exec.Cmd) (chan struct{}, error) {
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in ProcessState
		}
	}()
	return ended, <-started
}

func (p *Process) untilReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyDeadline)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := p.greet(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("process ended: %v", p.cmd.ProcessState)
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (p *Process) greet(ctx context.Context) error {
	c, err := ReadConnection(p.ConnectionFile())
	if err != nil {
		return err
	}
	if c.PID != p.PID {
		return fmt.Errorf("connection file names process %d", c.PID) // a killed one's
	}
	p.Connection = c
	greeted, err := p.Dial(ctx)
	if err == nil {
		greeted.Drop()
	}
	return err
}

// ReadConnection reads a connection file.
func ReadConnection(file string) (Connection, error) {
	var c Connection
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// Dial connects a front end to the backend.
func (p *Process) Dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Options{URL: p.URL, Token: p.Token})
}

// Client is a connected front end that is dropped when the test ends. It does not find the backend again after a restart.
func (p *Process) Client(tb testing.TB) *client.Client {
	tb.Helper()
	c, err := p.Dial(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Drop)
	return c
}

// Kill ends the process and all that it started with SIGKILL and waits for its end. Killing a dead one does nothing.
func (p *Process) Kill() {
	if p.ended == nil || p.PID == 0 {
		return
	}
	select {
	case <-p.ended:
		return // its id may belong to somebody else by now
	default:
	}
	_ = syscall.Kill(-p.PID, syscall.SIGKILL) // it may have ended just now
	<-p.ended
}

// Stop asks the process to end with SIGTERM, waits and returns its exit code. It fails when the process did not end and had to be
// killed. Stopping a dead one returns how it ended; a killed one has the code -1.
func (p *Process) Stop() (code int, err error) {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	default:
	}
	if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, err
	}
	return p.Wait()
}

// Wait waits for an end that comes by itself, like Stop.
func (p *Process) Wait() (code int, err error) {
	timer := time.NewTimer(endDeadline)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-timer.C:
		p.Kill()
		return 0, fmt.Errorf("process %d did not end within %v", p.PID, endDeadline)
	}
}

// RSS is the memory of the process that is resident, in bytes; 0 where the system does not tell.
func (p *Process) RSS() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64) // 0 when unreadable
			return kib << 10
		}
	}
	return 0
}
