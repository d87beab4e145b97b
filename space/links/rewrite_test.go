package links_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/repa-app/repa/space/links"
)

// to gives the function that changes old into next.
func to(old, next string) func(string) (string, bool) {
	return func(d string) (string, bool) { return next, d == old }
}

func TestRewrite(t *testing.T) {
	for name, c := range map[string]struct{ src, old, next, want string }{
		"inline":                         {"a [b](c \"c\") c", "c", "d/e", "a [b](d/e \"c\") c"},
		"all of them":                    {"[c](c) ![c](c)\n\n[c]: c\n[d]: c 'c'\n", "c", "x", "[c](x) ![c](x)\n\n[c]: x\n[d]: x 'c'\n"},
		"autolinks":                      {"<repa:document/x1> <m@x.y>", "repa:document/x1", "repa:document/y2", "<repa:document/y2> <m@x.y>"},
		"also shadowed definitions":      {"[r]: a\n[r]: c\n", "c", "d", "[r]: a\n[r]: d\n"},
		"definition in a quote":          {"> [r]:\r\n> c\r\n> 't'\r\n", "c", "d", "> [r]:\r\n> d\r\n> 't'\r\n"},
		"Chinese":                        {"见[第一章](第一章.md)。", "第一章.md", "卷一/第一章.md", "见[第一章](卷一/第一章.md)。"},
		"not code, HTML or text":         {"`[c](c)` <a href=\"[c](c)\"> c [c] \\[c](c)\n\n    [c](c)\n<div>[c](c)\n\n~~~\n[c]: c\n", "c", "d", "`[c](c)` <a href=\"[c](c)\"> c [c] \\[c](c)\n\n    [c](c)\n<div>[c](c)\n\n~~~\n[c]: c\n"},
		"byte order mark and line ends":  {"\ufeff[a](c)\r\n[a](\rc\n)\r", "c", "d", "\ufeff[a](d)\r\n[a](\rd\n)\r"},
		"image in a link":                {"[![a](c)](c)", "c", "d", "[![a](d)](d)"},
		"escapes are read":               {"[a](\\(&amp;) [b](<\\(&amp;>)", "(&", "x", "[a](x) [b](<x>)"},
		"space":                          {"[a](c) [b](<c>)\n\n[r]: c\n", "c", "d e", "[a](<d e>) [b](<d e>)\n\n[r]: <d e>\n"},
		"brackets stay":                  {"[a](<c d>)", "c d", "e", "[a](<e>)"},
		"empty":                          {"[a](c) [b](c 't') [d](<c>)\n\n[r]: c\n", "c", "", "[a]() [b](<> 't') [d](<>)\n\n[r]: <>\n"},
		"from empty":                     {"[a]() [b](<>) [d](\n)", "", "e", "[a](e) [b](<e>) [d](\ne)"},
		"parentheses that match":         {"[a](c) [b](<c>)", "c", "d(e)f", "[a](d(e)f) [b](<d(e)f>)"},
		"parentheses that do not":        {"[a](c) [b](<c>)", "c", ")(", "[a](\\)\\() [b](<)(>)"},
		"deep parentheses":               {"[a](c)", "c", strings.Repeat("(", 33) + strings.Repeat(")", 33), "[a](" + strings.Repeat("\\(", 33) + strings.Repeat("\\)", 33) + ")"},
		"angle brackets":                 {"[a](c) [b](<c>)", "c", "<d>", "[a](\\<d>) [b](<\\<d\\>>)"},
		"backslashes":                    {"[a](c)", "c", "d\\e\\.\\\\/\\", "[a](d\\e\\\\.\\\\\\\\/\\\\)"},
		"what looks like an entity":      {"[a](c) <xx:y>", "c", "d?a&b&amp;&#1;&nope;", "[a](d?a&b&amp;amp;&amp;#1;&nope;) <xx:y>"},
		"control characters":             {"[a](c) [b](<c>)", "c", "d\n\r\te\x7f", "[a](d&#10;&#13;&#9;e&#127;) [b](<d&#10;&#13;&#9;e&#127;>)"},
		"NUL":                            {"[a](c)", "c", "d\x00", "[a](d\ufffd)"},
		"no UTF-8":                       {"\xff[a\xfe](c)", "c", "\xff", "\xff[a\xfe](\xff)"},
		"heading at the line's start":    {"[a](\nc) [r]\n\n[r]:\nc\n", "c", "#d", "[a](\n\\#d) [r]\n\n[r]:\n\\#d\n"},
		"item at the line's start":       {"[r]:\n  c 't'\n", "c", "1.", "[r]:\n  &#49;. 't'\n"},
		"HTML at the line's start":       {"[r]:\n<c> 't'\n", "c", "div", "[r]:\n<&#100;iv> 't'\n"},
		"underline at the line's start":  {"[r]:\nc\n", "c", "===", "[r]:\n\\===\n"},
		"backtick before":                {"a ` [b](c)", "c", "d`e", "a ` [b](d&#96;e)"},
		"quote that would end a tag":     {"<a b=\"[b](c) \">", "c", "d", "<a b=\"[b](c) \">"},
		"quote that would make a tag":    {"<a b='[b](c) >", "c", "d' e", "<a b='[b](d&#39;&#32;e) >"},
		"declaration before":             {"a <!A [b](c)", "c", "d e", "a <!A [b](d&#32;e)"},
		"autolink, characters":           {"<xx:y>", "xx:y", "xx:a b<c>&amp;`\\.", "<xx:a&#32;b&#60;c&#62;&amp;amp;`\\.>"},
		"autolink to a path":             {"见<xx:a*b_c>。", "xx:a*b_c", "d e.md", "见[xx:a\\*b\\_c](<d e.md>)。"},
		"autolink in brackets":           {"[a <xx:y> b]", "xx:y", "xx:z", "[a <xx:z> b]"},
		"autolink in brackets to a path": {"[a <xx:y> b]", "xx:y", "z", "[a [xx:y](z) b]"},
		"autolink in a link":             {"[a <xx:y> b](c) <xx:y>", "xx:y", "xx:z", "[a <xx:z> b](c) <xx:z>"},
		"email":                          {"<m@x.y> <mailto:m@x.y>", "mailto:m@x.y", "mailto:n@x.y", "<n@x.y> <mailto:n@x.y>"},
		"email to no email":              {"<m@x.y>", "mailto:m@x.y", "mailto:!@x.y", "<mailto:!@x.y>"},
		"email to a path":                {"<m@x.y>", "mailto:m@x.y", "n", "[m@x.y](n)"},
		"fence":                          {"``` [a](c) ` [b](`)", "c", "d", "``` [a](d) ` [b](`)"},
	} {
		got := string(links.Rewrite([]byte(c.src), to(c.old, c.next)))
		if got != c.want {
			t.Errorf("%s: %q became %q, want %q", name, c.src, got, c.want)
		}
		for _, u := range links.Find([]byte(got)) {
			if u.Destination == c.old {
				t.Errorf("%s: %q still leads to %q", name, got, u.Destination)
			}
		}
	}
}

