package prompt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/prompt"
)

func text(s string) *string { return &s }

func TestAssemble(t *testing.T) {
	environment := &prompt.Environment{Space: "/home/learner/space", Date: "2026-12-01"}
	said := "The space is the folder /home/learner/space. Paths in tools and citations are relative to it.\nToday is 2026-12-01."
	tools := []llm.ToolSpec{{Name: "read", Description: "reads", Parameters: json.RawMessage(`{"type":"object"}`)}}
	for name, c := range map[string]struct {
		sections prompt.Sections
		system   string
		enabled  string
	}{
		"default":            {prompt.Sections{}, prompt.Base, "base"},
		"empty base":         {prompt.Sections{Base: text("")}, "", ""},
		"blank base":         {prompt.Sections{Base: text(" \n")}, "", ""},
		"own base":           {prompt.Sections{Base: text("Be short.\n")}, "Be short.", "base"},
		"appended":           {prompt.Sections{Base: text("A"), Append: []string{"B", "", " \n", "C\n"}}, "A\n\nB\n\nC", "base append"},
		"environment":        {prompt.Sections{Base: text("A"), Append: []string{"B"}, Environment: environment}, "A\n\nB\n\n" + said, "base append environment"},
		"only environment":   {prompt.Sections{Base: text(""), Environment: environment}, said, "environment"},
		"without a date":     {prompt.Sections{Base: text(""), Environment: &prompt.Environment{Space: "/s"}}, "The space is the folder /s. Paths in tools and citations are relative to it.", "environment"},
		"tools are recorded": {prompt.Sections{Base: text("A"), Tools: tools}, "A", "base toolDefinitions"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := prompt.Assemble(c.sections)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.system, got.System); diff != "" {
				t.Error(diff)
			}
			var enabled, all []string
			for _, s := range got.Sources {
				all = append(all, s.ID)
				if s.Enabled {
					enabled = append(enabled, s.ID)
				}
				if s.Enabled && s.ID != prompt.SourceToolDefinitions && !strings.Contains(got.System, strings.TrimSpace(s.Content)) {
					t.Errorf("source %s is not in the prompt", s.ID)
				}
			}
			if strings.Join(enabled, " ") != c.enabled {
				t.Errorf("enabled %v, want %s", enabled, c.enabled)
			}
			if strings.Join(all, " ") != "base append environment toolDefinitions" {
				t.Errorf("sources %v", all)
			}
			again, err := prompt.Assemble(c.sections)
			if err != nil || !cmp.Equal(got, again) {
				t.Errorf("a second assembly differs: %v", err)
			}
		})
	}
}

func TestToolsAreRecordedWhole(t *testing.T) {
	spec := llm.ToolSpec{Name: "x", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
	got, err := prompt.Assemble(prompt.Sections{Tools: []llm.ToolSpec{spec}})
	if err != nil {
		t.Fatal(err)
	}
	var back []llm.ToolSpec
	if err := json.Unmarshal([]byte(got.Sources[3].Content), &back); err != nil || !cmp.Equal(back, []llm.ToolSpec{spec}) {
		t.Errorf("%v, %v", back, err)
	}
	if _, err := prompt.Assemble(prompt.Sections{Tools: []llm.ToolSpec{{Parameters: json.RawMessage(`{`)}}}); err == nil {
		t.Error("accepted parameters that are no JSON")
	}
}

// The base states each convention that the product promises.
func TestBaseConventions(t *testing.T) {
	for _, words := range []string{"path:line", "Keep apart who did what", "ask", "Chinese", "English", "saved only after a tool reported"} {
		if !strings.Contains(prompt.Base, words) {
			t.Errorf("the base does not mention %q", words)
		}
	}
	if n := len(strings.Fields(prompt.Base)); n > 400 {
		t.Errorf("the base has %d words: it is paid for in every request", n)
	}
}

func ExampleAssemble() {
	base := "Help with chemistry."
	p, _ := prompt.Assemble(prompt.Sections{Base: &base, Environment: &prompt.Environment{Space: "/home/ada/chemistry", Date: "1 December 2026"}})
	fmt.Println(p.System)
	// Output:
	// Help with chemistry.
	//
	// The space is the folder /home/ada/chemistry. Paths in tools and citations are relative to it.
	// Today is 1 December 2026.
}
