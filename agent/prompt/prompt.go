package prompt

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

// The ids of the sources.
const (
	SourceBase            = "base"
	SourceAppend          = "append"
	SourceEnvironment     = "environment"
	SourceToolDefinitions = "toolDefinitions"
)

// Sections are the parts of a prompt. The zero value is the default base alone.
type Sections struct {
	Base        *string        // nil: the default Base; "": no base at all
	Append      []string       // further instructions, in order
	Environment *Environment   // nil: the model is not told where it works
	Tools       []llm.ToolSpec // sent beside the prompt, recorded as a source of it
}

// Environment tells the model where and when it works.
type Environment struct {
	Space string // path of the learner's folder
	Date  string // as the learner would write it; "" leaves it out
}

// Source is one section as it was used.
type Source struct {
	ID      string `json:"id"`
	Enabled bool   `json:"enabled"`
	Content string `json:"content,omitempty"`
}

// Assembled is a system prompt with what it was made from. System may be empty.
type Assembled struct {
	System  string   `json:"system"`
	Sources []Source `json:"sources"`
}

// Assemble joins the sections that say something by blank lines: base, each append, environment. It fails only when a tool's
// parameters are no JSON.
func Assemble(s Sections) (Assembled, error) {
	base := Base
	if s.Base != nil {
		base = *s.Base
	}
	environment := ""
	if s.Environment != nil {
		environment = s.Environment.text()
	}
	tools := ""
	if len(s.Tools) > 0 {
		data, err := json.Marshal(s.Tools)
		if err != nil {
			return Assembled{}, fmt.Errorf("describe tools: %w", err)
		}
		tools = string(data)
	}
	appended := join(s.Append...)
	return Assembled{
		System: join(base, appended, environment),
		Sources: []Source{
			{SourceBase, present(base), base},
			{SourceAppend, present(appended), appended},
			{SourceEnvironment, environment != "", environment},
			{SourceToolDefinitions, tools != "", tools},
		},
	}, nil
}

func (e *Environment) text() string {
	text := "The space is the folder " + e.Space + ". Paths in tools and citations are relative to it."
	if e.Date != "" {
		text += "\nToday is " + e.Date + "."
	}
	return text
}

func present(s string) bool { return strings.TrimSpace(s) != "" }

func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if present(p) {
			kept = append(kept, strings.TrimSpace(p))
		}
	}
	return strings.Join(kept, "\n\n")
}
