package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
)

// Forms of output.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputStream = "stream-json"
)

// usage is what a run used of its model. Cost is in US dollars, null when the price is not known.
type usage struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	CacheRead  float64  `json:"cacheRead"`
	CacheWrite float64  `json:"cacheWrite"`
	Cost       *float64 `json:"cost"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

const statusFailed = "failed"

// runResult is the one object of --output json. Ids are null when the run did not get so far.
type runResult struct {
	Type      string       `json:"type,omitempty"` // "result" in stream-json
	SessionID *protocol.ID `json:"sessionId"`
	RequestID *protocol.ID `json:"requestId"`
	RunID     *protocol.ID `json:"runId"`
	Status    string       `json:"status"`
	Text      string       `json:"text"`
	Usage     usage        `json:"usage"`
	Changes   []change     `json:"changes"`
	Error     *failure     `json:"error,omitempty"`
}

func printJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // our own types always encode; a closed output ends the process with SIGPIPE
}

// printWire prints a value of the protocol, whose unions only its own encoder knows.
func printWire(w io.Writer, v any) error {
	raw, err := protocol.Encode(v)
	if err != nil {
		return err
	}
	printJSON(w, json.RawMessage(raw))
	return nil
}

// colours reports whether what is written there may be coloured.
func (t *terminal) colours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && t.getenv("NO_COLOR") == ""
}

// table prints rows in columns. The last one has no end.
func (t *terminal) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, row := range rows {
		last := len(row) - 1
		for i, cell := range row[:last] {
			fmt.Fprint(t.out, pad(cell, widths[i]), "  ")
		}
		fmt.Fprintln(t.out, row[last])
	}
}

// columns is how many columns of a terminal a text takes; a Chinese character takes two.
func columns(text string) (n int) {
	for _, r := range text {
		n++
		if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
			n++
		}
	}
	return n
}

// pad fills a text up to so many columns.
func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-columns(text)))
}

// failureOf gives an error its code.
func failureOf(err error) *failure {
	f := &failure{Code: string(protocol.CodeRuntime), Message: err.Error()}
	if c, ok := err.(interface{ Code() string }); ok && c.Code() != "" {
		f.Code = c.Code()
	}
	if e, ok := err.(*exit); ok && e.code == exitUsage {
		f.Code = codeUsage
	}
	return f
}

// textWatcher prints the answer as it comes, and on the side what is done for it.
type textWatcher struct {
	t     *terminal
	dim   bool
	last  string // message whose text was printed last
	empty bool   // nothing was printed yet
	open  bool   // the last printed line has no end
}

func newTextWatcher(t *terminal) *textWatcher {
	return &textWatcher{t: t, empty: true, dim: t.colours(t.err)}
}

func (w *textWatcher) text(id, text string) {
	if id != w.last && !w.empty {
		w.endLine()
		fmt.Fprintln(w.t.out)
	}
	w.last, w.empty = id, false
	fmt.Fprint(w.t.out, text)
	w.open = !strings.HasSuffix(text, "\n")
}

// begin starts a new answer.
func (w *textWatcher) begin() { w.last, w.empty = "", true }

// endLine ends the line of the answer before something else is printed.
func (w *textWatcher) endLine() {
	if w.open {
		fmt.Fprintln(w.t.out)
		w.open = false
	}
}

func (w *textWatcher) aside(text string) {
	w.endLine()
	if w.dim {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	fmt.Fprintln(w.t.err, text)
}

func (w *textWatcher) thinking(string, string) {}

func (w *textWatcher) tool(e toolEvent) {
	if e.Status == string(protocol.ToolRunning) {
		w.aside(w.t.text(messages.ToolRunning, e.Name, brief(e.Arguments)))
	}
}

func (w *textWatcher) changed(c change) {
	if c.Before == nil {
		w.aside(w.t.text(messages.Created, c.Path))
	} else {
		w.aside(w.t.text(messages.Changed, c.Path))
	}
}

func (w *textWatcher) run(protocol.Run) {}

func (w *textWatcher) notice(n protocol.Notice) { w.aside(n.Message) }

// brief shows the arguments of a tool call in a line.
func brief(arguments json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(arguments, &fields) != nil {
		return ""
	}
	for _, name := range []string{"query", "path"} {
		if v, ok := fields[name].(string); ok {
			if r := []rune(v); len(r) > 80 {
				v = string(r[:79]) + "…"
			}
			return strings.ReplaceAll(v, "\n", " ")
		}
	}
	return ""
}

// quietWatcher shows nothing: the result says it all.
type quietWatcher struct{}

func (quietWatcher) text(string, string)     {}
func (quietWatcher) thinking(string, string) {}
func (quietWatcher) tool(toolEvent)          {}
func (quietWatcher) changed(change)          {}
func (quietWatcher) run(protocol.Run)        {}
func (quietWatcher) notice(protocol.Notice)  {}

// streamWatcher prints one JSON object a line.
type streamWatcher struct{ out io.Writer }

type textLine struct {
	Type      string `json:"type"`
	MessageID string `json:"messageId"`
	Text      string `json:"text"`
}

func (w streamWatcher) text(id, text string)     { printJSON(w.out, textLine{"delta", id, text}) }
func (w streamWatcher) thinking(id, text string) { printJSON(w.out, textLine{"thinking", id, text}) }

func (w streamWatcher) tool(e toolEvent) {
	printJSON(w.out, struct {
		Type string `json:"type"`
		toolEvent
	}{"tool", e})
}

func (w streamWatcher) changed(change) {}

func (w streamWatcher) run(r protocol.Run) {
	printJSON(w.out, struct {
		Type   string             `json:"type"`
		RunID  protocol.ID        `json:"runId"`
		Status protocol.RunStatus `json:"status"`
		Phase  protocol.RunPhase  `json:"phase"`
	}{"run", r.ID, r.Status, r.Phase})
}

func (w streamWatcher) notice(n protocol.Notice) {
	printJSON(w.out, struct {
		Type string `json:"type"`
		protocol.Notice
	}{"notice", n})
}
