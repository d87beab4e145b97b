package patch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/space/patch"
	"github.com/repa-app/repa/space/text"
)

func TestParse(t *testing.T) {
	want := patch.Patch{Actions: []patch.Action{
		{Kind: patch.Add, Path: "a b.md", Text: "one\n\n two\n"},
		{Kind: patch.Delete, Path: "old.md"},
		{Kind: patch.Update, Path: "u.md", MoveTo: "v.md"},
		{Kind: patch.Update, Path: "w.md", Hunks: []patch.Hunk{
			{Lines: []patch.HunkLine{{' ', "a"}, {'-', "b"}, {'+', "B"}, {' ', ""}, {' ', "c"}}},
			{Anchors: []string{"# Title", "## Part"}, Lines: []patch.HunkLine{{'+', "+x"}}, EndOfFile: true},
		}},
	}}
	const body = "*** Begin Patch\n*** Add File: a b.md\n+one\n+\n+ two\n*** Delete File: old.md \n*** Update File: u.md\n*** Move to: v.md\n" +
		"*** Update File: w.md\n a\n-b\n+B\n\n c\n@@ # Title\n@@ ## Part\n++x\n*** End of File\n*** End Patch"
	for name, s := range map[string]string{
		"plain": body, "with end": body + "\n", "blank around": "\n\n" + body + "\n \n", "CRLF": strings.ReplaceAll(body, "\n", "\r\n"),
		"fence": "```diff\n" + body + "\n```\n", "here-document": "apply_patch <<'EOF'\n" + body + "\nEOF\n",
		"blank between": strings.ReplaceAll(body, "*** Delete", "\n*** Delete"), "blank after a hunk": strings.ReplaceAll(body, "*** End of File\n", "*** End of File\n\n"),
	} {
		got, err := patch.Parse(s)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %s", name, err, cmp.Diff(want, got))
		}
	}
	if got, err := patch.Parse(want.String()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("written and read: %v %s", err, cmp.Diff(want, got))
	}
	if got, err := patch.Parse("*** Begin Patch\n*** End Patch"); err != nil || len(got.Actions) != 0 {
		t.Errorf("empty: %v %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for body, line := range map[string]int{
		"": 1, "nonsense": 1, "*** Begin Patch\nnonsense": 2, "*** Begin Patch": 2, "*** Begin Patch\n*** Add File:\n*** End Patch": 2,
		"*** Begin Patch\n*** Add File: a\nno plus\n*** End Patch":                            3,
		"*** Begin Patch\n*** Update File: a\n*** End Patch":                                  3,
		"*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch":                           4,
		"*** Begin Patch\n*** Update File: a\n@@\n*** End Patch":                              4,
		"*** Begin Patch\n*** Update File: a\n*** Move to:\n*** End Patch":                    3,
		"*** Begin Patch\n*** Delete File: a\n*** Delete File: a\n*** End Patch":              4,
		"*** Begin Patch\n*** End Patch\nmore":                                                3,
		"*** Begin Patch\n*** Rename File: a\n*** End Patch":                                  2,
		"*** Begin Patch\n*** Update File: a\n@@\n-x\n*** End of File\nmore\n*** End Patch\n": 6,
	} {
		_, err := patch.Parse(body)
		var e *patch.Error
		if !errors.As(err, &e) || e.Line != line || e.Code() != "invalid_patch" {
			t.Errorf("%q: %v, want line %d", body, err, line)
		}
	}
}

