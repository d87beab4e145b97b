package links_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/space/links"
)

// fragments of texts whose neighbours may make anything of them.
var fragments = []string{"[a](u)", "[b](<x y>)", "![i](p 't')", "[a]", "[b][a]", "[a][]", "[a]: /d", "[b]: <e> \"t\"", "\n[a]: /d\n", "<http://x>", "<m@x.y>", "`", "``",
	"```", "~~~", "\n", "\n", "\n\n", "> ", "- ", "1. ", "2) ", "    ", " ", "\t", "# ", "===", "---", "\\", "[", "](", ")", "(", "![", "]", "<", ">", "<div>", "<a b=\"",
	"\">", "<!--", "-->", "<?", "<!A ", "<pre>", "<b>", "\"", "'", "x", "文", "&amp;", "&", "_", "*", "\r\n", "\r", "(t)", ":", "]: ", "<xy:", "\x00", "\xff"}

var wild = rapid.Custom(func(t *rapid.T) []byte {
	parts := rapid.SliceOfN(rapid.SampledFrom(fragments), 0, 25).Draw(t, "parts")
	return []byte(strings.Join(parts, "") + rapid.SampledFrom([]string{"", "\n\n[a]: /def\n", "\n\n[a]: /def\n\n[b]: /other"}).Draw(t, "end"))
})

// destination is any string that can be one.
var destination = rapid.OneOf(
	rapid.StringMatching(`[a-z./#?=%-]{0,12}`),
	rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "文", " ", "(", ")", "<", ">", "[", "]", "\\", "`", "``", "&amp;", "&", "\"", "'", "#", "-->", "?>", "]]>", "1.",
		"=", "*", "\n", "\t", "http:", "div", "!", "\xff", "\x7f"}), 0, 5), func(s []string) string { return strings.Join(s, "") }),
	rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
)

func never(string) (string, bool) { return "", false }

func same(d string) (string, bool) { return d, true }

func TestRewriteWithoutChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := wild.Draw(t, "src")
		for _, change := range []func(string) (string, bool){never, same} {
			if got := links.Rewrite(src, change); !bytes.Equal(got, src) {
				t.Fatalf("%q became %q", src, got)
			}
		}
	})
}

// Whatever the text, a rewritten one has the same uses, each with its new destination or, where that cannot be, the old one.
func TestRewriteWild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := wild.Draw(t, "src")
		checkMapped(t, src, drawn(t))
	})
}

// drawn gives the change of a random map that is made while it is asked.
func drawn(t *rapid.T) func(string) (string, bool) {
	known := map[string]string{}
	return func(d string) (string, bool) {
		if _, ok := known[d]; !ok {
			known[d] = destination.Draw(t, fmt.Sprintf("for %q", d))
		}
		return known[d], true
	}
}

// checkMapped rewrites and compares the uses, of which it gives those that kept their destinations.
func checkMapped(t interface{ Fatalf(string, ...any) }, src []byte, change func(string) (string, bool)) (kept []links.Use) {
	got := links.Rewrite(src, change)
	before, after := links.Find(src), links.Find(got)
	if len(before) != len(after) {
		t.Fatalf("%q became %q, with %d uses instead of %d", src, got, len(after), len(before))
	}
	for i, b := range before {
		a := after[i]
		want, _ := change(b.Destination)
		if a.Destination != want {
			if a.Destination != b.Destination {
				t.Fatalf("%q became %q, where %q is %q instead of %q", src, got, got[a.Start:a.End], a.Destination, want)
			}
			kept = append(kept, b)
		}
		if a.Image != b.Image || a.Line != b.Line || !bytes.HasPrefix(src[b.Start:], got[a.Start:a.Start+1]) && src[b.Start] != '<' {
			t.Fatalf("%q became %q, where %+v is %+v", src, got, b, a)
		}
	}
	return kept
}

