package links_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/repa-app/repa/space/links"
)

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []string // line, use, destination, and where that is written if it is not written so
	}{
		"nothing":                 {"", nil},
		"text":                    {"plain [text] (here) a@b.c http://x.y\n", nil},
		"inline":                  {"a [b](c.md \"t\") d", []string{`1 [b](c.md "t") c.md`}},
		"image":                   {"![图](图/一.png)", []string{"1 ![图](图/一.png) image 图/一.png"}},
		"Chinese":                 {"见[第一章](第一章.md)，又见【二】[三（上）](<三 上.md>)。\n", []string{"1 [第一章](第一章.md) 第一章.md", "1 [三（上）](<三 上.md>) 三 上.md"}},
		"image in a link":         {"[![a](b.png)](c.md)", []string{"1 [![a](b.png)](c.md) c.md", "1 ![a](b.png) image b.png"}},
		"link in an image":        {"![a [b](c)](d)", []string{"1 ![a [b](c)](d) image d", "1 [b](c) c"}},
		"link in a link":          {"[a [b](c) d](e)", []string{"1 [b](c) c"}},
		"nested brackets":         {"[a [b [c]]](d) [e\\]](f)", []string{"1 [a [b [c]]](d) d", "1 [e\\]](f) f"}},
		"parentheses":             {"[a](b(c(d)e)) [f](g\\)h) [i](<j)k>)", []string{"1 [a](b(c(d)e)) b(c(d)e)", "1 [f](g\\)h) g)h = g\\)h", "1 [i](<j)k>) j)k"}},
		"entities":                {"[a](b&amp;c&#32;&#x4e2d;&nope;) <xx:&amp;>", []string{"1 [a](b&amp;c&#32;&#x4e2d;&nope;) b&c 中&nope; = b&amp;c&#32;&#x4e2d;&nope;", "1 <xx:&amp;> xx:& = xx:&amp;"}},
		"empty":                   {"[a]() [b](<>) [](c)", []string{"1 [a]() ", "1 [b](<>) ", "1 [](c) c"}},
		"references":              {"[a][R] [r][] [r] [x]\n\n[r]: /d&lt;\n", []string{"1 [a][R] /d< = /d&lt;", "1 [r][] /d< = /d&lt;", "1 [r] /d< = /d&lt;"}},
		"image references":        {"[ẞ]: <a b>\n![x][SS] ![ss]", []string{"2 ![x][SS] image a b", "2 ![ss] image a b"}},
		"first definition":        {"[r]\n\n> [r]: one\n\n[r]: two\n", []string{"1 [r] one"}},
		"definition in an item":   {"* [r]:\n  /d\n  'title'\n\n[r]", []string{"5 [r] /d"}},
		"unused definition":       {"[r]: /d\n", nil},
		"no definition":           {"[r]: /d x\n\n[r] [r][]\n", nil},
		"autolinks":               {"<http://a.b/\\> <me@x.org> <x> <a b:c>", []string{"1 <http://a.b/\\> http://a.b/\\", "1 <me@x.org> mailto:me@x.org = me@x.org"}},
		"autolink in a link":      {"[a <bb:c>](d)", []string{"1 [a <bb:c>](d) d", "1 <bb:c> bb:c"}},
		"code":                    {"`[a](b)` ``[a](`b)`` \\`[c](d)\\`\n\n    [e](f)\n\n```\n[g](h)\n```\n~~~~\n[i](j)\n~~~\n[k](l)\n", []string{"1 [c](d) d"}},
		"HTML":                    {"<div>\n[a](b)\n\n[c](d) <a title=\"[e](f)\"> <!-- [g](h) -->\n", []string{"4 [c](d) d"}},
		"precedence":              {"[a `](b)` [c](d) <ee:[f](g)> [h <i j=\"](k)\">", []string{"1 [c](d) d", "1 <ee:[f](g)> ee:[f](g)"}},
		"headings":                {"# [a](b) ##\n\n[c](d)\n[e](f)\n===\n", []string{"1 [a](b) b", "3 [c](d) d", "4 [e](f) f"}},
		"quotes and items":        {"> 1. [a](b)\n>    - [c\n>      d](e)\nlazy [f](g)\n", []string{"1 [a](b) b", "2 [c\n>      d](e) e", "4 [f](g) g"}},
		"over lines":              {"[a](\r\n  b\r\n  't\r\n  u'\r\n)\r[c](d)", []string{"1 [a](\r\n  b\r\n  't\r\n  u'\r\n) b", "6 [c](d) d"}},
		"byte order mark":         {"\ufeff[r]: /d\n\n[r]", []string{"3 [r] /d"}},
		"NUL and other bytes":     {"[a](b\x00c) [d](\xff\xfe)", []string{"1 [a](b\x00c) b\ufffdc = b\x00c", "1 [d](\xff\xfe) \xff\xfe"}},
		"blank second label":      {"[r][ ]\n\n[r]: /d", []string{"1 [r] /d"}},
		"tab behind a definition": {"[r]:\t/d \t\n\n[r]", []string{"3 [r] /d"}},
	} {
		var got []string
		for _, u := range links.Find([]byte(c.src)) {
			s := fmt.Sprint(u.Line, " ", c.src[u.Start:u.End], " ")
			if u.Image {
				s += "image "
			}
			s += u.Destination
			if written := c.src[u.DestinationStart:u.DestinationEnd]; written != u.Destination {
				s += " = " + written
			}
			got = append(got, s)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q has\n%q, want\n%q", name, c.src, got, c.want)
		}
	}
}
