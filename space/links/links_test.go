package links_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/repa-app/repa/space/links"
)

// to gives every id a longer one.
func to(id string) (string, bool) { return "new-" + id, true }

func TestRewrite(t *testing.T) {
	for src, want := range map[string]string{
		"[a](repa:document/x1)":                                      "[a](repa:document/new-x1)",
		"[a](<repa:material/x1#p=3> \"title\")":                      "[a](<repa:material/new-x1#p=3> \"title\")",
		"![pic](repa:document/x1?w=1) and <repa:document/y>":         "![pic](repa:document/new-x1?w=1) and <repa:document/new-y>",
		"[a][r] and [r]\n\n[r]: repa:document/x1 'title'\n":          "[a][r] and [r]\n\n[r]: repa:document/new-x1 'title'\n",
		"[unused]: repa:document/x1\n":                               "[unused]: repa:document/new-x1\n",
		"`[a](repa:document/x1)` repa:document/x1":                   "`[a](repa:document/x1)` repa:document/x1",
		"```\n[a](repa:document/x1)\n```\n":                          "```\n[a](repa:document/x1)\n```\n",
		"    [a](repa:document/x1)\n":                                "    [a](repa:document/x1)\n",
		"<div>\n[a](repa:document/x1)\n</div>\n":                     "<div>\n[a](repa:document/x1)\n</div>\n",
		"\\[a](repa:document/x1) [b](repa:document/x2)":              "\\[a](repa:document/x1) [b](repa:document/new-x2)",
		"> * [甲](repa:document/x1)\r\n> * [乙](repa:document/x1)\r\n": "> * [甲](repa:document/new-x1)\r\n> * [乙](repa:document/new-x1)\r\n",
		"[![i](repa:material/x1)](repa:document/x2)":                 "[![i](repa:material/new-x1)](repa:document/new-x2)",
		"[a](repa:document/x1.md) [b](repa:other/x1)":                "[a](repa:document/x1.md) [b](repa:other/x1)",
		"[a](notes/repa:document/x1)":                                "[a](notes/repa:document/x1)",
		"[r1](repa:document/r1) [r0](repa:document/rrrr0)":           "[r1](repa:document/new-r1) [r0](repa:document/new-rrrr0)",
		"no references":                    "no references",
		"\ufeff# T\n[a](repa:document/x1)": "\ufeff# T\n[a](repa:document/new-x1)",
	} {
		if got := string(links.Rewrite([]byte(src), to)); got != want {
			t.Errorf("%q became %q, want %q", src, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	got := links.Find([]byte("[a](repa:document/x) `repa:document/no` <repa:material/y#1>\n\n[z]: repa:document/x\n"))
	if want := []string{"x", "y", "x"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte("[a](repa:document/x1) <repa:material/y> `repa:document/z`\n\n[r]: repa:document/w\n"))
	f.Add([]byte("[a]: <repa:document/x\n[![x](repa:document/r0)"))
	f.Fuzz(func(t *testing.T, src []byte) {
		ids := links.Find(src)
		if got := links.Rewrite(src, func(id string) (string, bool) { return id, true }); !bytes.Equal(got, src) {
			t.Errorf("%q became %q with the same ids", src, got)
		}
		got := links.Rewrite(src, to)
		want := slices.Clone(ids)
		for i := range want {
			want[i] = "new-" + want[i]
		}
		if again := links.Find(got); !slices.Equal(again, want) {
			t.Errorf("%q has %v, %q has %v", src, ids, got, again)
		}
		if back := bytes.ReplaceAll(got, []byte("/new-"), []byte("/")); !bytes.Contains(src, []byte("/new-")) && !bytes.Equal(back, src) {
			t.Errorf("%q became %q: more than ids changed", src, got)
		}
	})
}

func BenchmarkRewrite(b *testing.B) {
	src := []byte(strings.Repeat("Some text with [a link](repa:document/x1) and more of it, until the line ends.\n", 1<<20/80))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		links.Rewrite(src, to)
	}
}
