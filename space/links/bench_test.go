package links_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/repa-app/repa/space/links"
)

// tenThousand is 1 MiB of text with 10,000 links.
func tenThousand() []byte {
	const each = 1 << 20 / 10000
	link := "见[第一章](chapters/one.md \"first\") and more; "
	line := link + strings.Repeat("word ", (each-len(link)-1)/5) + "\n"
	var out bytes.Buffer
	for i := range 10000 {
		out.WriteString(line)
		if i%10 == 9 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// hostile are texts that take quadratic time if anything is looked for again and again.
var hostile = map[string][]byte{
	"brackets":                []byte(strings.Repeat("[", 100_000)),
	"brackets that close":     []byte(strings.Repeat("[", 25_000) + strings.Repeat("]", 25_000) + "\n\n[a]: b\n"),
	"brackets and parens":     []byte(strings.Repeat("[a](", 25_000)),
	"brackets before links":   []byte(strings.Repeat("[", 25_000) + strings.Repeat("[a](b)", 10_000)),
	"images before links":     []byte(strings.Repeat("![", 25_000) + strings.Repeat("[a](b)", 10_000)),
	"nested links":            []byte(strings.Repeat("[a ", 30_000) + strings.Repeat("](b)", 30_000)),
	"nested images":           []byte(strings.Repeat("![a ", 30_000) + strings.Repeat("](b)", 30_000)),
	"unclosed destinations":   []byte(strings.Repeat("[a](<b", 30_000)),
	"unclosed titles":         []byte(strings.Repeat("[a](b \"", 30_000) + strings.Repeat("[a](b '", 30_000)),
	"escaped titles":          []byte(strings.Repeat("[a](b \"\\\"", 30_000)),
	"parentheses":             []byte("[a](" + strings.Repeat("(", 200_000)),
	"references":              []byte(strings.Repeat("[a]", 25_000) + "\n\n[a]: b\n"),
	"references to nothing":   []byte(strings.Repeat("[a][b]", 25_000) + "\n\n[a]: b\n"),
	"definitions":             []byte(strings.Repeat("[a]: b\n", 25_000)),
	"definitions, unfinished": []byte(strings.Repeat("[a]: b\n\"", 25_000)),
	"long labels":             []byte(strings.Repeat("["+strings.Repeat("a", 998)+"]", 500) + "\n\n[a]: b\n"),
	"backticks":               []byte(backticks(600)),
	"comments":                []byte("a" + strings.Repeat("<!-- ", 25_000)),
	"declarations":            []byte("a" + strings.Repeat("<!A ", 25_000)),
	"instructions":            []byte("a" + strings.Repeat("<? ", 25_000)),
	"sections":                []byte("a" + strings.Repeat("<![CDATA[ ", 30_000)),
	"tags":                    []byte("a" + strings.Repeat("<a b='", 30_000) + strings.Repeat("<a b=\"", 30_000)),
	"attributes":              []byte("a <a" + strings.Repeat(" b", 100_000)),
	"schemes":                 []byte(strings.Repeat("<aa:", 25_000)),
	"emails":                  []byte(strings.Repeat("<a@", 25_000) + strings.Repeat("a.", 25_000)),
	"entities":                []byte("[a](" + strings.Repeat("&a", 100_000) + ")"),
	"quotes":                  []byte(strings.Repeat(">", 100_000) + "\n" + strings.Repeat("a\n", 25_000)),
	"items":                   []byte(strings.Repeat("- ", 25_000) + "a\n" + strings.Repeat("\n", 25_000)),
	"items and breaks":        []byte(strings.Repeat("* ", 100_000) + "a\n"),
	"items in quotes":         []byte(strings.Repeat("> - ", 30_000) + "a\n" + strings.Repeat("\n", 30_000)),
	"items, indented":         []byte(strings.Repeat("1. ", 1_000) + "a\n" + strings.Repeat(strings.Repeat(" ", 3_000)+"a\n", 50)),
	"underlines":              []byte(strings.Repeat("[a]: b\n===\n", 30_000)),
	"white space":             []byte("[a](" + strings.Repeat(" ", 100_000) + "\n" + strings.Repeat("\t", 100_000)),
	"carriage returns":        []byte(strings.Repeat("\r", 100_000) + "[a](b)"),
}

// backticks has runs of all lengths, none of which ends a code span.
func backticks(n int) string {
	var out strings.Builder
	out.WriteString("[a](b) ")
	for i := range n {
		out.WriteString(strings.Repeat("`", i+1) + " ")
	}
	return out.String()
}

func moved(d string) (string, bool) { return "moved `to` <" + d + ">", true }

func TestHostile(t *testing.T) {
	for name, src := range hostile {
		if kept := checkMapped(t, src, moved); len(kept) > 0 {
			t.Errorf("%s: %d uses kept their destination", name, len(kept))
		}
	}
}

func BenchmarkFind(b *testing.B) { benchmark(b, func(src []byte) { links.Find(src) }) }
func BenchmarkRewrite(b *testing.B) {
	benchmark(b, func(src []byte) { links.Rewrite(src, moved) })
}

func benchmark(b *testing.B, run func([]byte)) {
	measure := func(name string, src []byte) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				run(src)
			}
		})
	}
	measure("10,000 links", tenThousand())
	for name, src := range hostile {
		measure(name, src)
	}
}
