package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/tool"
)

func TestRead(t *testing.T) {
	s := newSpace()
	s.files["a.md"] = "one\ntwo\r\n三\n"
	s.files["no-end.md"] = "one\n\nthree"
	s.files["empty.md"] = ""
	s.files["many.md"] = strings.Repeat("x\n", 4500)
	s.files["wide.md"] = strings.Repeat(strings.Repeat("y", 1000)+"\n", 100)
	s.files["huge.md"] = strings.Repeat("z", 80<<10) + "\nshort\n"
	s.files["tail.md"] = "short\n" + strings.Repeat("z", 80<<10)
	tools := set(s, &finder{})
	line := func(path string) string { return fmt.Sprintf("\n{\"path\":%q,\"revision\":%q}", path, path+"#0") }
	for _, c := range []struct{ args, want string }{
		{`{"path":"a.md"}`, "    1\tone\n    2\ttwo\n    3\t三" + line("a.md")},
		{`{"path":"@./a.md"}`, "    1\tone\n    2\ttwo\n    3\t三" + line("a.md")},
		{`{"path":"a.md","offset":"2","limit":1}`, "    2\ttwo\n[Lines 2-2 of 3 shown. Continue with offset 3.]" + line("a.md")},
		{`{"path":"a.md","offset":3,"limit":9}`, "    3\t三" + line("a.md")},
		{`{"path":"no-end.md"}`, "    1\tone\n    2\t\n    3\tthree" + line("no-end.md")},
		{`{"path":"empty.md"}`, "(the file is empty)" + line("empty.md")},
		{`{"path":"huge.md"}`, "[Line 1 of 2 is 80 KiB long, more than one read shows. Search for words of it instead, or continue with offset 2.]" + line("huge.md")},
		{`{"path":"huge.md","offset":2}`, "    2\tshort" + line("huge.md")},
		{`{"path":"tail.md","offset":2}`, "[Line 2 of 2 is 80 KiB long, more than one read shows. Search for words of it instead.]" + line("tail.md")},
	} {
		r := call(t, tools, "read", c.args)
		if diff := cmp.Diff(c.want, said(r)); diff != "" || r.IsError {
			t.Errorf("%s: %v %s", c.args, r.IsError, diff)
		}
	}
	many := call(t, tools, "read", `{"path":"many.md"}`)
	if !strings.Contains(said(many), "[Lines 1-2000 of 4500 shown. Continue with offset 2001.]") {
		t.Error(said(many)[len(said(many))-200:])
	}
	if want := `{"from":1,"lines":4500,"path":"many.md","revision":"many.md#0","to":2000,"truncated":true}`; string(many.Details) != want {
		t.Errorf("details %s", many.Details)
	}
	wide := said(call(t, tools, "read", `{"path":"wide.md"}`))
	if len(wide) > 52<<10 || !strings.Contains(wide, "Continue with offset 51.") {
		t.Errorf("%d bytes: %s", len(wide), wide[len(wide)-200:])
	}
	for _, c := range []struct{ args, code, words string }{
		{`{"path":"a.md","offset":4}`, "invalid_input", "beyond the end of a.md, which has 3 lines"},
		{`{"path":"gone.md"}`, "not_found", "gone.md does not exist"},
	} {
		fails(t, call(t, tools, "read", c.args), c.code, c.words)
	}
}

// Reading page by page shows each line once, whatever the file.
func TestReadContinues(t *testing.T) {
	s := newSpace()
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprint(i, strings.Repeat("é", i%90)))
	}
	s.files["f"] = strings.Join(lines, "\n")
	tools, next, got := set(s, &finder{}), 1, []string(nil)
	for next > 0 {
		text := said(call(t, tools, "read", fmt.Sprintf(`{"path":"f","offset":%d}`, next)))
		next = 0
		for l := range strings.SplitSeq(text, "\n") {
			if number, shown, ok := strings.Cut(l, "\t"); ok {
				got = append(got, shown)
				if strings.TrimSpace(number) != fmt.Sprint(len(got)) {
					t.Fatalf("line %q is number %d", l, len(got))
				}
			}
			if _, rest, ok := strings.Cut(l, "Continue with offset "); ok {
				fmt.Sscanf(rest, "%d", &next)
			}
		}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Error(diff)
	}
}