// update parses the hunks of one file.
func update(t testing.TB, hunks string) patch.Action {
	t.Helper()
	p, err := patch.Parse("*** Begin Patch\n*** Update File: f.md\n" + hunks + "\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	return p.Actions[0]
}

func TestApply(t *testing.T) {
	for name, c := range map[string]struct{ before, hunks, want, strategy string }{
		"replace":                         {"a\nb\nc\n", "@@\n a\n-b\n+B\n c", "a\nB\nc\n", "exact"},
		"two hunks":                       {"a\nb\nc\nd\ne\n", "@@\n-a\n+A\n@@\n-e\n+E", "A\nb\nc\nd\nE\n", "exact"},
		"mixed ends":                      {"a\r\nb\nc\r\nd\n", "@@\n a\n-b\n-c\n+B\n+C\n+C2\n d", "a\r\nB\nC\r\nC2\r\nd\n", "exact"},
		"untouched":                       {"x²\r\n“q”\nＡ\n", "@@\n-Ａ\n+Ｂ", "x²\r\n“q”\nＢ\n", "exact"},
		"no final end":                    {"a\nb", "@@\n a\n-b\n+B", "a\nB", "exact"},
		"appended without final end":      {"a\nb", "@@\n b\n+c", "a\nb\nc", "exact"},
		"appended":                        {"a\r\nb\r\n", "@@\n+c", "a\r\nb\r\nc\r\n", "exact"},
		"into nothing":                    {"", "@@\n+c\n+d", "c\nd\n", "exact"},
		"all gone":                        {"a\n", "@@\n-a", "", "exact"},
		"last line gone":                  {"a\nb", "@@\n a\n-b", "a", "exact"},
		"behind an anchor":                {"# A\nx\n# B\ny\n", "@@ # B\n+new\n", "# A\nx\n# B\nnew\ny\n", "exact"},
		"anchor chooses":                  {"# A\nx\n# B\nx\n", "@@ # B\n-x\n+X", "# A\nx\n# B\nX\n", "exact"},
		"nested anchors":                  {"# A\n## p\nx\n# B\n## p\nx\n", "@@ # B\n@@ ## p\n-x\n+X", "# A\n## p\nx\n# B\n## p\nX\n", "exact"},
		"end of file":                     {"x\ny\nx\n", "@@\n-x\n+X\n*** End of File", "x\ny\nX\n", "exact"},
		"trailing space":                  {"a  \nb\n", "@@\n a\n-b\n+B", "a  \nB\n", "trailing-space"},
		"indent":                          {"\ta\n\tb\n", "@@\n a\n-b\n+\tB", "\ta\n\tB\n", "indent"},
		"smart quotes are found and kept": {"“x” — y\nz\n", "@@\n \"x\" - y\n-z\n+Z", "“x” — y\nZ\n", "punctuation"},
		"Chinese":                         {"第一章\n素数\n第二章\n", "@@\n 第一章\n-素数\n+质数", "第一章\n质数\n第二章\n", "exact"},
		"only behind the one before":      {"x\na\nx\n", "@@\n a\n@@\n-x\n+X", "x\na\nX\n", "exact"},
	} {
		got, report, err := update(t, c.hunks).Apply(c.before)
		if err != nil || got != c.want || report[len(report)-1].Strategy != c.strategy {
			t.Errorf("%s: %q %+v %v, want %q", name, got, report, err, c.want)
		}
	}
	_, report, err := update(t, "@@\n-a\n+A\n+A2\n@@\n-c\n+C").Apply("a\nb\nc\n")
	if want := (patch.Report{{1, "exact"}, {4, "exact"}}); err != nil || !slices.Equal(report, want) {
		t.Errorf("report %+v %v", report, err)
	}
}

func TestApplyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before, hunks, code string
		hunk                int
		lines               []int
	}{
		"twice":                 {"x\na\nx\n", "@@\n-x\n+X", "ambiguous_match", 1, []int{1, 3}},
		"anchor twice":          {"# A\ny\n# A\nz\n", "@@ # A\n+new", "ambiguous_match", 1, []int{2, 4}},
		"not there":             {"the first\nthe second\n", "@@\n-the sekond\n+x", "match_not_found", 1, []int{2, 1}},
		"before the one before": {"the first line\nlast\n", "@@\n-last\n+x\n@@\n-the first line\n+y", "match_not_found", 2, []int{1}},
		"anchor is not there":   {"a\n", "@@ # Z\n-a\n+b", "match_not_found", 1, []int{1}},
		"not at the end":        {"x\ny\n", "@@\n-x\n+X\n*** End of File", "match_not_found", 1, []int{1}},
	} {
		_, _, err := update(t, c.hunks).Apply(c.before)
		var e *patch.MatchError
		if !errors.As(err, &e) || e.Code() != c.code || e.Hunk != c.hunk || e.Path != "f.md" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var lines []int
		for _, candidate := range e.Candidates {
			lines = append(lines, candidate.Line)
		}
		if !slices.Equal(lines, c.lines) {
			t.Errorf("%s: candidates %+v", name, e.Candidates)
		}
	}
}

