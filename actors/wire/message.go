// Package wire converts domain types to the wire types of the protocol, one file a family. It holds no state and touches no disk;
// everything here is safe for concurrent use.
package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/protocol"
)

// Messages converts the entries of a branch that people see, oldest first.
func Messages(branch []*session.Entry) []protocol.Message {
	out := []protocol.Message{}
	for _, e := range branch {
		if m, ok := Message(e); ok {
			out = append(out, m)
		}
	}
	return out
}

// Message converts one entry; false for entries that are no message for people (system messages, model changes, labels, edits).
// A message that cannot be decoded is shown as context that says so.
func Message(e *session.Entry) (protocol.Message, bool) {
	m := protocol.Message{ID: e.ID, RequestID: requestID(e.RequestID)}
	if at := e.Time(); !at.IsZero() {
		m.Timestamp = protocol.MillisOf(at)
	}
	switch e.Type {
	case session.TypeMessage:
		if e.Role == string(llm.RoleSystem) {
			return protocol.Message{}, false
		}
		message, err := e.Message()
		if err != nil {
			m.Role, m.Content = protocol.RoleContext, []protocol.Block{protocol.TextBlock(fmt.Sprintf(damaged, e.Line))}
			return m, true
		}
		return fill(m, message), true
	case session.TypeCustomMessage:
		return context(m, e, "content"), true
	case session.TypeCompaction, session.TypeBranchSummary:
		return context(m, e, "summary"), true
	}
	return protocol.Message{}, false
}

// damaged stands for a message whose fields cannot be read.
const damaged = "This message cannot be shown: line %d of the session file is damaged. The line was left as it is."

// requestID drops what the wire cannot carry: session files come from other programs too.
func requestID(id string) protocol.ID {
	if !protocol.ID(id).Valid() {
		return ""
	}
	return protocol.ID(id)
}

// plain makes a text fit for the wire: what tools and files say may be no UTF-8.
func plain(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// details keeps what every JSON reader understands: neither duplicate names nor half characters.
func details(raw json.RawMessage) jsontext.Value {
	if value := jsontext.Value(raw); value.IsValid() {
		return value
	}
	return nil
}

// context is a message that the program put into the history. member holds text or blocks.
func context(m protocol.Message, e *session.Entry, member string) protocol.Message {
	m.Role, m.Content = protocol.RoleContext, []protocol.Block{}
	var fields map[string]json.RawMessage
	if e.Decode(&fields) != nil {
		return m
	}
	wrapped, err := json.Marshal(map[string]any{"role": "user", "content": fields[member]})
	if err != nil {
		return m
	}
	var message llm.Message
	if json.Unmarshal(wrapped, &message) == nil {
		m.Content = Blocks(message.Content)
	}
	m.Details = details(fields["details"])
	return m
}

// Recorded converts a message that has just become entry id of the history.
func Recorded(id, request string, m llm.Message) protocol.Message {
	return fill(protocol.Message{ID: id, RequestID: requestID(request)}, m)
}

// Streaming is an assistant message that is being written.
func Streaming(id string, m llm.Message) protocol.Message {
	out := fill(protocol.Message{ID: id}, m)
	out.Streaming = true
	return out
}

func fill(m protocol.Message, message llm.Message) protocol.Message {
	m.Content = Blocks(message.Content)
	if message.Timestamp > 0 {
		m.Timestamp = protocol.Millis(message.Timestamp)
	}
	switch message.Role {
	case llm.RoleUser:
		m.Role = protocol.RoleUser
	case llm.RoleAssistant:
		m.Role, m.Error = protocol.RoleAssistant, plain(message.ErrorMessage)
	case llm.RoleToolResult:
		m.Role, m.ToolCallID, m.Name = protocol.RoleTool, plain(message.ToolCallID), plain(message.ToolName)
		m.Details = details(message.Details)
		if message.Failed() {
			m.Error = plain(message.Text())
		}
	default:
		m.Role = protocol.RoleContext
	}
	return m
}

// Blocks converts the content of a message. What the protocol has no block for is passed through as an extension.
func Blocks(content []llm.Block) []protocol.Block {
	out := []protocol.Block{}
	for _, b := range content {
		switch b.Type {
		case llm.BlockText:
			out = append(out, protocol.TextBlock(plain(b.Text)))
		case llm.BlockThinking:
			out = append(out, protocol.Block{Type: protocol.BlockThinking, Text: plain(b.Thinking)})
		case llm.BlockToolCall:
			arguments := jsontext.Value(b.Arguments)
			if !arguments.IsValid() {
				arguments = jsontext.Value("{}")
			}
			out = append(out, protocol.Block{Type: protocol.BlockToolCall, ID: plain(b.ID), Name: plain(b.Name), Arguments: arguments})
		default:
			data, err := json.Marshal(b)
			if err != nil { // blocks are made of text
				continue
			}
			out = append(out, protocol.Block{Type: protocol.BlockExtension, Data: data})
		}
	}
	return out
}
