//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/backend"
	"github.com/repa-app/repa/testkit/modelserver"
)

// must makes a call that must succeed.
func must[P, R any](t *testing.T, c *client.Client, m *protocol.Call[P, R], p P) R {
	t.Helper()
	r, err := client.Call(t.Context(), c, m, p)
	if err != nil {
		t.Fatalf("%s: %v", m.Name, err)
	}
	return r
}

// openSpace makes a folder a space of the backend.
func openSpace(t *testing.T, c *client.Client, dir string) protocol.ID {
	t.Helper()
	return must(t, c, protocol.SpaceOpen, protocol.SpaceOpenParams{Path: dir}).ID
}

func notes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cell.md"), []byte("A cell is the smallest unit of life.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func lend(t *testing.T, c *client.Client, s *modelserver.Server) *protocol.RunSelection {
	t.Helper()
	lent := must(t, c, protocol.ConnectionLend, protocol.LendParams{Provider: "openai", BaseURL: s.OpenAIURL(), Secret: canary})
	return &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: lent.ConnectionID, ID: "gpt-x"}}
}

func question(key protocol.SessionKey, text string, selection *protocol.RunSelection) protocol.Submit {
	return protocol.Submit{Target: key, RequestID: protocol.ID(uuid.NewString()), Selection: selection,
		Input: protocol.Input{Parts: []protocol.InputPart{protocol.TextPart(text)}}, Dispatch: protocol.Dispatch{Kind: "start"}}
}

// answered submits and waits for the end of the run.
func answered(t *testing.T, c *client.Client, submit protocol.Submit) protocol.Run {
	t.Helper()
	replica, err := watchFromHere(t.Context(), c, submit.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close(t.Context())
	r := must(t, c, protocol.SessionSubmit, submit)
	f := newFollower(r.RequestID, r.RunID, quietWatcher{})
	if err := f.follow(t.Context(), replica); err != nil {
		t.Fatal(err)
	}
	return *f.ended
}

func hasCode(err error, code protocol.Code) bool {
	return errors.Is(err, &protocol.Error{Reason: code})
}

func TestRacingCommandsStartOneBackend(t *testing.T) {
	program := backend.Build(t)
	const rounds, commands = 4, 5
	for range rounds {
		home := filepath.Join(t.TempDir(), "home")
		file := filepath.Join(home, "run", "connection.json")
		t.Cleanup(func() {
			if c, err := backend.ReadConnection(file); err == nil && t.Failed() {
				_ = syscall.Kill(c.PID, syscall.SIGKILL) // it may have ended just now
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
		var all sync.WaitGroup
		for range commands {
			all.Go(func() {
				if out, err := backend.Command(ctx, program, home, nil, "model", "list").CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		all.Wait()
		log, err := os.ReadFile(filepath.Join(home, "state", "log", "backend.log"))
		if n := bytes.Count(log, []byte(`"msg":"serving"`)); err != nil || n != 1 {
			t.Errorf("%d backends served, %v\n%s", n, err, log)
		}
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700, filepath.Join(home, "state"): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
			}
		}
		if out, err := backend.Command(ctx, program, home, nil, "stop", "--now").CombinedOutput(); err != nil {
			t.Errorf("stop: %v: %s", err, out)
		}
		cancel()
	}
}

func TestSecondBackendNamesTheFirst(t *testing.T) {
	p := backend.Start(t, backend.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	other := filepath.Join(p.Home, "other", "connection.json")
	out, err := p.Command(ctx, "serve", "--connection-file", other).CombinedOutput()
	var e *exec.ExitError
	if !errors.As(err, &e) || e.ExitCode() != exitAlreadyServing || !strings.Contains(string(out), fmt.Sprintf("(process %d)", p.PID)) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the second backend wrote its connection file: %v", err)
	}
	must(t, p.Client(t), protocol.SpaceList, protocol.Empty{})
}

// TestReady prints what a start takes. The times are measured, not asserted: they say as much about the machine.
func TestReady(t *testing.T) {
	p := backend.Start(t, backend.Options{})
	c := p.Client(t)
	for range 10 {
		openSpace(t, c, notes(t))
	}
	var ready []time.Duration
	var memory []int64
	for range 20 {
		p.Restart(t)
		ready, memory = append(ready, p.ReadyIn), append(memory, p.RSS()>>10)
	}
	slices.Sort(ready)
	slices.Sort(memory)
	t.Logf("20 starts: ready in %v (minimum), %v (median), %v (maximum); resident %d to %d KiB", ready[0], ready[10], ready[19], memory[0], memory[19])
}

func TestTerminatedInARun(t *testing.T) {
	model := modelserver.New(t,
		modelserver.Turn{Chunks: []string{"It begins."}, ToolCalls: []modelserver.ToolCall{{ID: "c1", Name: "read", Args: `{"path":"cell.md"}`}}},
		modelserver.Turn{Chunks: []string{"And"}, Hold: "gate"})
	p := backend.Start(t, backend.Options{})
	dir := notes(t)
	c := p.Client(t)
	key := must(t, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: openSpace(t, c, dir)}).Key()
	submit := question(key, "Tell me everything.", lend(t, c, model))
	must(t, c, protocol.SessionSubmit, submit)
	<-model.Started("gate")
	if code, err := p.Stop(); err != nil || code != 0 {
		t.Fatalf("ended with %d, %v", code, err)
	}
	if _, err := os.Stat(p.ConnectionFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the connection file is left: %v", err)
	}
	p.Restart(t)
	c = p.Client(t)
	openSpace(t, c, dir)
	r := must(t, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: key.SpaceID, RequestID: submit.RequestID}).Request
	if r == nil || r.Status != protocol.RequestCancelled && r.Status != protocol.RequestInterrupted || r.Delivery.Status != protocol.DeliveryEntered {
		t.Errorf("request after SIGTERM: %+v", r)
	}
	all, err := history(t.Context(), c, key)
	raw, encodeErr := json.Marshal(all)
	if err != nil || encodeErr != nil {
		t.Fatal(err, encodeErr)
	}
	for _, part := range []string{"Tell me everything.", "It begins.", "smallest unit of life"} {
		if n := strings.Count(string(raw), part); n != 1 {
			t.Errorf("%q stands %d times in the history", part, n)
		}
	}
}

func TestLentConnectionEndsWithItsBackend(t *testing.T) {
	model := modelserver.New(t)
	p := backend.Start(t, backend.Options{})
	dir := notes(t)
	c := p.Client(t)
	key := must(t, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: openSpace(t, c, dir)}).Key()
	selection := lend(t, c, model)
	first := question(key, "hello", selection)
	if run := answered(t, c, first); run.Status != protocol.RunCompleted {
		t.Fatalf("run %+v", run)
	}
	p.Restart(t)
	c = p.Client(t)
	openSpace(t, c, dir)
	if _, err := client.Call(t.Context(), c, protocol.SessionSubmit, question(key, "again", selection)); !hasCode(err, protocol.CodeAuthRequired) {
		t.Errorf("a lent connection of an earlier backend: %v", err)
	}
	if r := must(t, c, protocol.SessionSubmit, first); r.Status != protocol.RequestCompleted || len(model.Requests()) != 1 {
		t.Errorf("repeat of a request whose connection is gone: %+v, %d model requests", r, len(model.Requests()))
	}
	unknown := &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: "nobody", ID: "gpt-x"}}
	if _, err := client.Call(t.Context(), c, protocol.SessionSubmit, question(key, "again", unknown)); !hasCode(err, protocol.CodeConnectionNotFound) {
		t.Errorf("a connection that never was: %v", err)
	}
}