// A patch made from two texts with enough context makes one of the other, and touches nothing else.
func TestPatchOfADifference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var before []text.Line
		for i := range rapid.IntRange(1, 30).Draw(rt, "lines") {
			end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(rt, "end")
			before = append(before, text.Line{Text: fmt.Sprintf("line %d “%s”", i, rapid.SampledFrom([]string{"x²", "素数", ""}).Draw(rt, "text")), End: end})
		}
		if rapid.Bool().Draw(rt, "bare") {
			before[len(before)-1].End = ""
		}
		at := rapid.IntRange(0, len(before)-1).Draw(rt, "at")
		gone := rapid.IntRange(0, min(3, len(before)-at)).Draw(rt, "gone")
		var h patch.Hunk
		lead := max(0, at-1)
		for _, l := range before[lead:at] {
			h.Lines = append(h.Lines, patch.HunkLine{Op: ' ', Text: l.Text})
		}
		for _, l := range before[at : at+gone] {
			h.Lines = append(h.Lines, patch.HunkLine{Op: '-', Text: l.Text})
		}
		come := rapid.IntRange(0, 3).Draw(rt, "come")
		for i := range come {
			h.Lines = append(h.Lines, patch.HunkLine{Op: '+', Text: fmt.Sprint("new ", i)})
		}
		for _, l := range before[at+gone : min(len(before), at+gone+1)] {
			h.Lines = append(h.Lines, patch.HunkLine{Op: ' ', Text: l.Text})
		}
		if len(h.Lines) == come {
			rt.Skip("nothing of the file is named")
		}
		written := patch.Patch{Actions: []patch.Action{{Kind: patch.Update, Path: "f", Hunks: []patch.Hunk{h}}}}
		read, err := patch.Parse(written.String())
		if err != nil {
			rt.Fatal(err)
		}
		old := text.JoinLines(before)
		got, _, err := read.Actions[0].Apply(old)
		if err != nil {
			rt.Fatalf("%v\n%s", err, written)
		}
		head, tail := text.JoinLines(before[:at]), text.JoinLines(before[at+gone:])
		if at+gone == len(before) || at == len(before)-1 {
			return // ends of the last lines may change sides
		}
		if !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
			rt.Fatalf("%q became %q: other lines changed", old, got)
		}
		middle := text.SplitLines(got[len(head) : len(got)-len(tail)])
		if len(middle) != come {
			rt.Fatalf("%d lines came, want %d: %q", len(middle), come, got)
		}
		for i, l := range middle {
			if i < gone && l.End != before[at+i].End {
				rt.Fatalf("line %d has end %q, it replaces one with %q", i, l.End, before[at+i].End)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: w.md\n@@ x\n a\n-b\n+B\n*** End of File\n*** End Patch")
	f.Add("```\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n```")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := patch.Parse(s)
		if err != nil {
			return
		}
		again, err := patch.Parse(p.String())
		if err != nil || !cmp.Equal(p, again) {
			t.Errorf("%q: written and read: %v %s", s, err, cmp.Diff(p, again))
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "@@\n a\n-b\n+B")
	f.Fuzz(func(t *testing.T, before, hunks string) {
		p, err := patch.Parse("*** Begin Patch\n*** Update File: f\n" + hunks + "\n*** End Patch")
		if err != nil {
			return
		}
		for _, a := range p.Actions {
			if got, report, err := a.Apply(before); err == nil && (len(report) != len(a.Hunks) || len(a.Hunks) == 0 && got != before) {
				t.Errorf("%q became %q with %+v", before, got, report)
			}
		}
	})
}

func BenchmarkApplyNotFound(b *testing.B) {
	before := strings.Repeat("a line of some text that is like others\n", 16<<20/40)
	var h patch.Hunk
	for range 199 {
		h.Lines = append(h.Lines, patch.HunkLine{Op: ' ', Text: "a line of some text that is like others"})
	}
	h.Lines = append(h.Lines, patch.HunkLine{Op: '-', Text: "and one that is not there"})
	a := patch.Action{Kind: patch.Update, Path: "f", Hunks: []patch.Hunk{h}}
	for b.Loop() {
		if _, _, err := a.Apply(before); err == nil {
			b.Fatal("found")
		}
	}
}
