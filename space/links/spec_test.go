package links_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/repa-app/repa/space/links"
)

// example is an example of the specification.
type example struct {
	Example  int
	Section  string
	Markdown string
	Uses     []target
}

type target struct {
	Destination string
	Image       bool
}

func examples(t testing.TB) (out []example) {
	t.Helper()
	data, err := os.ReadFile("testdata/spec.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var e example
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func targets(src []byte) (out []target) {
	for _, u := range links.Find(src) {
		out = append(out, target{u.Destination, u.Image})
	}
	return out
}

func TestSpecification(t *testing.T) {
	all := examples(t)
	if len(all) != 652 {
		t.Fatalf("%d examples were read", len(all))
	}
	for _, e := range all {
		if got := targets([]byte(e.Markdown)); !slices.Equal(got, e.Uses) {
			t.Errorf("example %d (%s): %q has %v, want %v", e.Example, e.Section, e.Markdown, got, e.Uses)
		}
	}
}

// The examples mean the same with other line ends, behind a byte order mark, and in block quotes and list items.
func TestSpecificationElsewhere(t *testing.T) {
	prefixed := func(first, rest string) func([]byte) []byte {
		return func(src []byte) []byte {
			lines := bytes.SplitAfter(src, []byte("\n"))
			var out []byte
			for i, l := range lines {
				switch {
				case len(l) == 0:
				case i == 0:
					out = append(append(out, first...), l...)
				case len(l) == 1 && rest == "   ":
					out = append(out, l...)
				default:
					out = append(append(out, rest...), l...)
				}
			}
			return out
		}
	}
	ends := func(end string) func([]byte) []byte {
		return func(src []byte) []byte { return bytes.ReplaceAll(src, []byte("\n"), []byte(end)) }
	}
	for name, change := range map[string]func([]byte) []byte{
		"CRLF": ends("\r\n"), "CR": ends("\r"), "byte order mark": prefixed("\ufeff", ""), "quote": prefixed("> ", "> "), "item": prefixed("-  ", "   "),
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range examples(t) {
				// A tab is as wide as its column makes it, and an item may not begin with a blank line, nor with what is code in it.
				if (name == "quote" || name == "item") && strings.Contains(e.Markdown, "\t") ||
					name == "item" && (e.Markdown[0] == '\n' || e.Markdown[0] == ' ') {
					continue
				}
				src := change([]byte(e.Markdown))
				if got := targets(src); !slices.Equal(got, e.Uses) {
					t.Errorf("example %d (%s): %q has %v, want %v", e.Example, e.Section, src, got, e.Uses)
				}
			}
		})
	}
}
