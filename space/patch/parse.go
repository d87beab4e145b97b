package patch

import (
	"fmt"
	"strings"

	"github.com/repa-app/repa/space/text"
)

// Kind is what an action does.
type Kind string

// Kinds of actions.
const (
	Add    Kind = "add"
	Delete Kind = "delete"
	Update Kind = "update"
)

// Patch is a parsed patch.
type Patch struct{ Actions []Action }

// Action changes one file.
type Action struct {
	Kind   Kind
	Path   string
	MoveTo string // Update: where the file goes; "": it stays
	Text   string // Add: the file's text, each line with a line feed
	Hunks  []Hunk // Update
}

// Hunk changes neighbouring lines.
type Hunk struct {
	Anchors   []string // lines before it, the outermost first
	Lines     []HunkLine
	EndOfFile bool // its last line is the file's
}

// HunkLine is one line of a hunk, without its end. Op is ' ' (stays), '-' (goes) or '+' (comes).
type HunkLine struct {
	Op   byte
	Text string
}

// Error says where a patch cannot be read. Its code is invalid_patch.
type Error struct {
	Line    int // of the patch, from 1
	message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d of the patch: %s", e.Line, e.message) }

// Code returns invalid_patch.
func (e *Error) Code() string { return "invalid_patch" }

const (
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	addFile   = "*** Add File:"
	delFile   = "*** Delete File:"
	updFile   = "*** Update File:"
	moveTo    = "*** Move to:"
	endOfFile = "*** End of File"
)

// parser reads the lines of a patch.
type parser struct {
	lines []string
	at    int
}

// Parse reads a patch. Errors: *Error.
func Parse(s string) (Patch, error) {
	p := &parser{}
	for _, l := range text.SplitLines(s) {
		p.lines = append(p.lines, l.Text)
	}
	p.unwrap()
	if !p.marker(begin) {
		return Patch{}, p.fail("want %q", begin)
	}
	p.at++
	var out Patch
	subjects := map[string]bool{}
	for {
		p.skipBlank()
		switch {
		case p.at >= len(p.lines):
			return Patch{}, p.fail("want %q: the patch has no end", end)
		case p.marker(end):
			p.at++
			if p.skipBlank(); p.at < len(p.lines) {
				return Patch{}, p.fail("there is text behind %q", end)
			}
			return out, nil
		}
		a, err := p.action()
		if err != nil {
			return Patch{}, err
		}
		if subjects[a.Path] {
			return Patch{}, p.fail("%s is named by two actions; join them into one", a.Path)
		}
		subjects[a.Path] = true
		out.Actions = append(out.Actions, a)
	}
}

// unwrap passes over what models put around a patch.
func (p *parser) unwrap() {
	p.skipBlank()
	first, last := p.at, len(p.lines)
	for last > first && strings.TrimSpace(p.lines[last-1]) == "" {
		last--
	}
	if first < last && !strings.HasPrefix(p.lines[first], "***") {
		open := strings.TrimSpace(p.lines[first])
		_, tag, heredoc := strings.Cut(open, "<<")
		tag = strings.Trim(strings.TrimSpace(tag), `'"`)
		closing := strings.TrimSpace(p.lines[last-1])
		if strings.HasPrefix(open, "```") && closing == "```" || heredoc && tag != "" && closing == tag {
			first, last = first+1, last-1
		}
	}
	p.at, p.lines = first, p.lines[:last]
}

func (p *parser) fail(format string, args ...any) *Error {
	return &Error{p.at + 1, fmt.Sprintf(format, args...)}
}

func (p *parser) skipBlank() {
	for p.at < len(p.lines) && strings.TrimSpace(p.lines[p.at]) == "" {
		p.at++
	}
}

// marker reports whether the present line is a marker.
func (p *parser) marker(m string) bool {
	return p.at < len(p.lines) && strings.TrimRight(p.lines[p.at], " \t") == m
}

// named takes a marker with a path.
func (p *parser) named(m string) (string, bool) {
	if p.at >= len(p.lines) {
		return "", false
	}
	rest, ok := strings.CutPrefix(p.lines[p.at], m)
	return strings.TrimSpace(rest), ok
}

func (p *parser) action() (Action, error) {
	for _, m := range []struct {
		marker string
		kind   Kind
	}{{addFile, Add}, {delFile, Delete}, {updFile, Update}} {
		name, ok := p.named(m.marker)
		if !ok {
			continue
		}
		if name == "" {
			return Action{}, p.fail("want a path behind %q", m.marker)
		}
		p.at++
		a := Action{Kind: m.kind, Path: name}
		switch m.kind {
		case Add:
			return a, p.added(&a)
		case Update:
			return a, p.updated(&a)
		}
		return a, nil
	}
	return Action{}, p.fail("want %q, %q, %q or %q, got %q", addFile, delFile, updFile, end, p.lines[p.at])
}

// added takes the lines of a new file.
func (p *parser) added(a *Action) error {
	var out strings.Builder
	for ; p.at < len(p.lines) && !strings.HasPrefix(p.lines[p.at], "***"); p.at++ {
		line, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			if p.at++; strings.TrimSpace(p.lines[p.at-1]) == "" && p.onlyBlank() {
				break
			}
			p.at--
			return p.fail("each line of a new file begins with \"+\"")
		}
		out.WriteString(line + "\n")
	}
	a.Text = out.String()
	return nil
}

