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
	maxMatches     = 100 // as many as fit one result of maxBytes at maxMatchText each, when the characters are bytes
	maxMatchText   = 500 // characters, as in Pi's grep: the place is what counts, the file can be read
	// maxKeptMatches bounds what is kept of a search that found more than it shows: words that occur more often tell nothing.
	maxKeptMatches = 10_000
)

type searchTool struct {
	searcher Searcher
	keeper   Keeper
}

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
	ask := limit
	if s.keeper != nil {
		ask = maxKeptMatches
	}
	all, truncated, err := s.searcher.Search(ctx, args.Query, ask)
	if err != nil {
		return failed(ctx, err)
	}
	matches := all
	if len(all) > limit {
		matches, truncated = all[:limit], true
	}
	if len(matches) == 0 {
		return Text(fmt.Sprintf("No matches for %q in the space.", args.Query)), nil
	}
	lines, size := make([]string, 0, len(matches)+1), 0
	for i, m := range matches {
		line := fmt.Sprintf("%s:%d: %s", m.Path, m.Line, shorten(m.Text, maxMatchText))
		if size += len(line) + 1; size > maxBytes {
			matches, truncated = matches[:i], true
			break
		}
		lines = append(lines, line)
	}
	members := map[string]any{"matches": len(matches), "truncated": truncated}
	if truncated {
		kept, err := keep(ctx, s.keeper, listing(all), members)
		if err != nil {
			return Result{}, err
		}
		lines = append(lines, fmt.Sprintf("[The first %d matches are shown; there are more. Search for more precise words.%s]", len(matches), kept))
	}
	result := Text(strings.Join(lines, "\n"))
	result.Details, result.bounded = details(members), true
	return result, nil
}

// listing is matches as they are kept: lines in full, as many as maxKept has room for.
func listing(matches []Match) string {
	var b strings.Builder
	for _, m := range matches {
		line := fmt.Sprintf("%s:%d: %s\n", m.Path, m.Line, m.Text)
		if b.Len()+len(line) > maxKept {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// shorten makes one line of at most limit characters.
func shorten(text string, limit int) string {
	text = strings.TrimSpace(strings.NewReplacer("\r", " ", "\n", " ").Replace(text))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "…"
}