func TestSearch(t *testing.T) {
	f := &finder{matches: []tool.Match{{Path: "a.md", Line: 3, Text: "  a prime\n"}, {Path: "b/素.md", Line: 1, Text: strings.Repeat("素", 600)}}}
	tools := set(newSpace(), f)
	r := call(t, tools, "search", `{"query":"prime"}`)
	if want := "a.md:3: a prime\nb/素.md:1: " + strings.Repeat("素", 500) + "…"; said(r) != want || f.limit != 20 {
		t.Errorf("%q, limit %d", said(r), f.limit)
	}
	f.truncated = true
	if r := call(t, tools, "search", `{"query":"prime","limit":2}`); f.limit != 2 || !strings.Contains(said(r), "The first 2 matches are shown") {
		t.Errorf("%q", said(r))
	}
	if r := call(t, tools, "search", `{"query":"prime","limit":1}`); strings.Count(said(r), "\n") != 1 || !strings.Contains(said(r), "first 1") {
		t.Errorf("a searcher that gives too many: %q", said(r))
	}
	f.matches = nil
	if r := call(t, tools, "search", `{"query":"q\"x"}`); r.IsError || said(r) != `No matches for "q\"x" in the space.` {
		t.Errorf("%q", said(r))
	}
	f.err = coded{"invalid_input", "the query is empty"}
	fails(t, call(t, tools, "search", `{"query":" "}`), "invalid_input", "the query is empty")
}

func TestWrite(t *testing.T) {
	s := newSpace()
	s.files["old.md"] = "old"
	tools := set(s, &finder{})
	fails(t, call(t, tools, "write", `{"path":"old.md","content":"x"}`), "read_required", "old.md exists and was not read in this session. Read it first")
	if s.files["old.md"] != "old" {
		t.Fatal("overwritten without being read")
	}
	created := call(t, tools, "write", `{"path":"new.md","content":"first"}`)
	if said(created) != "Created new.md.\noperationId: op-1" {
		t.Errorf("%q", said(created))
	}
	if want := `{"operationId":"op-1","changes":[{"path":"new.md","before":null,"after":"new.md#1"}]}`; string(created.Details) != want {
		t.Errorf("details %s", created.Details)
	}
	again := call(t, tools, "write", `{"path":"./new.md","content":"second"}`)
	if want := "Replaced new.md.\n-old\n+new\noperationId: op-2"; said(again) != want || s.files["new.md"] != "second" {
		t.Errorf("what the session wrote counts as seen: %q", said(again))
	}
	call(t, tools, "read", `{"path":"old.md"}`)
	if r := call(t, tools, "write", `{"path":"old.md","content":"x"}`); r.IsError {
		t.Errorf("after a read: %q", said(r))
	}
	s.outside("old.md", "the learner's")
	fails(t, call(t, tools, "write", `{"path":"old.md","content":"y"}`), "revision_conflict", "changed by someone else")
	if s.files["old.md"] != "the learner's" {
		t.Error("the learner's text is gone")
	}
	if other := set(s, &finder{}); !call(t, other, "write", `{"path":"new.md","content":"z"}`).IsError {
		t.Error("another session needs no read")
	}
}

func TestEdit(t *testing.T) {
	s := newSpace()
	s.files["a.md"] = "one two three"
	tools := set(s, &finder{})
	for _, c := range []struct{ args, text, words string }{
		{`{"path":"a.md","edits":[{"oldText":"one","newText":"1"},{"oldText":"two","newText":"2"}]}`, "1 2 three", "Edited a.md in 2 places.\n-old\n+new\noperationId: op-1"},
		{`{"path":"a.md","oldText":"three","newText":"3"}`, "1 2 3", "Edited a.md in 1 place."},
		{`{"path":"a.md","edits":"[{\"oldText\":\"3\",\"newText\":\"4\"}]"}`, "1 2 4", "Edited"},
		{`{"path":"a.md","edits":{"oldText":"4","newText":"5"}}`, "1 2 5", "Edited"},
		{`{"path":"a.md","edits":[{"oldText":"5","newText":6}]}`, "1 2 6", "Edited"},
	} {
		r := call(t, tools, "edit", c.args)
		if r.IsError || s.files["a.md"] != c.text || !strings.Contains(said(r), c.words) {
			t.Errorf("%s: %q, file %q", c.args, said(r), s.files["a.md"])
		}
	}
	fails(t, call(t, tools, "edit", `{"path":"a.md","edits":[{"oldText":"absent","newText":""}]}`), "patch_mismatch", "exactly once")
	// An edit does not show the rest of the file, so a whole write still needs a read; after one, edits keep it seen.
	fails(t, call(t, tools, "write", `{"path":"a.md","content":"x"}`), "read_required", "Read it first")
	call(t, tools, "read", `{"path":"a.md"}`)
	call(t, tools, "edit", `{"path":"a.md","edits":[{"oldText":"6","newText":"7"}]}`)
	if r := call(t, tools, "write", `{"path":"a.md","content":"x"}`); r.IsError {
		t.Errorf("read, edit, write: %q", said(r))
	}
	s.outside("a.md", "by the learner")
	call(t, tools, "edit", `{"path":"a.md","edits":[{"oldText":"by","newText":"from"}]}`)
	fails(t, call(t, tools, "write", `{"path":"a.md","content":"x"}`), "read_required", "Read it first")
}

