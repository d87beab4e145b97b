package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type statusCommand struct {
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// status is the object of --output json. Without a backend only running is set.
type status struct {
	Running  bool    `json:"running"`
	PID      *int    `json:"pid"`
	URL      *string `json:"url"`
	Version  *string `json:"version"`
	Spaces   int     `json:"spaces"`
	Sessions int     `json:"sessions"`
	Runs     int     `json:"runs"`
}

// Run shows the backend without starting one.
func (c *statusCommand) Run(ctx context.Context, t *terminal) error {
	var s status
	cl, info, err := dial(ctx, findFolders(t.getenv).connectionFile())
	if err == nil {
		defer leave(cl)
		snapshot, err := client.Call(ctx, cl, protocol.StateGet, protocol.StateParams{})
		if err != nil {
			return err
		}
		s = status{Running: true, PID: &info.PID, URL: &info.URL, Version: &info.Version, Spaces: len(snapshot.Spaces), Sessions: len(snapshot.Sessions)}
		for _, v := range snapshot.Sessions {
			s.Runs += len(v.Runs)
		}
	}
	if c.Output == outputJSON {
		printJSON(t.out, s)
		return nil
	}
	if !s.Running {
		fmt.Fprintln(t.out, t.text(messages.StatusNone))
		return nil
	}
	fmt.Fprintln(t.out, t.text(messages.StatusRunning, *s.Version, *s.PID, *s.URL, s.Spaces, s.Sessions, s.Runs))
	return nil
}

type stopCommand struct {
	Now bool `help:"${stop_now}"`
}

const (
	// stopPoll is how often the end of the process is looked for.
	stopPoll = 10 * time.Millisecond
	// stopDeadline is how long --now waits: longer than the backend's own deadline for work that does not end.
	stopDeadline = 20 * time.Second
	goneDeadline = 5 * time.Second
)

// Run ends the backend and waits until its process is gone.
func (c *stopCommand) Run(ctx context.Context, t *terminal) error {
	f := findFolders(t.getenv)
	cl, info, err := dial(ctx, f.connectionFile())
	if err != nil {
		if !stateLocked(f) {
			fmt.Fprintln(t.out, t.text(messages.StopNone))
			return nil
		}
		return err
	}
	mode := protocol.ShutdownDrain
	if c.Now {
		mode = protocol.ShutdownCancel
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stopDeadline)
		defer cancel()
	}
	_, err = client.Call(ctx, cl, protocol.Shutdown, protocol.ShutdownParams{Mode: mode})
	leave(cl)
	if err != nil && !errors.Is(err, client.ErrOutcomeUnknown) {
		return err
	}
	if !waitFor(ctx, func() bool { return !stateLocked(f) || holder(f) != info.PID }) {
		return t.fail(exitFailed, messages.StopStuck, info.PID)
	}
	// The lock is free at the very end of the process; a machine that does not collect its dead processes must not keep us here.
	gone, cancel := context.WithTimeout(ctx, goneDeadline)
	defer cancel()
	waitFor(gone, func() bool { return !alive(info.PID) })
	fmt.Fprintln(t.out, t.text(messages.StopDone, info.PID))
	return nil
}

// holder returns the process that last took the state folder's lock, 0 when it is not known.
func holder(f folders) int {
	state, err := vfs.OS(f.state)
	if err != nil {
		return 0
	}
	defer state.Close()
	return readHolder(state)
}

func waitFor(ctx context.Context, done func() bool) bool {
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(stopPoll):
		}
	}
	return true
}

// stateLocked reports whether a backend uses the state folder.
func stateLocked(f folders) bool {
	state, err := vfs.OS(f.state)
	if err != nil {
		return false
	}
	defer state.Close()
	if _, err := state.Stat("backend.lock"); err != nil {
		return false
	}
	lock, err := state.Lock("backend.lock")
	if err != nil {
		return true
	}
	_ = lock.Close() // it was free; closing frees it again
	return false
}
