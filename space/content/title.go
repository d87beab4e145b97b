package content

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"strings"
	"sync"
	"time"
)

const (
	// titleBytes is how far into a file its title is looked for.
	titleBytes = 4 << 10
	// maxTitles bounds the titles that are remembered: about 10 MiB.
	maxTitles = 100_000
)

// titles remembers the titles of Markdown files as long as their size and time stay.
type titles struct {
	mu    sync.Mutex
	known map[string]title
}

type title struct {
	size  int64
	mtime time.Time
	text  string
}

// of is the first heading of a Markdown file, "" when it has none or cannot be read.
func (t *titles) of(e *Engine, name string) string {
	if ext := strings.ToLower(path.Ext(name)); ext != ".md" && ext != ".markdown" {
		return ""
	}
	info, err := e.root.Lstat(name)
	if err != nil {
		return ""
	}
	t.mu.Lock()
	was, ok := t.known[name]
	t.mu.Unlock()
	if ok && was.size == info.Size() && was.mtime.Equal(info.ModTime()) {
		return was.text
	}
	f, err := e.root.OpenFile(name, 0, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, titleBytes))
	if err != nil {
		return ""
	}
	now := title{info.Size(), info.ModTime(), headingOf(head)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxTitles {
		t.known = map[string]title{}
	}
	t.known[name] = now
	return now.text
}

// headingOf finds the first heading, or the title of the front matter.
func headingOf(text []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, utf8Mark)))
	lines.Buffer(nil, titleBytes)
	front, fence := false, false
	for n := 0; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t\r")
		switch {
		case n == 0 && line == "---":
			front = true
		case front && line == "---":
			front = false
		case front:
			if rest, ok := strings.CutPrefix(line, "title:"); ok {
				if rest = strings.Trim(strings.TrimSpace(rest), `"'`); rest != "" {
					return rest
				}
			}
		case strings.HasPrefix(line, "```"), strings.HasPrefix(line, "~~~"):
			fence = !fence
		case !fence && strings.HasPrefix(line, "#"):
			if rest := strings.TrimLeft(line, "#"); len(line)-len(rest) <= 6 && strings.HasPrefix(rest, " ") {
				return strings.TrimSpace(strings.TrimRight(strings.TrimSpace(rest), "#"))
			}
		}
	}
	return ""
}
