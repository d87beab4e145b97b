package text_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/space/text"
)

func TestMerge(t *testing.T) {
	const base = "a\nb\nc\nd\ne\n"
	for name, c := range map[string]struct {
		base, ours, theirs, want string
		conflicts                int
	}{
		"apart":                {base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", 0},
		"same":                 {base, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n", "a\nX\nc\nd\ne\n", 0},
		"same and more":        {base, "a\nX\nc\nd\ne\n", "a\nX\nc\nd\nE\n", "a\nX\nc\nd\nE\n", 0},
		"overlap":              {base, "a\nX\nc\nd\ne\n", "a\nY\nc\nd\ne\n", "", 1},
		"neighbours":           {base, "a\nX\nc\nd\ne\n", "a\nb\nY\nd\ne\n", "", 1},
		"both put in":          {base, "a\n1\nb\nc\nd\ne\n", "a\n2\nb\nc\nd\ne\n", "", 1},
		"put in and take out":  {base, "a\nb\nc\nd\ne\nf\n", "b\nc\nd\ne\n", "b\nc\nd\ne\nf\n", 0},
		"CRLF":                 {"a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n", 0},
		"no end of line":       {"a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC", 0},
		"two conflicts":        {base, "1\nb\nc\nd\n5\n", "2\nb\nc\nd\n6\n", "", 2},
		"everything and a bit": {base, "x\ny\n", "a\nb\nC\nd\ne\n", "", 1},
	} {
		got, conflicts := text.Merge(c.base, c.ours, c.theirs)
		if got != c.want || len(conflicts) != c.conflicts {
			t.Errorf("%s: %q, %+v", name, got, conflicts)
		}
	}
	_, conflicts := text.Merge(base, "0\na\nX\nY\nc\nd\ne\n", "a\nZ\nc\nd\ne\n")
	if want := (text.Conflict{BaseLine: 2, BaseLines: 1, OursLine: 3, OursLines: 2, TheirsLine: 2, TheirsLines: 1}); len(conflicts) != 1 || conflicts[0] != want {
		t.Errorf("conflict %+v, want %+v", conflicts, want)
	}
}

// someLines draws a text of few different lines, so that lines repeat.
func someLines(rt *rapid.T, name string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "d\n", "e"}), 0, 12).Draw(rt, name), "")
}

func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base, x, y := someLines(rt, "base"), someLines(rt, "x"), someLines(rt, "y")
		for _, law := range []struct{ ours, theirs, want string }{{x, base, x}, {base, x, x}, {x, x, x}} {
			if got, conflicts := text.Merge(base, law.ours, law.theirs); got != law.want || conflicts != nil {
				rt.Fatalf("merge(%q, %q, %q) = %q %v", base, law.ours, law.theirs, got, conflicts)
			}
		}
		a, ca := text.Merge(base, x, y)
		b, cb := text.Merge(base, y, x)
		if a != b || len(ca) != len(cb) {
			rt.Fatalf("merge of %q and %q from %q depends on their order: %q %q", x, y, base, a, b)
		}
		if got, err := text.Revert(base, x, x); err != nil || got != base {
			rt.Fatalf("revert(%q, %q, the same) = %q %v", base, x, got, err)
		}
	})
}

// Changes of different lines, each of which occurs once, are always both made and can always be taken back one by one.
func TestChangesFarApart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var base []string
		for i := range rapid.IntRange(8, 40).Draw(rt, "lines") {
			base = append(base, fmt.Sprintf("line %d\n", i))
		}
		mine := rapid.IntRange(0, len(base)-1).Draw(rt, "mine")
		yours := rapid.IntRange(0, len(base)-1).Filter(func(i int) bool { return i < mine-1 || i > mine+1 }).Draw(rt, "yours")
		edit := func(lines []string, at int, what string) []string {
			out := slices.Clone(lines)
			switch rapid.IntRange(0, 2).Draw(rt, what) {
			case 0:
				out[at] = what + "\n"
			case 1:
				out[at] = ""
			case 2:
				out[at] += what + "\n"
			}
			return out
		}
		a, b := edit(base, mine, "mine"), edit(base, yours, "yours")
		both := slices.Clone(a)
		both[yours] = b[yours]
		join := func(l []string) string { return strings.Join(l, "") }
		if got, conflicts := text.Merge(join(base), join(a), join(b)); got != join(both) || conflicts != nil {
			rt.Fatalf("merged %q %v, want %q", got, conflicts, join(both))
		}
		if got, err := text.Revert(join(base), join(a), join(both)); err != nil || got != join(b) {
			rt.Fatalf("reverted %q %v, want %q", got, err, join(b))
		}
	})
}

func TestRevertNeverGuesses(t *testing.T) {
	for name, c := range map[string]struct{ before, after, current, want string }{
		"later text elsewhere":          {"a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\nlater\n", "a\nb\nc\nlater\n"},
		"a line behind it":              {"a\nb\n", "a\nX\n", "a\nX\nlater\n", "a\nb\nlater\n"},
		"a line before it":              {"a\nb\nc\n", "a\nX\nc\n", "a\nnew\nX\nc\n", "a\nnew\nb\nc\n"},
		"its own line again behind it":  {"a\nb\n", "a\nX\n", "a\nX\nX\n", ""},
		"a line in its middle":          {"a\nb\n", "a\nX\nY\nb\n", "a\nX\nnew\nY\nb\n", ""},
		"a line where it took one":      {"a\nb\nc\n", "a\nc\n", "a\nnew\nc\n", ""},
		"overlap":                       {"a\nb\nc\n", "a\nX\nc\n", "a\nXY\nc\n", ""},
		"next to it":                    {"a\nb\nc\n", "a\nX\nc\n", "a\nX\nC\n", ""},
		"added, and copied since":       {"a\nb\n", "a\nnew\nb\n", "a\nnew\nb\na\nnew\nb\n", ""},
		"in a repeated block":           {"-\nx\n-\nx\n-\n", "-\nx\n-\nY\n-\n", "-\nY\n-\nx\n-\nx\n-\n", ""},
		"the change was undone by hand": {"a\nb\nc\n", "a\nX\nc\n", "a\nb\nc\n", ""},
	} {
		got, err := text.Revert(c.before, c.after, c.current)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add("a\nb\n", "a\nc\n", "x\na\nb\n")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		if len(base)+len(ours)+len(theirs) > 1<<12 {
			return
		}
		merged, conflicts := text.Merge(base, ours, theirs)
		if conflicts != nil && merged != "" {
			t.Error("a text with conflicts")
		}
		if got, err := text.Revert(base, ours, ours); err != nil || got != base {
			t.Errorf("revert gave %q %v", got, err)
		}
	})
}
