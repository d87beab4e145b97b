package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/cas/vfs"
)

const (
	// maxPeekLine bounds the memory of a listing. Longer lines hold an image or a very long text; the beginning tells enough.
	maxPeekLine = 1 << 20

	maxTitle = 120 // characters: one line in a list
)

// Info is what a listing shows of a session.
type Info struct {
	File      string // name in the folder
	ID        string
	Version   int // below 3: Open refuses the file
	CWD       string
	Title     string // the session's name, else the beginning of the first user text, else ""
	CreatedAt time.Time
	UpdatedAt time.Time // of the last user or assistant message, else CreatedAt
	Messages  int       // of users and assistants, on all branches
	Damage    int       // lines that are no entries
}

// List calls yield for each *.jsonl file of the folder, in the order of their names, until yield returns false. A file that is no
// session or cannot be read comes with its error and only its name. List itself fails when the folder cannot be read or ctx ends.
func List(ctx context.Context, fsys vfs.FS, yield func(Info, error) bool) error {
	files, err := fsys.ReadDir(".")
	if err != nil {
		return diskError(err, "list sessions")
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.IsDir() || path.Ext(f.Name()) != ".jsonl" {
			continue
		}
		if !yield(Peek(fsys, f.Name())) {
			return nil
		}
	}
	return nil
}

// Peek reads through a session file in constant memory. ErrNotSession when it is none. Files of all versions can be peeked at.
func Peek(fsys vfs.FS, name string) (Info, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return Info{File: name}, diskError(err, "peek at session %s", name)
	}
	defer f.Close()
	p := peeker{info: Info{File: name}}
	err = eachLine(f, p.line)
	if err == nil && !p.found {
		err = ErrNotSession
	}
	var refused *Error
	if errors.As(err, &refused) {
		return Info{File: name}, fmt.Errorf("peek at session %s: %w", name, err)
	}
	if err != nil {
		return Info{File: name}, diskError(err, "peek at session %s", name)
	}
	return p.result(), nil
}

// eachLine calls do with each line without its line feed; cut tells that only the first maxPeekLine bytes are given.
func eachLine(r io.Reader, do func(line string, cut bool) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if room := maxPeekLine + 1 - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		full := strings.TrimSuffix(string(line), "\n")
		line = line[:0]
		cut := len(full) > maxPeekLine
		if derr := do(full[:min(len(full), maxPeekLine)], cut); derr != nil {
			return derr
		}
		if err == io.EOF {
			return nil
		}
	}
}

type peeker struct {
	info    Info
	found   bool
	updated string // timestamp of the last message
	name    string
	first   string // beginning of the first user text
}

func (p *peeker) line(line string, cut bool) error {
	if strings.TrimSpace(line) == "" {
		return nil
	}
	if !p.found {
		h, err := parseHeader(line)
		switch {
		case err == nil:
			p.found = true
			p.info.ID, p.info.Version, p.info.CWD, p.info.CreatedAt = h.ID, h.Version, h.CWD, h.Created()
		case cut || isJSON(line):
			return err
		default:
			p.info.Damage++
		}
		return nil
	}
	if cut {
		p.entry(beginning(line), true)
		return nil
	}
	e := &Entry{}
	if reason := parseEntry(line, e); reason != "" && (p.info.Version >= version || reason != noID) {
		p.info.Damage++
		return nil
	}
	p.entry(e, false)
	return nil
}

func (p *peeker) entry(e *Entry, cut bool) {
	user := e.Role == string(llm.RoleUser)
	switch {
	case e.Type == TypeSessionInfo && !cut:
		p.name = nameOf(e)
	case e.Type == TypeMessage && (user || e.Role == string(llm.RoleAssistant)):
		p.info.Messages++
		if e.Timestamp != "" {
			p.updated = e.Timestamp
		}
		if !user || p.first != "" {
			return
		}
		if cut {
			p.first = title(e.body)
		} else if m, err := e.Message(); err == nil {
			p.first = title(m.Text())
		}
	}
}

func (p *peeker) result() Info {
	info := p.info
	if info.Title = p.name; info.Title == "" {
		info.Title = p.first
	}
	if info.UpdatedAt = parseTime(p.updated); info.UpdatedAt.IsZero() {
		info.UpdatedAt = info.CreatedAt
	}
	return info
}

// title makes one line of at most maxTitle characters.
func title(s string) string {
	if len(s) > 16*maxTitle { // enough for any text but one of mostly spaces, and cheap
		s = strings.ToValidUTF8(s[:16*maxTitle], "")
	}
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxTitle {
		s = string(runes[:maxTitle])
	}
	return s
}

// beginning reads what it can of an entry whose end is cut off: type, timestamp, role and, as body, the first text of the message.
func beginning(line string) *Entry {
	e := &Entry{}
	dec := json.NewDecoder(strings.NewReader(line))
	var path []string // member names down to the current value; "" for an array
	var stack []json.Delim
	key, wantKey := "", false
	for {
		token, err := dec.Token()
		if err != nil {
			return e
		}
		if d, ok := token.(json.Delim); ok {
			if d == '{' || d == '[' {
				stack, path = append(stack, d), append(path, key)
			} else {
				stack, path = stack[:len(stack)-1], path[:len(path)-1]
			}
			key, wantKey = "", len(stack) > 0 && stack[len(stack)-1] == '{'
			continue
		}
		if wantKey {
			key, _ = token.(string)
			wantKey = false
			continue
		}
		wantKey = len(stack) > 0 && stack[len(stack)-1] == '{'
		if s, ok := token.(string); ok {
			e.begin(strings.Join(append(path, key), "/"), s)
		}
	}
}

func (e *Entry) begin(path, value string) {
	switch path {
	case "/type":
		e.Type = value
	case "/timestamp":
		e.Timestamp = value
	case "/message/role":
		e.Role = value
	case "/message/content", "/message/content//text":
		if e.body == "" {
			e.body = value
		}
	}
}
