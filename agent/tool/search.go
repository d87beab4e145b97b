package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/repa-app/repa/agent/llm"
)

const (
	defaultMatches = 20  // a screen: enough to choose what to read
	maxMatches     = 100 // as many as fit one result of maxBytes at maxMatchText each
	maxMatchText   = 500 // characters, as in Pi's grep: the place is what counts, the file can be read
)

type searchTool struct{ searcher Searcher }

func (*searchTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: "search",
		Description: `Search the text files of the space. Answers with lines of the form path:line: text, best first; cite them as path:line. ` +
			`Read the file around a line before you rely on it.`,
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","minLength":1,"description":"Words to look for"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":100,"description":"Number of lines, 20 when left out"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
}

func (*searchTool) Sequential() bool { return false }

func (s *searchTool) Execute(ctx context.Context, _ string, raw json.RawMessage) (Result, error) {
	var args struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return Result{}, err
	}
	limit := defaultMatches
	if args.Limit > 0 {
		limit = min(args.Limit, maxMatches)
	}
	matches, truncated, err := s.searcher.Search(ctx, args.Query, limit)
	if err != nil {
		return failed(ctx, err)
	}
	if len(matches) > limit {
		matches, truncated = matches[:limit], true
	}
	if len(matches) == 0 {
		return Text(fmt.Sprintf("No matches for %q in the space.", args.Query)), nil
	}
	lines := make([]string, 0, len(matches)+1)
	for _, m := range matches {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", m.Path, m.Line, shorten(m.Text, maxMatchText)))
	}
	if truncated {
		lines = append(lines, fmt.Sprintf("[The first %d matches are shown; there are more. Search for more precise words.]", len(matches)))
	}
	result := Text(strings.Join(lines, "\n"))
	result.Details = details(map[string]any{"matches": len(matches), "truncated": truncated})
	return result, nil
}

// shorten makes one line of at most limit characters.
func shorten(text string, limit int) string {
	text = strings.TrimSpace(strings.NewReplacer("\r", " ", "\n", " ").Replace(text))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}