// tame is a text in which every destination can be another one, whatever that is, as long as autolinks keep a scheme. All its definitions are used.
var tame = rapid.Custom(func(t *rapid.T) []byte {
	var out, end strings.Builder
	labels := 0
	old := func() string {
		return rapid.SampledFrom([]string{"/u", "a.md", "<b c>", "x(y)", "\\(", "&amp;", "图.png", "repa:document/x"}).Draw(t, "destination")
	}
	for range rapid.IntRange(0, 12).Draw(t, "pieces") {
		switch rapid.IntRange(0, 8).Draw(t, "piece") {
		case 0:
			fmt.Fprintf(&out, "[文 *t* [x]](%s)", old())
		case 1:
			fmt.Fprintf(&out, "![a](%s 'title')", old())
		case 2:
			fmt.Fprintf(&out, "[![a](\n%s)](%s)", old(), old())
		case 3:
			labels++
			fmt.Fprintf(&out, " [text][l%d] ", labels)
			fmt.Fprintf(&end, "[l%d]\n\n[l%d]:%s%s%s\n\n", labels, labels, rapid.SampledFrom([]string{" ", "\n", "\n  "}).Draw(t, "gap"), old(),
				rapid.SampledFrom([]string{"", " 't'", "\n\"t\""}).Draw(t, "title"))
		case 4:
			out.WriteString(" <http://x.y/z?q=1> ")
		case 5:
			out.WriteString(rapid.SampledFrom([]string{"`[a](b)`", "\\[a](b)", "text ", "<b>", " ` ", " <a x=\"", "x <!A "}).Draw(t, "text"))
		case 6:
			out.WriteString(rapid.SampledFrom([]string{"\n", "\n\n", "\n\n> ", "\n\n* ", "\n\n1. > ", "\n\n# "}).Draw(t, "break"))
		case 7:
			out.WriteString("\n\n```\n[a](b)\n```\n\n")
		case 8:
			out.WriteString("\n\n    [a](b)\n\n<div>[a](b)</div>\n\n")
		}
	}
	text := out.String() + "\n\n" + end.String()
	if rapid.Bool().Draw(t, "CRLF") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text)
})

func TestRewriteTame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := tame.Draw(t, "src")
		random := drawn(t)
		change := func(d string) (string, bool) {
			next, ok := random(d)
			if strings.HasPrefix(d, "http:") {
				next = "yy:" + next
			}
			if next == "" {
				next = "."
			}
			return next, ok
		}
		if kept := checkMapped(t, src, change); len(kept) > 0 {
			t.Fatalf("%q kept %+v", src, kept)
		}
		if before, after := around(src), around(links.Rewrite(src, change)); before != after {
			t.Fatalf("around the destinations, %q became %q", before, after)
		}
		back := map[string]string{}
		for _, u := range links.Find(src) {
			next, _ := change(u.Destination)
			back[next] = u.Destination
		}
		again := links.Rewrite(links.Rewrite(src, change), func(d string) (string, bool) { old, ok := back[d]; return old, ok })
		for i, u := range links.Find(src) {
			next, _ := change(u.Destination)
			if got := links.Find(again)[i].Destination; got != back[next] {
				t.Fatalf("%q became %q and back %q", src, got, again)
			}
		}
	})
}

// around is a text with a mark for each destination of a use.
func around(src []byte) string {
	uses := links.Find(src)
	slices.SortFunc(uses, func(a, b links.Use) int { return cmp.Compare(a.DestinationStart, b.DestinationStart) })
	var out strings.Builder
	at := 0
	for _, u := range uses {
		from, to := u.DestinationStart, u.DestinationEnd
		if from < at {
			continue // another use of the same definition
		}
		if from > 0 && src[from-1] == '<' && src[to] == '>' {
			from, to = from-1, to+1
		}
		out.Write(src[at:from])
		out.WriteString("☞")
		at = to
	}
	out.Write(src[at:])
	return out.String()
}

func FuzzRewrite(f *testing.F) {
	for _, e := range examples(f) {
		f.Add([]byte(e.Markdown), "new")
	}
	for _, next := range []string{"", "a b", "xx:y", "`", "\"'>", "1.", "</div>", "\n", "&amp;", ")", "\x00", "\\"} {
		f.Add([]byte("a `<!A <b c=' [a](b 't') <xx:y> ![r] <m@x.y> [<xx:y>]\n\n[r]:\nd\n> [<xx:y>]: e 't'\n``` [a](`b) \"\n"), next)
	}
	f.Fuzz(func(t *testing.T, src []byte, next string) {
		for _, change := range []func(string) (string, bool){never, same} {
			if got := links.Rewrite(src, change); !bytes.Equal(got, src) {
				t.Errorf("%q became %q", src, got)
			}
		}
		end := 0
		for _, u := range links.Find(src) {
			if u.Start < 0 || u.Start >= u.End || u.End > len(src) || u.DestinationStart > u.DestinationEnd || u.DestinationEnd > len(src) || u.Line < 1 || u.Start < end {
				t.Errorf("%q has %+v", src, u)
			}
			end = u.Start
		}
		next = strings.ReplaceAll(next, "\x00", "\ufffd")
		checkMapped(t, src, func(string) (string, bool) { return next, true })
		checkMapped(t, src, func(d string) (string, bool) { return d + next, true })
		checkMapped(t, src, func(d string) (string, bool) { return next + d, len(d)%2 == 0 })
	})
}