func TestPrepareLeavesTheRest(t *testing.T) {
	for _, tl := range set(newSpace(), &finder{}).Tools() {
		p, ok := tl.(tool.Preparer)
		if !ok {
			continue
		}
		for _, args := range []string{`null`, `[]`, `{`, `{"path":"a","edits":[]}`, `{"path":"a","edits":"no json"}`, `{"path":"a","oldText":"x"}`} {
			if got := p.Prepare(json.RawMessage(args)); string(got) != args {
				t.Errorf("%s became %s", args, got)
			}
		}
	}
}

func TestSet(t *testing.T) {
	names := func(s *tool.Set) (out []string) {
		for _, tl := range s.Tools() {
			spec := tl.Spec()
			if spec.Description == "" || !json.Valid(spec.Parameters) {
				t.Errorf("spec of %s", spec.Name)
			}
			if want := !slices.Contains([]string{"read", "search", "content_info"}, spec.Name); tl.Sequential() != want {
				t.Errorf("%s: sequential %v", spec.Name, tl.Sequential())
			}
			out = append(out, spec.Name)
		}
		return out
	}
	if got := names(set(newSpace(), &finder{})); !cmp.Equal(got, []string{"read", "search", "content_info", "write", "edit", "apply_patch", "content_operation"}) {
		t.Errorf("tools %v", got)
	}
	if got := names(tool.NewSet(tool.Services{Reader: newSpace()})); !cmp.Equal(got, []string{"read"}) {
		t.Errorf("tools %v", got)
	}
	read := set(newSpace(), &finder{}).Tools()[0].Spec()
	if !strings.Contains(read.Description, "path:line") {
		t.Error("the read tool does not say how to cite")
	}
}

// A service that ends because the run was stopped makes an error, not a result for the model; any other error is a result.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, f := newSpace(), &finder{}
	tools := set(s, f)
	args := map[string]string{"read": `{"path":"a"}`, "search": `{"query":"a"}`, "write": `{"path":"a","content":""}`, "edit": `{"path":"a","edits":[]}`,
		"content_info": `{"path":"a"}`, "apply_patch": `{"patch":""}`, "content_operation": `{"action":"undo","operationId":"o"}`}
	s.err, f.err = fmt.Errorf("read a: %w", context.Canceled), context.Canceled
	for _, tl := range tools.Tools() {
		if r, err := tl.Execute(ctx, "c", json.RawMessage(args[tl.Spec().Name])); err != nil || !r.IsError {
			t.Errorf("%s, not stopped: %v, %v", tl.Spec().Name, r, err)
		}
	}
	cancel()
	for _, tl := range tools.Tools() {
		if _, err := tl.Execute(ctx, "c", json.RawMessage(args[tl.Spec().Name])); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, stopped: %v", tl.Spec().Name, err)
		}
		if _, err := tl.Execute(ctx, "c", json.RawMessage(`[]`)); err == nil {
			t.Errorf("%s: executed arguments of another shape", tl.Spec().Name)
		}
	}
}

