//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/repa-app/repa/testkit/backend"
	"github.com/repa-app/repa/testkit/modelserver"
)

// scriptDeadline bounds one command that a script waits for beside testscript.
const scriptDeadline = 30 * time.Second

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "jsoncheck": jsonCheck, "sameresult": sameResult, "field": field,
			"model": model, "asked": asked, "interrupt": interrupt, "damage": damage, "secrets": secrets, "glob": glob,
		},
	})
}

// setUpScript gives a script a home of its own. A backend that a failed script leaves is killed.
func setUpScript(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	e.Setenv("REPA_HOME", home)
	e.Setenv("LANG", "C.UTF-8")
	e.Setenv("TZ", "UTC")
	m := &scripted{}
	m.Server = modelserver.NewFunc(e.T().(testing.TB), m.next)
	e.Values[scriptedKey{}] = m
	e.Defer(func() { // only a script that failed leaves one: the others end with `repa stop`
		c, err := backend.ReadConnection(filepath.Join(home, "run", "connection.json"))
		if err == nil && syscall.Kill(c.PID, 0) == nil {
			_ = syscall.Kill(c.PID, syscall.SIGKILL) // it may have ended just now
		}
	})
	return nil
}

// code runs a command and holds its exit code against the first argument.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [argument...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// scripted is the model server of a script.
type scripted struct {
	*modelserver.Server
	mu    sync.Mutex
	turns []modelserver.Turn
}

type scriptedKey struct{}

func scriptedOf(ts *testscript.TestScript) *scripted { return ts.Value(scriptedKey{}).(*scripted) }

func (s *scripted) next(*modelserver.RecordedRequest) modelserver.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		return modelserver.Text("ok")
	}
	turn := s.turns[0]
	s.turns = s.turns[1:]
	return turn
}

// canary is the key of every scripted connection; it must not show up anywhere.
const canary = "sk-canary-5f1c2e7a90b34d68"

// model sets the next answers of the script's model server, a JSON array of modelserver.Turn, and gives the environment its addresses.
func model(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model TURNS.json")
	}
	var turns []modelserver.Turn
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	d.DisallowUnknownFields()
	ts.Check(d.Decode(&turns))
	s := scriptedOf(ts)
	s.mu.Lock()
	s.turns = turns
	s.mu.Unlock()
	for _, e := range []struct{ key, endpoint, url string }{
		{"OPENAI_API_KEY", "OPENAI_BASE_URL", s.OpenAIURL()}, {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", s.AnthropicURL()},
		{"GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", s.GeminiURL()},
	} {
		ts.Setenv(e.key, canary)
		ts.Setenv(e.endpoint, e.url)
	}
}

// asked holds the number of requests that the model server has got against the first argument, and stores the last one's body in a file.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: asked N FILE")
	}
	all := scriptedOf(ts).Requests()
	if strconv.Itoa(len(all)) != args[0] {
		ts.Fatalf("the model was asked %d times, want %s", len(all), args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), all[len(all)-1].Body, 0o600))
}

// interrupt starts a command, sends it SIGINT when the model server stands still at the hold, and wants the exit code 130.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt HOLD command [argument...]")
	}
	ctx, cancel := context.WithTimeout(context.Background(), scriptDeadline)
	defer cancel()
	program, err := exec.LookPath(args[1]) // testscript.Main has put the program into the PATH of this process
	ts.Check(err)
	cmd := exec.CommandContext(ctx, program, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "REPA_HOME", "LANG", "OPENAI_API_KEY", "OPENAI_BASE_URL"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ts.Check(cmd.Start())
	select {
	case <-scriptedOf(ts).Started(args[0]):
		ts.Check(cmd.Process.Signal(os.Interrupt))
	case <-ctx.Done():
	}
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), out.String())
	fmt.Fprint(ts.Stderr(), errs.String())
	var e *exec.ExitError
	if !errors.As(err, &e) || e.ExitCode() != exitCancelled {
		ts.Fatalf("ended with %v, want exit code %d\n%s%s", err, exitCancelled, out.String(), errs.String())
	}
}

// theOne is the one file that matches a pattern.
func theOne(ts *testscript.TestScript, pattern string) string {
	found, err := filepath.Glob(ts.MkAbs(pattern))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files match %s", len(found), pattern)
	}
	return found[0]
}

// glob stores the name of the one file that matches.
func glob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: glob PATTERN NAME")
	}
	ts.Setenv(args[1], theOne(ts, args[0]))
}

// damage overwrites one byte of the one file that matches, stores its name as $DAMAGED and a copy in damaged.copy.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage PATTERN OFFSET")
	}
	offset, err := strconv.Atoi(args[1])
	ts.Check(err)
	file := theOne(ts, args[0])
	data, err := os.ReadFile(file)
	ts.Check(err)
	data[offset] ^= 0xFF
	ts.Check(os.WriteFile(file, data, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("damaged.copy"), data, 0o600))
	ts.Setenv("DAMAGED", file)
}

// secrets looks through every file below the given folders for the key of the scripted connections and for the token of the backend that runs.
func secrets(ts *testscript.TestScript, neg bool, args []string) {
	c, err := backend.ReadConnection(filepath.Join(ts.Getenv("REPA_HOME"), "run", "connection.json"))
	ts.Check(err)
	files := 0
	for _, dir := range args {
		found, n, err := filesWith(ts.MkAbs(dir), canary, c.Token)
		ts.Check(err)
		if files += n; len(found) > 0 {
			ts.Fatalf("a secret stands in %v", found)
		}
	}
	if files == 0 {
		ts.Fatalf("there was nothing to look through")
	}
}

// filesWith lists the files below dir that contain one of the secrets, and counts all files. The connection file may hold its token.
func filesWith(dir string, secrets ...string) (found []string, files int, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "connection.json" {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				found = append(found, path)
			}
		}
		return err
	})
	return found, files, err
}
