package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol/client"
)

// connectionInfo is the connection file: how front ends find the backend.
type connectionInfo struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

const (
	// readyDeadline bounds the wait for a backend to start; it is ready in a fraction of a second on a healthy machine.
	readyDeadline = 15 * time.Second
	readyPoll     = 5 * time.Millisecond
	// maxLog is where the backend's log begins anew; the old one is kept once.
	maxLog = 10 << 20
	// maxConnectionFile bounds what is read; the file holds four short members.
	maxConnectionFile = 64 << 10
)

// readConnection reads the connection file; an absent or unreadable one is none.
func readConnection(file string) (connectionInfo, bool) {
	fsys, err := vfs.OS(filepath.Dir(file))
	if err != nil {
		return connectionInfo{}, false
	}
	defer fsys.Close()
	var info connectionInfo
	data, err := vfs.ReadFile(fsys, filepath.Base(file), maxConnectionFile)
	if err != nil || json.Unmarshal(data, &info) != nil || info.URL == "" {
		return connectionInfo{}, false
	}
	return info, true
}

// dial connects to a backend that runs already.
func dial(ctx context.Context, file string) (*client.Client, connectionInfo, error) {
	info, ok := readConnection(file)
	if !ok {
		return nil, info, fs.ErrNotExist
	}
	if !alive(info.PID) {
		return nil, info, fs.ErrNotExist
	}
	c, err := client.Dial(ctx, client.Options{URL: info.URL, Token: info.Token})
	return c, info, err
}

// attach connects to the backend, starting one when none runs. Two commands that start at once end up at the same one: only one
// process gets the backend's lock.
func (t *terminal) attach(ctx context.Context) (*client.Client, error) {
	f := findFolders(t.getenv)
	if c, _, err := dial(ctx, f.connectionFile()); err == nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	child, died, logged, err := t.startBackend(f)
	if err != nil {
		return nil, err
	}
	for {
		c, info, err := dial(ctx, f.connectionFile())
		if err == nil {
			if info.PID != child.Pid {
				// Another command's backend was faster. Ours must not wait for that one's end to take its place unasked.
				_ = child.Signal(syscall.SIGTERM) // ended already
			}
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, t.fail(exitFailed, messages.NotReady, readyDeadline, f.logFile())
		case err := <-died:
			// It may have lost the race against another command's backend, which is about to be ready.
			died = nil
			if err != nil && !lostRace(err) {
				return nil, t.fail(exitFailed, messages.BackendDied, lastLine(f.logFile(), logged), f.logFile())
			}
		case <-time.After(readyPoll):
		}
	}
}

// lostRace reports whether a backend ended because another one runs.
func lostRace(err error) bool {
	var e *exec.ExitError
	return errors.As(err, &e) && e.ExitCode() == exitAlreadyServing
}

// startBackend starts a detached backend whose messages go to the log. The channel tells when it has ended; logged is how long the
// log was before.
func (t *terminal) startBackend(f folders) (child *os.Process, died chan error, logged int64, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, 0, err
	}
	log, logged, err := t.openLog(f)
	if err != nil {
		return nil, nil, 0, err
	}
	defer log.Close()
	cmd := exec.Command(program, "serve", "--connection-file", f.connectionFile(), "--exit-when-detached")
	cmd.Dir = f.state // a folder that the learner may want to remove must not be kept busy
	if out, ok := vfs.Underlying(log); ok {
		cmd.Stdout, cmd.Stderr = out, out
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, 0, fmt.Errorf("start the backend: %w", err)
	}
	died = make(chan error, 1)
	go func() { died <- cmd.Wait() }() // ends with the backend or, at the latest, with this command
	return cmd.Process, died, logged, nil
}

func (t *terminal) openLog(f folders) (vfs.File, int64, error) {
	state, err := t.privateFolder(f.state)
	if err != nil {
		return nil, 0, err
	}
	defer state.Close()
	if err := vfs.MkdirAll(state, "log", 0o700); err != nil {
		return nil, 0, err
	}
	const name = "log/backend.log"
	var size int64
	if info, err := state.Stat(name); err == nil {
		size = info.Size()
	}
	if size > maxLog {
		if err := state.Rename(name, name+".old"); err != nil {
			return nil, 0, err
		}
		size = 0
	}
	file, err := state.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return file, size, err
}

// lastLine returns the last line that was written to the log since it was from bytes long.
func lastLine(file string, from int64) string {
	fsys, err := vfs.OS(filepath.Dir(file))
	if err != nil {
		return err.Error()
	}
	defer fsys.Close()
	f, err := fsys.OpenFile(filepath.Base(file), os.O_RDONLY, 0)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, from, 1<<20))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return lines[len(lines)-1]
}
