package text_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

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
		"CR":                           {"a\rb\rc\r", []text.Edit{{"b\nc\n", "x\ny\nz\n"}}, "a\rx\ry\rz\r", "line-ends"},
		"CRLF asked, LF there":         {"a\nb\nc\n", []text.Edit{{"a\r\nb", "x\r\ny"}}, "x\ny\nc\n", "line-ends"},
		"CRLF in the new text only":    {"a\nb\n", []text.Edit{{"b", "x\r\ny"}}, "a\nx\ny\n", "exact"},
		"last line without end":        {"a\r\nb", []text.Edit{{"b", "x\ny"}}, "a\r\nx\r\ny", "exact"},
		"only line without end":        {"a", []text.Edit{{"a", "x\ny"}}, "x\ny", "exact"},
		"head, whole lines and tail":   {"1 a\r\nb\r\n\r\nb\r\nc 2\r\n", []text.Edit{{"a\nb\n\nb\nc", "A\nC"}}, "1 A\r\nC 2\r\n", "line-ends"},
		"whole lines that repeat":      {"b\r\nb\r\nb\r\nc\r\n", []text.Edit{{"b\nb\nc\n", "x\n"}}, "b\r\nx\r\n", "line-ends"},
		"ideographic trailing space":   {"a　\nb\n", []text.Edit{{"a\nb", "x"}}, "x\n", "trailing-space"},
		"loose, to the end of text":    {"a\nb \nc ", []text.Edit{{"b\nc", "x\ny"}}, "a\nx\ny", "trailing-space"},
		"ideographic space":            {"一　二\n", []text.Edit{{"一 二", "三"}}, "三\n", "punctuation"},
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
		"over line ends":         {"a\r\nb\r\na\r\nb\r\n", []text.Edit{{"a\nb", "x"}}, "ambiguous_match", []int{1, 3}},
		"lines that end in CR":   {"a\rb\ra\r", []text.Edit{{"a", "x"}}, "ambiguous_match", []int{1, 3}},
		"far down":               {strings.Repeat("nothing of it here\n", 50_000) + "the second line\n", []text.Edit{{"the sekond line", "x"}}, "match_not_found", []int{50_001}},
		"full-width form":        {"a，b，c\n", []text.Edit{{"a,b,c", "x"}}, "match_not_found", []int{}},
		"third line of a block":  {"x\nfunc f() {\n\ta := 1\n\treturn b\n}\nfunc g() {\n}\n", []text.Edit{{"func f() {\n\ta := 1\n\treturn a\n}\n", "x"}}, "match_not_found", []int{2}},
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

func TestCandidates(t *testing.T) {
	refused := func(before, old string) *text.MatchError {
		t.Helper()
		_, _, err := text.Apply(before, []text.Edit{{Old: old, New: "x"}})
		var m *text.MatchError
		if !errors.As(err, &m) {
			t.Fatalf("%v", err)
		}
		return m
	}
	if m := refused(strings.Repeat("a\n", 50), "a\n"); len(m.Candidates) != 20 || !strings.Contains(m.Error(), "20 or more places") {
		t.Errorf("many: %d, %v", len(m.Candidates), m)
	}
	prose := strings.Repeat("只是一些别的句子而已。", 300)
	m := refused("开头\n"+prose+"素数是只能被1和自己整除的自然数。"+prose+"\n", "素数是只能被1和它本身整除的自然数。")
	if len(m.Candidates) != 1 || m.Candidates[0].Line != 2 || !strings.Contains(m.Candidates[0].Text, "素数是只能被1和自己整除") || m.Candidates[0].Similarity < 0.7 {
		t.Errorf("in a long line: %+v", m.Candidates)
	}
	if n := utf8.RuneCountInString(strings.Trim(m.Candidates[0].Text, "…")); n > 200 {
		t.Errorf("%d characters are shown", n)
	}
	m = refused("alpha beta gamma\nalpha beta gamme\nalpha beta\nalpha bets gammo\ndelta\n", "alpha beta gamma ray\n")
	if len(m.Candidates) != 3 || !slices.IsSortedFunc(m.Candidates, func(a, b text.Candidate) int { return cmp.Compare(b.Similarity, a.Similarity) }) || m.Candidates[0].Line != 1 {
		t.Errorf("order: %+v", m.Candidates)
	}
	for _, c := range m.Candidates {
		if c.Similarity <= 0 || c.Similarity >= 1 {
			t.Errorf("similarity %v", c.Similarity)
		}
	}
	m = refused("a b c\n", "b\nc")
	if details, ok := m.Details().(map[string]any); !ok || details["candidates"] == nil {
		t.Errorf("details %v", m.Details())
	}
}

