package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// The entry types of the format. Any other is kept, with no meaning for the context.
const (
	TypeMessage       = "message"
	TypeModelChange   = "model_change"
	TypeThinkingLevel = "thinking_level_change"
	TypeUsage         = "usage"
	TypeCompaction    = "compaction"
	TypeBranchSummary = "branch_summary"
	TypeCustom        = "custom"
	TypeCustomMessage = "custom_message"
	TypeContextEdit   = "context_edit"
	TypeLabel         = "label"
	TypeSessionInfo   = "session_info"

	typeHeader = "session"
)

// Entry is one entry of the tree. It never changes and is safe for concurrent use.
type Entry struct {
	ID        string
	ParentID  string // "": a root
	Type      string
	Timestamp string // ISO 8601 as in the file
	RequestID string // of our own member repa; "" when the entry has none
	Role      string // of a message entry
	Line      int    // in the file, from 1

	raw    string
	body   string // the raw message of a message entry
	parent *Entry
	// cut: of a write that power failure cut up, this line reached the disk and the line of its parent, or of one further up, did not.
	// Such an entry never becomes the leaf: what was acknowledged before it would be on no branch any more.
	cut bool

	once    sync.Once
	message *llm.Message // a pointer: most entries of a long session are never decoded
	err     error
}

// Raw is the entry's line as it stands in the file, without its line feed.
func (e *Entry) Raw() string { return e.raw }

// Parent is the entry that ParentID names; nil for a root and when the file has no such entry.
func (e *Entry) Parent() *Entry { return e.parent }

// Decode unmarshals the whole line into v.
func (e *Entry) Decode(v any) error {
	if err := json.Unmarshal([]byte(e.raw), v); err != nil {
		return fmt.Errorf("decode session entry %s: %w", e.ID, err)
	}
	return nil
}

// Time is the entry's timestamp; the zero time when it is not readable.
func (e *Entry) Time() time.Time { return parseTime(e.Timestamp) }

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Message decodes the message of a message entry, once. It fails for other types and for a message whose fields have the
// wrong types; then the message is empty. The caller must not change what the message refers to.
func (e *Entry) Message() (llm.Message, error) {
	e.once.Do(func() {
		m := &llm.Message{}
		switch err := json.Unmarshal([]byte(e.body), m); {
		case e.Type != TypeMessage:
			e.err = fmt.Errorf("session entry %s is a %s, not a message", e.ID, e.Type)
		case err != nil:
			e.err = fmt.Errorf("decode the message of session entry %s: %w", e.ID, err)
		default:
			e.message = m
		}
	})
	if e.err != nil {
		return llm.Message{}, e.err
	}
	return *e.message, nil
}

// noID is the reason that all entries of format version 1 give.
const noID = "an entry without an id"

// parseEntry reads one line. A reason tells why the line is no entry.
func parseEntry(line string, e *Entry) (reason string) {
	parentOK, repa := true, ""
	o := walk(line)
	for o.next() {
		switch o.key {
		case "type":
			e.Type, _ = text(o.value)
		case "id":
			e.ID, _ = text(o.value)
		case "parentId":
			e.ParentID, parentOK = text(o.value)
			parentOK = parentOK || o.value == "null"
		case "timestamp":
			e.Timestamp, _ = text(o.value)
		case "message":
			e.body = o.value
		case "repa":
			repa = o.value
		}
	}
	switch {
	case o.state != complete:
		return "not a JSON object"
	case e.Type == "":
		return "an entry without a type"
	case e.Type == typeHeader:
		return "a second session header"
	case !parentOK:
		return "an entry whose parentId is not text"
	}
	if e.Type == TypeMessage {
		if !strings.HasPrefix(e.body, "{") {
			return "a message entry without a message"
		}
		e.Role, _ = text(member(e.body, "role"))
	} else {
		e.body = ""
	}
	if strings.HasPrefix(repa, "{") {
		e.RequestID, _ = text(member(repa, "requestId"))
	}
	e.raw = line
	if e.ID == "" {
		return noID
	}
	return ""
}

// Header is the first line of a session file.
type Header struct {
	ID            string
	Version       int
	Timestamp     string // ISO 8601 as in the file
	CWD           string // where the session was made: provenance only
	ParentSession string // path of the file that this one was forked from
	Raw           string // the whole line
}

// Created is the time in the header; the zero time when it is not readable.
func (h Header) Created() time.Time { return parseTime(h.Timestamp) }

// parseHeader reads the first JSON value of a file.
func parseHeader(line string) (Header, error) {
	h := Header{Version: 1, Raw: line}
	kind, hasID := "", false
	o := walk(line)
	for o.next() {
		switch o.key {
		case "type":
			kind, _ = text(o.value)
		case "id":
			h.ID, hasID = text(o.value)
		case "version":
			var v float64
			if json.Unmarshal([]byte(o.value), &v) == nil {
				h.Version = int(v)
			}
		case "timestamp":
			h.Timestamp, _ = text(o.value)
		case "cwd":
			h.CWD, _ = text(o.value)
		case "parentSession":
			h.ParentSession, _ = text(o.value)
		}
	}
	if o.state != complete || kind != typeHeader || !hasID {
		return Header{}, ErrNotSession
	}
	return h, nil
}
