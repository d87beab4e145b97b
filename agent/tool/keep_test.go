package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

// shelf keeps outputs in memory.
type shelf struct {
	texts []string
	err   error
}

func (s *shelf) Keep(_ context.Context, mediaType, text string) (tool.Kept, error) {
	if s.err != nil {
		return tool.Kept{}, s.err
	}
	s.texts = append(s.texts, text)
	return tool.Kept{ID: fmt.Sprintf("kept-%d", len(s.texts)), MediaType: mediaType, Size: int64(len(text))}, nil
}

// kept is what the details say about the whole output.
func kept(t testing.TB, r tool.Result) (truncated bool, k *tool.Kept) {
	t.Helper()
	var d struct {
		Truncated  bool       `json:"truncated"`
		FullOutput *tool.Kept `json:"fullOutput"`
	}
	if len(r.Details) > 0 {
		if err := json.Unmarshal(r.Details, &d); err != nil {
			t.Fatal(err)
		}
	}
	return d.Truncated, d.FullOutput
}

func TestReadKeepsTheWholeDocument(t *testing.T) {
	s, k := newSpace(), &shelf{}
	s.files["many.md"] = strings.Repeat("x\r\n", 4500)
	s.files["huge.md"] = strings.Repeat("z", 80<<10)
	s.files["few.md"] = "one\ntwo\n"
	tools := tool.NewSet(tool.Services{Reader: s, Keeper: k})
	for i, c := range []struct{ args, says, file string }{
		{`{"path":"many.md"}`, "\n 2000\tx\n[Lines 1-2000 of 4500 shown. Continue with offset 2001. The whole is kept with the session: read repa:resource/kept-1.]\n{\"path\"", "many.md"},
		{`{"path":"huge.md"}`, "Search for words of it instead. The whole is kept with the session: read repa:resource/kept-2.]\n{\"path\"", "huge.md"},
		{`{"path":"few.md","limit":1}`, "    1\tone\n[Lines 1-1 of 2 shown. Continue with offset 2. The whole is kept with the session: read repa:resource/kept-3.]", "few.md"},
	} {
		r := call(t, tools, "read", c.args)
		truncated, named := kept(t, r)
		if want := (&tool.Kept{ID: fmt.Sprintf("kept-%d", i+1), MediaType: "text/plain", Size: int64(len(s.files[c.file]))}); !truncated || !cmp.Equal(named, want) {
			t.Errorf("%s: details %s, want %+v", c.args, r.Details, want)
		}
		if !strings.Contains(said(r), c.says) || len(k.texts) != i+1 || k.texts[i] != s.files[c.file] {
			t.Errorf("%s: %q, %d texts kept", c.args, said(r)[max(0, len(said(r))-300):], len(k.texts))
		}
	}
	for _, args := range []string{`{"path":"few.md"}`, `{"path":"many.md","offset":2501}`} {
		if truncated, named := kept(t, call(t, tools, "read", args)); truncated || named != nil || len(k.texts) != 3 {
			t.Errorf("%s cuts nothing and keeps %+v", args, named)
		}
	}
}