func TestSecretsStayInMemory(t *testing.T) {
	model := modelserver.New(t, modelserver.Text("fine"),
		modelserver.Turn{Status: 401, Error: "wrong key " + canary[:10]}, modelserver.Turn{Status: 400, ErrorBody: "<html>no JSON"})
	p := backend.Start(t, backend.Options{Env: []string{"REPA_LOG_LEVEL=debug", "OPENAI_API_KEY=" + canary, "OPENAI_BASE_URL=" + model.OpenAIURL()}})
	dir := notes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*scriptDeadline)
	defer cancel()
	outputs := map[string]string{}
	for _, args := range [][]string{
		{"-y", "run", "--space", dir, "--model", "openai/gpt-x", "hello"},
		{"-y", "run", "--space", dir, "--model", "openai/gpt-x", "--output", "json", "hello"},
		{"-y", "run", "--space", dir, "--model", "openai/gpt-x", "--output", "stream-json", "hello"},
		{"session", "list", "--space", dir}, {"session", "show", "--space", dir, "--output", "json"}, {"model", "list"},
		{"model", "list", "--output", "json"}, {"call", "connection.list"}, {"call", "state.get", `{"scope":{}}`}, {"status"},
		{"status", "--output", "json"}, {"doctor", "--space", dir, "--output", "json"}, {"doctor", "--space", dir, "--online"},
	} {
		out, err := p.Command(ctx, args...).CombinedOutput()
		var e *exec.ExitError
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v: %v", args, err)
		}
		outputs[strings.Join(args, " ")] = string(out)
	}
	if n := len(model.Requests()); n != 3 || model.Requests()[0].Header.Get("Authorization") != "Bearer "+canary {
		t.Fatalf("the model got %d requests", n)
	}
	for command, out := range outputs {
		if strings.Contains(out, canary) || strings.Contains(out, p.Token) {
			t.Errorf("%s prints a secret:\n%s", command, out)
		}
	}
	for _, folder := range []string{dir, p.Home} {
		found, files, err := filesWith(folder, canary, p.Token)
		if err != nil || len(found) > 0 || files < 2 {
			t.Errorf("secrets in %v of %d files, %v", found, files, err)
		}
	}
}
