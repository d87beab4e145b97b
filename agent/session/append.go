package session

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

// Draft is an entry to be appended. The store gives it id, parent and timestamp.
type Draft struct {
	Type      string
	Fields    any    // marshals to a JSON object with the members of that type
	RequestID string // "": none
}

// NewMessage is a message entry.
func NewMessage(m llm.Message, requestID string) Draft {
	return Draft{TypeMessage, struct {
		Message llm.Message `json:"message"`
	}{m}, requestID}
}

// NewModelChange records the model that answers from now on.
func NewModelChange(provider, model string) Draft {
	return Draft{TypeModelChange, struct {
		Provider string `json:"provider"`
		ModelID  string `json:"modelId"`
	}{provider, model}, ""}
}

// NewThinkingLevel records the thinking level that counts from now on.
func NewThinkingLevel(level string) Draft {
	return Draft{TypeThinkingLevel, struct {
		Level string `json:"thinkingLevel"`
	}{level}, ""}
}

// NewSessionInfo names the session; "" takes its name away. Line breaks become spaces.
func NewSessionInfo(name string) Draft {
	return Draft{TypeSessionInfo, struct {
		Name string `json:"name"`
	}{strings.TrimSpace(lineBreaks.Replace(name))}, ""}
}

// NewCustomMessage is a message of the program itself, which a model gets as a user message. Display tells whether people see
// it; details may be nil.
func NewCustomMessage(customType string, content []llm.Block, display bool, details json.RawMessage, requestID string) Draft {
	return Draft{TypeCustomMessage, struct {
		CustomType string          `json:"customType"`
		Content    []llm.Block     `json:"content"`
		Display    bool            `json:"display"`
		Details    json.RawMessage `json:"details,omitempty"`
	}{customType, content, display, details}, requestID}
}

// Append adds entries behind the leaf, each the parent of the next, and returns their ids once they are durable: one write and
// one sync for all. It fails without any effect in memory. ErrBroken: an earlier append did not reach the disk; ErrClosed. A draft that
// cannot be written fails before the disk is touched. After a disk error the bytes of this append are cut off again if the disk
// allows; otherwise some of them may be read as entries when the file is opened next.
func (s *Store) Append(drafts ...Draft) ([]string, error) {
	if s.refuse != nil {
		return nil, fmt.Errorf("append to session %s: %w", s.header.ID, s.refuse)
	}
	if len(drafts) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	if s.open {
		b.WriteByte('\n')
	}
	entries, err := s.encode(&b, drafts)
	if err != nil {
		return nil, fmt.Errorf("append to session %s: %w", s.header.ID, err)
	}
	if n, err := s.file.WriteAt(b.Bytes(), s.size); err != nil {
		return nil, s.failed(n > 0, err)
	}
	if err := s.file.Sync(); err != nil {
		return nil, s.failed(true, err)
	}
	s.size += int64(b.Len())
	s.open = false
	ids := make([]string, len(entries))
	snapshot := s.Snapshot()
	for i, e := range entries {
		s.lines++
		e.Line = s.lines
		s.byID[e.ID] = e
		snapshot = snapshot.extend(e)
		ids[i] = e.ID
	}
	s.current.Store(snapshot)
	return ids, nil
}

// failed makes the error of an append that the disk refused.
func (s *Store) failed(touched bool, err error) error {
	if touched {
		s.refuse = ErrBroken
		err = errors.Join(err, s.file.Truncate(s.size))
	}
	return diskError(err, "append to session %s", s.header.ID)
}

// encode writes the lines of the drafts and reads them back as entries, so that an append and an open see the same.
func (s *Store) encode(b *bytes.Buffer, drafts []Draft) ([]*Entry, error) {
	now := s.src.Now().UTC().Format(isoTime)
	parent := s.Snapshot().Leaf
	entries := make([]*Entry, len(drafts))
	taken := make(map[string]bool, len(drafts))
	for i, d := range drafts {
		id := s.freeID(taken)
		taken[id] = true
		line, err := encodeLine(d, id, parent, now)
		if err != nil {
			return nil, err
		}
		e := &Entry{parent: parent}
		if reason := parseEntry(line, e); reason != "" {
			return nil, fmt.Errorf("encode %s entry: %s", d.Type, reason)
		}
		b.WriteString(line)
		b.WriteByte('\n')
		entries[i], parent = e, e
	}
	return entries, nil
}

// freeID is the first 8 hex digits of random bytes, checked against the file; after 100 collisions a whole UUID.
func (s *Store) freeID(taken map[string]bool) string {
	for range 100 {
		id := hex.EncodeToString(s.src.random(4))
		if s.byID[id] == nil && !taken[id] {
			return id
		}
	}
	b := s.src.random(16)
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return formatUUID(b)
}

type lineStart struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`
}

type lineEnd struct {
	Repa struct {
		RequestID string `json:"requestId"`
	} `json:"repa"`
}

func encodeLine(d Draft, id string, parent *Entry, now string) (string, error) {
	start := lineStart{Type: d.Type, ID: id, Timestamp: now}
	if parent != nil {
		start.ParentID = &parent.ID
	}
	parts := []any{start, d.Fields}
	if d.RequestID != "" {
		var end lineEnd
		end.Repa.RequestID = d.RequestID
		parts = append(parts, end)
	}
	return joinObjects(parts...)
}

// joinObjects marshals each part, an object or nil, into one object.
func joinObjects(parts ...any) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		data, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		inner, isObject := strings.CutPrefix(string(data), "{")
		switch {
		case string(data) == "null", inner == "}":
			continue
		case !isObject:
			return "", errors.New("the fields of an entry are not a JSON object")
		case b.Len() > 0:
			b.WriteByte(',')
		default:
			b.WriteByte('{')
		}
		b.WriteString(strings.TrimSuffix(inner, "}"))
	}
	b.WriteByte('}')
	return b.String(), nil
}

func encodeHeader(opts Options, now string) (string, error) {
	line, err := json.Marshal(struct {
		Type      string `json:"type"`
		Version   int    `json:"version"`
		ID        string `json:"id"`
		Timestamp string `json:"timestamp"`
		CWD       string `json:"cwd"`
		Parent    string `json:"parentSession,omitempty"`
	}{typeHeader, version, opts.ID, now, opts.CWD, opts.ParentSession})
	return string(line) + "\n", err
}
