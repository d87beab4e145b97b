package text_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/repa-app/repa/space/text"
)

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		before   string
		edits    []text.Edit
		want     string
		strategy string
	}{
		"one":                          {"a b c", []text.Edit{{"b", "B"}}, "a B c", "exact"},
		"two, out of order":            {"a b c", []text.Edit{{"c", "C"}, {"a", "A"}}, "A b C", "exact"},
		"full-width stays":             {"ＡＢＣ，x²\n“q”\n", []text.Edit{{"x²", "x³"}}, "ＡＢＣ，x³\n“q”\n", "exact"},
		"removed":                      {"a\nb\nc\n", []text.Edit{{"b\n", ""}}, "a\nc\n", "exact"},
		"same text":                    {"a\n", []text.Edit{{"a", "a"}}, "a\n", "exact"},
		"no final line end":            {"a\nb", []text.Edit{{"a\nb", "x\ny"}}, "x\ny", "exact"},
		"CRLF":                         {"a\r\nb\r\nc\r\n", []text.Edit{{"a\nb\n", "x\ny\nz\n"}}, "x\r\ny\r\nz\r\nc\r\n", "line-ends"},
		"CRLF, in one line":            {"a\r\nb\r\n", []text.Edit{{"b", "x\ny"}}, "a\r\nx\r\ny\r\n", "exact"},
		"mixed ends, line by line":     {"a\r\nb\nc\rd\n", []text.Edit{{"a\nb\nc\n", "1\n2\n3\n4\n"}}, "1\r\n2\n3\r4\rd\n", "line-ends"},
		"ends in the middle of a line": {"one two\r\nthree four\r\n", []text.Edit{{"two\nthree", "2\n3"}}, "one 2\r\n3 four\r\n", "line-ends"},
		"trailing space":               {"a  \nb\t\nc\n", []text.Edit{{"a\nb", "x"}}, "x\nc\n", "trailing-space"},
		"indent":                       {"\tif x {\n\t\ty()\n\t}\n", []text.Edit{{"if x {\ny()\n}", "z()"}}, "z()\n", "indent"},
		"punctuation":                  {"He said “no” — twice.\nEnd\n", []text.Edit{{`He said "no" - twice.`, "He said yes."}}, "He said yes.\nEnd\n", "punctuation"},
		"Chinese":                      {"素数是只能被1和自身整除的数。\n合数不是。\n", []text.Edit{{"合数不是", "合数则不然"}}, "素数是只能被1和自身整除的数。\n合数则不然。\n", "exact"},
	} {
		got, matches, err := text.Apply(c.before, c.edits)
		if err != nil || got != c.want || matches[0].Strategy != c.strategy {
			t.Errorf("%s: %q %+v %v", name, got, matches, err)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		edits  []text.Edit
		code   string
		lines  []int
	}{
		"none":                   {"a", nil, "invalid_input", nil},
		"empty":                  {"a", []text.Edit{{"", "x"}}, "invalid_input", nil},
		"overlap":                {"abc", []text.Edit{{"ab", "x"}, {"bc", "y"}}, "invalid_input", nil},
		"twice":                  {"a\nb\na\n", []text.Edit{{"a", "x"}}, "ambiguous_match", []int{1, 3}},
		"overlapping places":     {"aaa", []text.Edit{{"aa", "x"}}, "ambiguous_match", []int{1, 1}},
		"twice loosely":          {"a \nb\na\t\nb\n", []text.Edit{{"a\nb", "x"}}, "ambiguous_match", []int{1, 3}},
		"not there":              {"first line\nthe second line\n", []text.Edit{{"the sekond line", "x"}}, "match_not_found", []int{2}},
		"nothing like it":        {"abc\n", []text.Edit{{"完全不同", "x"}}, "match_not_found", []int{}},
		"blank lines are no aid": {"a\n\n\nb\n", []text.Edit{{" \n \n \n \n", "x"}}, "match_not_found", []int{}},
	} {
		_, _, err := text.Apply(c.before, c.edits)
		var coded interface{ Code() string }
		if !errors.As(err, &coded) || coded.Code() != c.code {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var m *text.MatchError
		if !errors.As(err, &m) {
			continue
		}
		if len(m.Candidates) != len(c.lines) {
			t.Errorf("%s: candidates %+v", name, m.Candidates)
			continue
		}
		for i, want := range c.lines {
			if m.Candidates[i].Line != want {
				t.Errorf("%s: candidates %+v", name, m.Candidates)
			}
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "a\nb", "x\ny")
	f.Add("“q” — x\n", `"q" - x`, "")
	f.Fuzz(func(t *testing.T, before, old, now string) {
		got, matches, err := text.Apply(before, []text.Edit{{Old: old, New: now}})
		if err != nil {
			return
		}
		lines := text.SplitLines(before)
		if matches[0].Strategy == "exact" {
			i := strings.Index(before, old)
			if got[:i] != before[:i] || !strings.HasSuffix(got, before[i+len(old):]) {
				t.Errorf("%q → %q by %q → %q changed other bytes", before, got, old, now)
			}
		}
		if text.JoinLines(lines) != before {
			t.Error("lines joined are not the text")
		}
	})
}

func BenchmarkApply(b *testing.B) {
	s := strings.Repeat("a line of some text that is like others\n", 1<<20/40) + "the one\n"
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		if _, _, err := text.Apply(s, []text.Edit{{Old: "the one", New: "the other"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyNotFound(b *testing.B) {
	s := strings.Repeat("a line of some text that is like others\n", 16<<20/40)
	old := strings.Repeat("another line of text that is not in it\n", 200)
	for b.Loop() {
		if _, _, err := text.Apply(s, []text.Edit{{Old: old, New: "x"}}); err == nil {
			b.Fatal("found")
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	var lines []string
	for i := range 25_000 {
		lines = append(lines, strings.Repeat("x", i%60)+"\n")
	}
	base := strings.Join(lines, "")
	lines[100] = "mine\n"
	ours := strings.Join(lines, "")
	lines[100], lines[20_000] = strings.Repeat("x", 100%60)+"\n", "theirs\n"
	theirs := strings.Join(lines, "")
	b.SetBytes(int64(len(base)))
	for b.Loop() {
		if _, conflicts := text.Merge(base, ours, theirs); conflicts != nil {
			b.Fatal(conflicts)
		}
	}
}