// What cannot be written without another meaning of what is around stays, and keeps no other change from being made.
func TestRewriteLeavesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ src, old, next, want string }{
		"a link in the text of a link":           {"[a <xx:y>](b) <xx:y>", "xx:y", "z", "[a <xx:y>](b) [xx:y](z)"},
		"an exclamation mark before":             {"!<xx:y> <xx:y>", "xx:y", "z", "!<xx:y> [xx:y](z)"},
		"a label before":                         {"[r]<xx:y> <xx:y>\n\n[r]: d\n", "xx:y", "z", "[r]<xx:y> [xx:y](z)\n\n[r]: d\n"},
		"the label of a reference":               {"[<xx:y>] <xx:y>\n\n[<xx:y>]: d\n", "xx:y", "xx:z", "[<xx:y>] <xx:z>\n\n[<xx:y>]: d\n"},
		"a label that would be one":              {"[<xx:y>]\n\n[<xx:z>]: d\n", "xx:y", "xx:z", "[<xx:y>]\n\n[<xx:z>]: d\n"},
		"no destination in front of a title":     {"a <!A [b](c 't') [b](c)", "c", "", "a <!A [b](c 't') [b]()"},
		"the only backtick of what is no fence":  {"``` [a](`)\n[b](`)", "`", "d", "``` [a](`)\n[b](d)"},
		"the only backtick of a definition":      {"[r\n```]: `\n\n[b](`)\n", "`", "d", "[r\n```]: `\n\n[b](d)\n"},
		"the quote that keeps from a definition": {"[r]: x \"a [b](c\"d) e\"\n\n[b](c\"d)\n", "c\"d", "f", "[r]: x \"a [b](c\"d) e\"\n\n[b](f)\n"},
		"a definition that would be one":         {"[r]:<xx:y>_\n[b](xx:y)\n", "xx:y", "z", "[r]:<xx:y>_\n[b](z)\n"},
	} {
		if got := string(links.Rewrite([]byte(c.src), to(c.old, c.next))); got != c.want {
			t.Errorf("%s: %q became %q, want %q", name, c.src, got, c.want)
		}
	}
}

func TestRewriteAsksInOrder(t *testing.T) {
	src := []byte("[a](1) [b]\n\n[b]: 2\n[c]: 3\ntext <dd:4> [![e](6)](5)\n")
	var asked []string
	got := links.Rewrite(src, func(d string) (string, bool) {
		asked = append(asked, d)
		return d, true
	})
	if want := []string{"1", "2", "3", "dd:4", "5", "6"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if &got[0] != &src[0] || len(got) != len(src) {
		t.Errorf("a text without changes became %q", got)
	}
}