func TestSearchKeepsAllMatches(t *testing.T) {
	f, k := &finder{}, &shelf{}
	long := strings.Repeat("素", 600)
	for i := range 30 {
		f.matches = append(f.matches, tool.Match{Path: "a.md", Line: i + 1, Text: long})
	}
	tools := tool.NewSet(tool.Services{Searcher: f, Keeper: k})
	r := call(t, tools, "search", `{"query":"q"}`)
	truncated, named := kept(t, r)
	if !truncated || named == nil || f.limit <= 100 || !strings.Contains(string(r.Details), `"matches":20,`) {
		t.Fatalf("details %s, limit %d", r.Details, f.limit)
	}
	if !strings.HasSuffix(said(r), "\n[The first 20 matches are shown; there are more. Search for more precise words. The whole is kept with the session: read repa:resource/kept-1.]") {
		t.Errorf("%q", said(r)[len(said(r))-200:])
	}
	var want strings.Builder
	for i := range 30 {
		fmt.Fprintf(&want, "a.md:%d: %s\n", i+1, long)
	}
	if k.texts[0] != want.String() {
		t.Errorf("%d bytes were kept, want %d", len(k.texts[0]), want.Len())
	}
	// Lines that together are more than one result shows are cut to it.
	r = call(t, tools, "search", `{"query":"q","limit":100}`)
	if truncated, _ := kept(t, r); truncated {
		t.Errorf("30 of 30: %s", r.Details)
	}
	for i := range 70 {
		f.matches = append(f.matches, tool.Match{Path: "b.md", Line: i + 1, Text: long})
	}
	r = call(t, tools, "search", `{"query":"q","limit":100}`)
	if truncated, named := kept(t, r); !truncated || named == nil || len(said(r)) > 51<<10 || !strings.Contains(said(r), "[The first 33 matches are shown") {
		t.Errorf("%d bytes, %s", len(said(r)), r.Details)
	}
	// What is kept is bounded, too.
	f.matches = nil
	for i := range 40 {
		f.matches = append(f.matches, tool.Match{Path: "c.md", Line: i + 1, Text: strings.Repeat("c", 1<<20)})
	}
	_, named = kept(t, call(t, tools, "search", `{"query":"q"}`))
	if named == nil || named.Size > 16<<20 || named.Size < 15<<20 {
		t.Errorf("kept %+v", named)
	}
}

