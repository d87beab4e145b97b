//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/backend"
)

// patched is one patch that was sent, and its answer.
type patched struct {
	params protocol.ContentPatchParams
	number int    // that it writes into every file
	answer []byte // nil: none came
}

// ledger is five files that always have one number, and what a front end knows of it.
type ledger struct {
	t       *testing.T
	p       *backend.Process
	random  *rand.Rand
	dir     string
	space   protocol.ID
	files   []string
	number  int // that the files have
	patches []*patched
}

// TestKillDuringPatches proves across SIGKILL that a patch of several files is done as a whole or not at all, that an answered one stays done, and
// that none waits for somebody to settle it.
func TestKillDuringPatches(t *testing.T) {
	rounds := 8
	if os.Getenv("REPA_TEST") == "long" {
		rounds = 1000
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("REPA_TEST_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("REPA_TEST_SEED=%d", seed)
	l := &ledger{t: t, p: backend.Start(t, backend.Options{}), random: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(),
		files: []string{"a.md", "deep/b.md", "deep/c.md", "deep/deeper/d.md", "e.md"}}
	l.writeFiles()
	statuses := map[string]int{}
	for round := range rounds {
		first := len(l.patches)
		l.killWhilePatching()
		l.p.Restart(t)
		c := l.p.Client(t)
		l.space = openSpace(t, c, l.dir)
		l.checkFiles()
		for _, sent := range l.patches[first:] {
			statuses[l.check(c, sent)]++
		}
		c.Drop()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	c := l.p.Client(t)
	for _, sent := range l.patches {
		l.check(c, sent)
	}
	t.Logf("%d kills, %d patches of %d files: %v", rounds, len(l.patches), len(l.files), statuses)
	if statuses["answered"] == 0 {
		t.Error("no patch was answered, which proves nothing")
	}
}

// writeFiles writes files that are long enough for a change of all to take a while.
func (l *ledger) writeFiles() {
	for _, name := range l.files {
		text := l.line(0) + strings.Repeat("a line that stays\n", 2000)
		file := filepath.Join(l.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *ledger) line(number int) string { return fmt.Sprintf("number %d\n", number) }

// killWhilePatching kills the backend at a random moment between its patches or in one.
func (l *ledger) killWhilePatching() {
	l.t.Helper()
	c := l.p.Client(l.t)
	l.space = openSpace(l.t, c, l.dir)
	ctx, cancel := context.WithCancel(l.t.Context())
	var writer sync.WaitGroup
	writer.Go(func() { l.patch(ctx, c) })
	time.Sleep(time.Duration(1+l.random.IntN(60_000)) * time.Microsecond) // the random moment; nothing waits for it
	l.p.Kill()
	cancel()
	c.Drop()
	writer.Wait()
}

// patch counts on until there is no answer.
func (l *ledger) patch(ctx context.Context, c *client.Client) {
	for number := l.number; ; number++ {
		var text strings.Builder
		text.WriteString("*** Begin Patch\n")
		for _, name := range l.files {
			fmt.Fprintf(&text, "*** Update File: %s\n@@\n-%s+%s", name, l.line(number), l.line(number+1))
		}
		text.WriteString("*** End Patch\n")
		sent := &patched{number: number + 1, params: protocol.ContentPatchParams{SpaceID: l.space, OperationID: protocol.ID(uuid.NewString()), Patch: text.String()}}
		l.patches = append(l.patches, sent)
		r, err := client.Call(ctx, c, protocol.ContentApplyPatch, sent.params)
		var refusal *protocol.Error
		switch {
		case errors.As(err, &refusal):
			l.t.Errorf("patch %d is refused: %v", sent.number, err)
			return
		case err != nil:
			return
		}
		sent.answer = l.encoded(r)
	}
}

func (l *ledger) encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		l.t.Error(err)
	}
	return data
}

// checkFiles wants all files to have one number, not before the last that was answered and not after the last that was sent, and no others to be there.
func (l *ledger) checkFiles() {
	l.t.Helper()
	least := l.number
	for _, sent := range l.patches {
		if sent.answer != nil {
			least = max(least, sent.number)
		}
	}
	for n, name := range l.files {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		first, rest, _ := strings.Cut(string(text), "\n")
		number, parseErr := strconv.Atoi(strings.TrimPrefix(first, "number "))
		if err = errors.Join(err, parseErr); err != nil || rest != strings.Repeat("a line that stays\n", 2000) {
			l.t.Errorf("%s: %v, begins with %q and has %d bytes", name, err, first, len(text))
		}
		if n == 0 {
			l.number = number
		}
		if number != l.number {
			l.t.Errorf("%s has number %d, %s has %d", name, number, l.files[0], l.number)
		}
	}
	if l.number < least || l.number > l.patches[len(l.patches)-1].number {
		l.t.Errorf("the files have number %d; %d was answered", l.number, least)
	}
	for _, folder := range []string{l.dir, filepath.Join(l.dir, ".repa", "tmp")} {
		if err := filepath.WalkDir(folder, l.expected); err != nil {
			l.t.Error(err)
		}
	}
}

// expected refuses files of the space that nobody made.
func (l *ledger) expected(path string, entry fs.DirEntry, err error) error {
	name, relErr := filepath.Rel(l.dir, path)
	switch {
	case err != nil || relErr != nil:
		return errors.Join(err, relErr)
	case name == ".repa":
		return fs.SkipDir
	case !entry.IsDir() && !slices.Contains(l.files, filepath.ToSlash(name)):
		l.t.Errorf("%s is left", name)
	}
	return nil
}

// check holds what the backend says of a patch against the files, and returns a word for what became of it.
func (l *ledger) check(c *client.Client, sent *patched) string {
	l.t.Helper()
	id := sent.params.OperationID
	r := must(l.t, c, protocol.OperationGet, protocol.OperationParams{SpaceID: l.space, OperationID: id})
	status := protocol.OperationStatus("unknown")
	if r.Operation != nil {
		status = r.Operation.Status
	}
	done := sent.number <= l.number
	switch {
	case sent.answer != nil && status != protocol.OperationCommitted:
		l.t.Errorf("patch %d was answered and is %s", sent.number, status)
	case sent.answer != nil:
		if again := l.encoded(must(l.t, c, protocol.ContentApplyPatch, sent.params)); !bytes.Equal(again, sent.answer) {
			l.t.Errorf("patch %d was answered %s and is repeated %s", sent.number, sent.answer, again)
		}
		return "answered"
	case status == protocol.OperationCommitted:
		if !done {
			l.t.Errorf("patch %d is committed, and the files have number %d", sent.number, l.number)
		}
	case status == protocol.OperationRolledBack:
		if _, err := client.Call(l.t.Context(), c, protocol.ContentApplyPatch, sent.params); !hasCode(err, protocol.CodeOperationFailed) {
			l.t.Errorf("patch %d was taken back and is repeated: %v", sent.number, err)
		}
	case status != "unknown" || r.Absent == nil || r.Absent.Status != "unknown":
		l.t.Errorf("patch %d is %s: %+v", sent.number, status, r.Operation)
	}
	return string(status)
}