// onlyBlank reports whether nothing but blank lines stands before the next marker.
func (p *parser) onlyBlank() bool {
	for i := p.at; i < len(p.lines); i++ {
		if strings.HasPrefix(p.lines[i], "***") {
			return true
		}
		if strings.TrimSpace(p.lines[i]) != "" {
			return false
		}
	}
	return true
}

// updated takes the hunks of an update.
func (p *parser) updated(a *Action) error {
	if to, ok := p.named(moveTo); ok {
		if to == "" {
			return p.fail("want a path behind %q", moveTo)
		}
		a.MoveTo = to
		p.at++
	}
	for p.at < len(p.lines) {
		if strings.HasPrefix(p.lines[p.at], "***") && !p.marker(endOfFile) || p.onlyBlank() {
			break
		}
		h, err := p.hunk()
		if err != nil {
			return err
		}
		a.Hunks = append(a.Hunks, h)
	}
	if len(a.Hunks) == 0 && a.MoveTo == "" {
		return p.fail("the update of %s has no hunk", a.Path)
	}
	return nil
}

func (p *parser) hunk() (h Hunk, err error) {
	for p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@") {
		rest := p.lines[p.at][2:]
		if rest = strings.TrimPrefix(rest, " "); strings.TrimSpace(rest) != "" {
			h.Anchors = append(h.Anchors, rest)
		}
		p.at++
	}
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if p.marker(endOfFile) {
			h.EndOfFile = true
			p.at++
			break
		}
		if strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "***") {
			break
		}
		switch {
		case line == "" && p.onlyBlank() && p.at+1 < len(p.lines):
			// blank lines before the next action belong to nobody
		case line == "":
			h.Lines = append(h.Lines, HunkLine{' ', ""})
		case line[0] == ' ' || line[0] == '-' || line[0] == '+':
			h.Lines = append(h.Lines, HunkLine{line[0], line[1:]})
		default:
			return h, p.fail("want a line that begins with \" \", \"-\" or \"+\", got %q", line)
		}
	}
	if len(h.Lines) == 0 {
		return h, p.fail("the hunk has no lines")
	}
	return h, nil
}

// String writes the patch in its grammar.
func (p Patch) String() string {
	var out strings.Builder
	line := func(parts ...string) { out.WriteString(strings.Join(parts, "") + "\n") }
	line(begin)
	for _, a := range p.Actions {
		switch a.Kind {
		case Add:
			line(addFile, " ", a.Path)
			for _, l := range text.SplitLines(a.Text) {
				line("+", l.Text)
			}
		case Delete:
			line(delFile, " ", a.Path)
		case Update:
			line(updFile, " ", a.Path)
			if a.MoveTo != "" {
				line(moveTo, " ", a.MoveTo)
			}
			for _, h := range a.Hunks {
				if len(h.Anchors) == 0 {
					line("@@")
				}
				for _, anchor := range h.Anchors {
					line("@@ ", anchor)
				}
				for _, l := range h.Lines {
					line(string(rune(l.Op)), l.Text)
				}
				if h.EndOfFile {
					line(endOfFile)
				}
			}
		}
	}
	line(end)
	return out.String()
}