// A part is shown although the whole could not be kept; only a run that was stopped gets none.
func TestKeepFails(t *testing.T) {
	s, f, k := newSpace(), &finder{truncated: true, matches: []tool.Match{{Path: "a", Line: 1, Text: "x"}}}, &shelf{err: errors.New("the disk is full")}
	s.files["a.md"] = strings.Repeat("x\n", 3000)
	tools := tool.NewSet(tool.Services{Reader: s, Searcher: f, Keeper: k})
	for name, args := range map[string]string{"read": `{"path":"a.md"}`, "search": `{"query":"x"}`} {
		r := call(t, tools, name, args)
		if _, named := kept(t, r); r.IsError || named != nil || !strings.Contains(said(r), " The whole could not be kept: the disk is full.]") {
			t.Errorf("%s: %s, %q", name, r.Details, said(r)[max(0, len(said(r))-200):])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.err = fmt.Errorf("keep: %w", context.Canceled)
	foreign := tool.Bound(&foreign{result: tool.Text(strings.Repeat("x\n", 3000))}, k)
	for _, c := range []struct {
		tool tool.Tool
		args string
	}{{tools.Tools()[0], `{"path":"a.md"}`}, {tools.Tools()[1], `{"query":"x"}`}, {foreign, `{}`}} {
		if _, err := c.tool.Execute(ctx, "c", json.RawMessage(c.args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.tool.Spec().Name, err)
		}
	}
}

// foreign is a tool that knows no limits.
type foreign struct {
	result tool.Result
	err    error
}

func (*foreign) Spec() llm.ToolSpec { return llm.ToolSpec{Name: "foreign"} }
func (*foreign) Sequential() bool   { return true }
func (f *foreign) Execute(context.Context, string, json.RawMessage) (tool.Result, error) {
	return f.result, f.err
}

func TestBound(t *testing.T) {
	image := llm.Block{Type: llm.BlockImage, Data: "aGk="}
	k := &shelf{}
	run := func(r tool.Result) tool.Result {
		t.Helper()
		b := tool.Bound(&foreign{result: r}, k)
		if b.Spec().Name != "foreign" || !b.Sequential() || string(b.(tool.Preparer).Prepare(json.RawMessage(`[1]`))) != `[1]` {
			t.Error("the bound tool is another")
		}
		out, err := b.Execute(t.Context(), "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	short := tool.Text(strings.Repeat("x\n", 2000))
	short.Details = json.RawMessage(`{"a":1}`)
	if got := run(short); said(got) != said(short) || string(got.Details) != `{"a":1}` || len(k.texts) != 0 {
		t.Errorf("2000 lines were changed: %s", got.Details)
	}
	long := tool.Text(strings.Repeat("x\n", 1500))
	long.Content = append(long.Content, image, llm.Block{Type: llm.BlockText, Text: strings.Repeat("y\n", 1500)})
	long.Details, long.IsError = json.RawMessage(`{"exitCode":3}`), true
	got := run(long)
	whole := strings.Repeat("x\n", 1500) + "\n" + strings.Repeat("y\n", 1500)
	if !got.IsError || len(got.Content) != 2 || got.Content[1].Type != llm.BlockImage || k.texts[0] != whole {
		t.Errorf("%d blocks, error %v, %d bytes kept of %d", len(got.Content), got.IsError, len(k.texts[0]), len(whole))
	}
	if want := `{"exitCode":3,"fullOutput":{"id":"kept-1","mediaType":"text/plain","size":6001},"truncated":true}`; string(got.Details) != want {
		t.Errorf("details %s", got.Details)
	}
	if !strings.HasSuffix(said(got), "\ny\n[Lines 1-2000 of 3001 shown. The whole is kept with the session: read repa:resource/kept-1.]") {
		t.Errorf("%q", said(got)[len(said(got))-100:])
	}
	if got := run(tool.Text("a" + strings.Repeat("素", 30<<10))); !strings.HasSuffix(said(got), "素\n[The first 49 KiB shown of a line of 91 KiB. The whole is kept with the session: read repa:resource/kept-2.]") || !utf8.ValidString(said(got)) {
		t.Errorf("%q", said(got)[len(said(got))-100:])
	}
	broken := &foreign{result: tool.Text(strings.Repeat("x\n", 3000)), err: errors.New("it failed")}
	if _, err := tool.Bound(broken, nil).Execute(t.Context(), "c", nil); err != broken.err {
		t.Errorf("%v", err)
	}
	broken.err, broken.result.Details = nil, json.RawMessage(`[]`)
	if _, err := tool.Bound(broken, nil).Execute(t.Context(), "c", nil); err == nil {
		t.Error("details that are no object were accepted")
	}
	broken.result.Details = nil
	r, err := tool.Bound(broken, nil).Execute(t.Context(), "c", nil)
	if err != nil || string(r.Details) != `{"truncated":true}` || !strings.HasSuffix(said(r), "[Lines 1-2000 of 3000 shown.]") {
		t.Errorf("without a keeper: %v, %s", err, r.Details)
	}
}

// Whatever a tool says, what is shown keeps to the limits, is a beginning of it in whole lines, and what is cut is kept whole.
func TestBoundAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "x", "素数", strings.Repeat("a", 100), strings.Repeat("é", 30<<10), strings.Repeat("b", 50<<10)})
		text := strings.Join(rapid.SliceOfN(line, 0, 5).Draw(t, "lines"), "\n") + strings.Repeat(rapid.SampledFrom([]string{"", "x", "素数素数素数素数素数"}).Draw(t, "line")+"\n", rapid.SampledFrom([]int{0, 1, 1999, 2000, 2001}).Draw(t, "n"))
		k := &shelf{}
		r, err := tool.Bound(&foreign{result: tool.Text(text)}, k).Execute(context.Background(), "c", nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(k.texts) == 0 {
			if said(r) != text || len(text) > 50<<10+1 || strings.Count(strings.TrimSuffix(text, "\n"), "\n") >= 2000 {
				t.Fatalf("%d bytes were not cut", len(text))
			}
			return
		}
		i := strings.LastIndexByte(said(r), '\n')
		shown := said(r)[:i]
		if k.texts[0] != text || len(shown) > 50<<10 || strings.Count(shown, "\n") >= 2000 || !strings.HasPrefix(text, shown) || !utf8.ValidString(shown) {
			t.Fatalf("%d of %d bytes shown", len(shown), len(text))
		}
		if rest := text[len(shown):]; rest[0] != '\n' && !strings.HasPrefix(said(r)[i+1:], "[The first ") {
			t.Fatal("a line was cut that is not the first")
		}
	})
}