func TestSetIsConcurrent(t *testing.T) {
	s := newSpace()
	s.files["a.md"] = "text"
	tools := tool.NewSet(tool.Services{Reader: s})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if _, err := tools.Tools()[0].Execute(t.Context(), "c", json.RawMessage(`{"path":"a.md"}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func fails(t *testing.T, r tool.Result, code, words string) {
	t.Helper()
	if !r.IsError || !strings.Contains(said(r), words) || string(r.Details) != `{"code":`+quote(code)+`}` {
		t.Errorf("got %q with %s, want %q with code %s", said(r), r.Details, words, code)
	}
}

func TestObservationsFollowTheIdentity(t *testing.T) {
	s := newSpace()
	s.outside("a.md", "one")
	s.ids["a.md"], s.ids["repa:document/d1"] = "d1", "d1"
	set := set(s, nil)
	if r := call(t, set, "read", `{"path":"a.md"}`); !strings.HasSuffix(said(r), `{"id":"d1","path":"a.md","revision":"a.md#1"}`) {
		t.Errorf("read: %s", said(r))
	}
	s.files["repa:material/d1"], s.at["repa:material/d1"] = "one", 1
	r := call(t, set, "write", `{"path":"repa:material/d1","content":"x"}`)
	if code := quote(r.Details); !strings.Contains(string(r.Details), "revision_conflict") { // the base of a.md was found, and is another's here
		t.Errorf("write by reference after a read by path: %s %s", said(r), code)
	}
}

func TestPatch(t *testing.T) {
	s := newSpace()
	s.outside("gone.md", "old")
	set := set(s, nil)
	call(t, set, "read", `{"path":"gone.md"}`)
	r := call(t, set, "apply_patch", `{"patch":"+new.md\n-gone.md","bases":[{"path":"gone.md","base":null}],"registrations":[{"path":"new.md","role":"document","members":[{"path":"x.md"}]}]}`)
	if want := "Patched 2 files.\nlocated loosely\n-old\n+new\noperationId: op-1"; said(r) != want {
		t.Errorf("said %q", said(r))
	}
	want := tool.Patch{Text: "+new.md\n-gone.md", Bases: []tool.PatchBase{{Path: "gone.md"}},
		Registrations: []tool.Registration{{Path: "new.md", Role: "document", Members: []tool.Member{{Path: "x.md"}}}}}
	if !reflect.DeepEqual(s.patch, want) {
		t.Errorf("the editor got %+v", s.patch)
	}
	if r := call(t, set, "write", `{"path":"new.md","content":"again"}`); r.IsError {
		t.Errorf("what the patch made counts as seen: %s", said(r))
	}
	s.outside("gone.md", "back")
	if r := call(t, set, "write", `{"path":"gone.md","content":"x"}`); !strings.Contains(string(r.Details), "read_required") {
		t.Errorf("a file that was deleted and came back was not seen: %s", said(r))
	}
}

func TestOperationsAndInfo(t *testing.T) {
	s := newSpace()
	set := set(s, nil)
	if r := call(t, set, "content_info", `{"path":"a.md"}`); said(r) != `{"path":"a.md"}` || string(r.Details) != said(r) {
		t.Errorf("info %s %s", said(r), r.Details)
	}
	if r := call(t, set, "content_operation", `{"action":"get","operationId":"op-9"}`); said(r) != `{"operationId":"op-9","status":"committed"}` {
		t.Errorf("get %s", said(r))
	}
	if r := call(t, set, "content_operation", `{"action":"undo","operationId":"op-9"}`); said(r) != "Undid operation op-9.\n-old\n+new\noperationId: op-1" {
		t.Errorf("undo %s", said(r))
	}
	s.err = late{coded{"recovery_required", "half of it stays"}}
	r := call(t, set, "content_operation", `{"action":"undo","operationId":"op-9"}`)
	if said(r) != "half of it stays\noperationId: op-late" || !r.IsError {
		t.Errorf("an error of a save: %q", said(r))
	}
}

func TestReadShowsImages(t *testing.T) {
	s := newSpace()
	s.outside("a.png", "\x89PNG")
	set := set(s, nil)
	r := call(t, set, "read", `{"path":"a.png"}`)
	if len(r.Content) != 2 || r.Content[1].Type != "image" || r.Content[1].MimeType != "image/png" || r.Content[1].Data != "iVBORw==" {
		t.Errorf("%+v", r.Content)
	}
	if want := "Image a.png (image/png, 4 bytes).\n" + `{"path":"a.png","revision":"a.png#1"}`; said(r) != want {
		t.Errorf("said %q", said(r))
	}
}