// Looking for text costs no more where lines repeat: were it quadratic, this would take minutes.
func TestApplyToVeryMuchText(t *testing.T) {
	same := strings.Repeat("same line of text\n", 200_000)
	old := strings.Repeat("same line of text \n", 20_000)
	for name, c := range map[string]struct{ before, old string }{
		"equal lines":      {same, old + "other"},
		"equal CRLF lines": {strings.ReplaceAll(same, "\n", "\r\n"), strings.ReplaceAll(old, " \n", "\n") + "other\nline"},
		"one line":         {strings.Repeat("some words ", 300_000), "sum werds"},
		"a long old":       {same, strings.Repeat("other words ", 300_000)},
	} {
		_, _, err := text.Apply(c.before, []text.Edit{{Old: c.old, New: "x"}})
		var m *text.MatchError
		if !errors.As(err, &m) || m.Ambiguous {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A span of whole lines is found by a loosened copy, and nothing outside of it changes.
func TestApplyFindsLooseCopies(t *testing.T) {
	loosen := map[string]func(s string, n int) string{
		"exact":          func(s string, _ int) string { return s },
		"trailing-space": func(s string, n int) string { return s + strings.Repeat(" ", n+1) },
		"indent":         func(s string, n int) string { return strings.Repeat("\t", n+1) + s },
		"punctuation":    func(s string, _ int) string { return strings.NewReplacer("’", "'", "—", "-").Replace(s) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		strategy := rapid.SampledFrom([]string{"exact", "line-ends", "trailing-space", "indent", "punctuation"}).Draw(rt, "strategy")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"})
		var lines []text.Line
		for i := range rapid.IntRange(2, 30).Draw(rt, "lines") {
			lines = append(lines, text.Line{Text: fmt.Sprintf("it’s line %d — no other", i), End: end.Draw(rt, "end")})
		}
		from := rapid.IntRange(0, len(lines)-2).Draw(rt, "from")
		to := rapid.IntRange(from+1, len(lines)).Draw(rt, "to")
		var old, want []string
		for i, l := range lines[from:to] {
			made := loosen[strategy]
			if made == nil {
				made = loosen["exact"]
			}
			ending := l.End
			if strategy == "line-ends" {
				ending = map[string]string{"\n": "\r\n", "\r\n": "\n", "\r": "\n"}[l.End]
			}
			old = append(old, made(l.Text, i%3)+ending)
			want = append(want, fmt.Sprintf("new %d", i)+l.End)
		}
		replacement := strings.ReplaceAll(strings.ReplaceAll(strings.Join(want, ""), "\r\n", "\n"), "\r", "\n")
		before := text.JoinLines(lines)
		got, matches, err := text.Apply(before, []text.Edit{{Old: strings.Join(old, ""), New: replacement}})
		if all := text.JoinLines(lines[:from]) + strings.Join(want, "") + text.JoinLines(lines[to:]); err != nil || got != all {
			rt.Fatalf("%q, want %q: %v", got, all, err)
		}
		if matches[0] != (text.Match{Line: from + 1, Strategy: strategy}) {
			rt.Errorf("match %+v, want line %d", matches[0], from+1)
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "a\nb", "x\ny")
	f.Add("“q” — x\n", `"q" - x`, "")
	f.Add("\ta\n\n b \rc", "a\n\nb\n", "x")
	f.Add("x\r\na\r\nb y\r\n", "a\nb", "1\n2\n3")
	f.Add("素数是只能被1和它本身整除的自然数。", "素数是能被1和自身整除的自然数。", "")
	f.Fuzz(func(t *testing.T, before, old, now string) {
		got, matches, err := text.Apply(before, []text.Edit{{Old: old, New: now}})
		if text.JoinLines(text.SplitLines(before)) != before {
			t.Error("lines joined are not the text")
		}
		if err != nil {
			var coded interface{ Code() string }
			if !errors.As(err, &coded) || got != "" {
				t.Errorf("%q with error %v", got, err)
			}
			return
		}
		head, tail := outside(before, old, matches[0])
		if len(got) < len(head)+len(tail) || !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
			t.Errorf("%q → %q by %q → %q (%+v) changed other bytes", before, got, old, now, matches[0])
		}
	})
}

// outside is the text before and behind the place of an edit.
func outside(before, old string, m text.Match) (head, tail string) {
	if m.Strategy == "exact" {
		i := strings.Index(before, old)
		return before[:i], before[i+len(old):]
	}
	lines, want := text.SplitLines(before), text.SplitLines(old)
	first, last := lines[m.Line-1], lines[m.Line+len(want)-2]
	head, tail = text.JoinLines(lines[:m.Line-1]), text.JoinLines(lines[m.Line+len(want)-1:])
	open := want[len(want)-1].End == ""
	if m.Strategy == "line-ends" {
		head += strings.TrimSuffix(first.Text, want[0].Text)
		if open {
			tail = strings.TrimPrefix(last.Text, want[len(want)-1].Text) + last.End + tail
		}
	} else if open {
		tail = last.End + tail
	}
	return head, tail
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
