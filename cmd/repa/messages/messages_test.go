package messages_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/repa-app/repa/cmd/repa/messages"
)

// every returns all messages of the catalogue by name, read from its source.
func every(t *testing.T) map[string]messages.Message {
	t.Helper()
	out := map[string]messages.Message{}
	file, err := parser.ParseFile(token.NewFileSet(), "texts.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		var texts []string
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			text, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		out[spec.Names[0].Name] = messages.Message{En: texts[0], Zh: texts[1]}
		return true
	})
	for name, m := range messages.Help {
		out["help "+name] = m
	}
	for name, m := range messages.Causes {
		out["cause "+name] = m
	}
	return out
}

var verb = regexp.MustCompile(`%(\[(\d)\])?[-+ 0-9]*([a-z])`)

// arguments lists the verbs of a format in the order of the arguments.
func arguments(format string) string {
	var out []string
	for i, m := range verb.FindAllStringSubmatch(format, -1) {
		n := strconv.Itoa(i + 1)
		if m[2] != "" {
			n = m[2]
		}
		out = append(out, n+m[3])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestBothLanguagesAreComplete(t *testing.T) {
	all := every(t)
	if len(all) < 80 {
		t.Fatalf("only %d messages were found", len(all))
	}
	alike := map[string]bool{"ToolRunning": true, "WhoAssistant": true, "DoctorSessionBad": true, "ChangedOutsideAt": true}
	for name, m := range all {
		if m.En == "" || m.Zh == "" {
			t.Errorf("%s lacks a language: %q", name, m)
		}
		if en, zh := arguments(m.En), arguments(m.Zh); en != zh {
			t.Errorf("%s takes %s in English and %s in Chinese", name, en, zh)
		}
		if !alike[name] && !strings.ContainsFunc(m.Zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s is not Chinese: %q", name, m.Zh)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want messages.Language
	}{
		{nil, messages.English},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, messages.Chinese},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, messages.English},
		{map[string]string{"LANG": "de_DE", "REPA_LANG": "zh"}, messages.Chinese},
		{map[string]string{"REPA_LANG": "en", "LC_MESSAGES": "zh_CN"}, messages.English},
	} {
		if got := messages.Choose(func(k string) string { return tc.env[k] }); got != tc.want {
			t.Errorf("%v: %v", tc.env, got)
		}
	}
}

func ExampleLanguage_Text() {
	fmt.Println(messages.Chinese.Text(messages.ChatNew, "s1"))
	fmt.Println(messages.English.Text(messages.ChatNew, "s1"))
	// Output:
	// 新会话 s1。
	// New session s1.
}
