package offline

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

const (
	searchTool = "search"
	readTool   = "read"
	idPrefix   = "offline-"

	maxFiles   = 3   // that are read: as many as passages are quoted
	maxHits    = 40  // lines asked of a search: five files of the eight lines that one file may offer
	readBefore = 60  // lines before the best hit: reaches the heading and often the whole note
	readLines  = 160 // lines of one read: a note, or a section of a long text, far below what one read shows
)

// result is what a tool said to one call.
type result struct {
	name   string
	path   string // what read was asked for
	text   string
	failed bool
}

// next is the whole model: it returns the blocks of the next message.
func next(req *llm.Request) []llm.Block {
	q, open := asked(req.Messages)
	offered := func(name string) bool {
		return slices.ContainsFunc(req.Tools, func(t llm.ToolSpec) bool { return t.Name == name })
	}
	searches, reads := results(open)
	id := lastID(req.Messages)
	switch {
	case !strings.ContainsFunc(q.query, func(r rune) bool { return isCJK(r) || isWord(r) }) && !q.quiz:
		return say(q, noWords(q))
	case !offered(searchTool):
		return say(q, noSearch(q))
	case len(searches) == 0:
		return searchCalls(q, id)
	}
	hits := parseHits(searches)
	if len(hits) > 0 && len(reads) == 0 && offered(readTool) {
		return readCalls(hits, id)
	}
	return say(q, answer(q, hits, searches, reads))
}

// searchCalls looks for the question's words. Practice without a topic takes whatever there is: lines with the most common word
// of either language.
func searchCalls(q question, id int) []llm.Block {
	queries := []string{q.query}
	if q.query == "" {
		queries = []string{"the", "的"}
		if q.chinese {
			slices.Reverse(queries)
		}
	}
	var calls []llm.Block
	for i, query := range queries {
		calls = append(calls, call(id+1+i, searchTool, map[string]any{"query": query, "limit": maxHits}))
	}
	return calls
}

// readCalls reads around the best hit of each of the best files.
func readCalls(hits []hit, id int) []llm.Block {
	var calls []llm.Block
	seen := map[string]bool{}
	for _, h := range hits {
		if seen[h.path] {
			continue
		}
		seen[h.path] = true
		calls = append(calls, call(id+1+len(calls), readTool, map[string]any{
			"path": h.path, "offset": max(1, h.line-readBefore), "limit": readLines,
		}))
		if len(calls) == maxFiles {
			break
		}
	}
	return calls
}

func call(n int, name string, args map[string]any) llm.Block {
	data, err := json.Marshal(args) // sorts the names
	if err != nil {
		panic("offline: encode arguments: " + err.Error())
	}
	return llm.Block{Type: llm.BlockToolCall, ID: idPrefix + strconv.Itoa(n), Name: name, Arguments: data}
}

// lastID is the highest number of an own call in the request, so that ids stay unique in a history.
func lastID(messages []llm.Message) (last int) {
	for i := range messages {
		for _, b := range messages[i].ToolCalls() {
			if digits, own := strings.CutPrefix(b.ID, idPrefix); own {
				if n, err := strconv.Atoi(digits); err == nil && n < 1<<30 {
					last = max(last, n)
				}
			}
		}
	}
	return last
}

// results sorts what the tools said since the question.
func results(open []llm.Message) (searches, reads []result) {
	paths := map[string]string{}
	for i := range open {
		m := &open[i]
		for _, b := range m.ToolCalls() {
			var args struct{ Path string }
			if json.Unmarshal(b.Arguments, &args) == nil {
				paths[b.ID] = args.Path
			}
		}
		if m.Role != llm.RoleToolResult {
			continue
		}
		r := result{name: m.ToolName, path: paths[m.ToolCallID], text: valid(m), failed: m.Failed()}
		switch r.name {
		case searchTool:
			searches = append(searches, r)
		case readTool:
			reads = append(reads, r)
		}
	}
	return searches, reads
}

// hit is one line that search reported.
type hit struct {
	path string
	line int
	text string
}

// parseHits reads lines of the form "path:line: text". The first number between colons is the line, so a path with such a number
// in it is not understood; reading it then tells that it does not exist.
func parseHits(searches []result) (hits []hit) {
	for _, s := range searches {
		if s.failed || strings.HasPrefix(s.text, `No matches for "`) && strings.HasSuffix(s.text, `" in the space.`) {
			continue
		}
		for l := range strings.SplitSeq(s.text, "\n") {
			if h, ok := parseHit(l); ok {
				hits = append(hits, h)
			}
		}
	}
	return hits
}

func parseHit(l string) (hit, bool) {
	for at := 0; ; {
		colon := strings.IndexByte(l[at:], ':')
		if colon < 0 {
			return hit{}, false
		}
		at += colon + 1
		digits, text, ok := strings.Cut(l[at:], ":")
		if !ok {
			return hit{}, false
		}
		n, err := strconv.Atoi(digits)
		if path := l[:at-1]; err == nil && n > 0 && strconv.Itoa(n) == digits && path != "" && (text == "" || text[0] == ' ') {
			return hit{path, n, strings.TrimPrefix(text, " ")}, true
		}
	}
}

// page is a part of a file as read showed it.
type page struct {
	path  string
	first int // number of the first line
	lines []string
}

// parsePage reads numbered lines; the last line of a result names the path. ok is false when the result shows no line.
func parsePage(r result) (p page, ok bool) {
	p.path = r.path
	for l := range strings.SplitSeq(r.text, "\n") {
		number, text, cut := strings.Cut(l, "\t")
		number = strings.TrimLeft(number, " ")
		n, err := strconv.Atoi(number)
		switch {
		case !cut || err != nil || n < 1 || strconv.Itoa(n) != number:
			var named struct{ Path string }
			if strings.HasPrefix(l, `{"path":`) && json.Unmarshal([]byte(l), &named) == nil && named.Path != "" {
				p.path = named.Path
			}
		case len(p.lines) == 0:
			p.first, p.lines = n, []string{text}
		case n == p.first+len(p.lines):
			p.lines = append(p.lines, text)
		}
	}
	return p, !r.failed && len(p.lines) > 0 && p.path != ""
}
