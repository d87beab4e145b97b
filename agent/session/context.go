package session

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/repa-app/repa/agent/llm"
)

// The roles that only a session knows. A model gets them as user messages.
const (
	RoleCustom            = "custom"
	RoleBranchSummary     = "branchSummary"
	RoleCompactionSummary = "compactionSummary"
	RoleShell             = "bashExecution"
)

// ContextMessage is one message of a context, with the entry that it comes from.
type ContextMessage struct {
	Entry *Entry
	Role  string

	edit string // raw content of the context edit that counts; "" for none
}

// contextEntries returns the entries of a branch that its newest compaction leaves in play: the compaction itself first, then
// what it keeps without system messages, then what follows it. A compaction whose first kept entry is not on the branch
// keeps nothing.
func contextEntries(branch []*Entry) []*Entry {
	at := len(branch) - 1
	for at >= 0 && branch[at].Type != TypeCompaction {
		at--
	}
	if at < 0 {
		return branch
	}
	var fields struct {
		FirstKept string `json:"firstKeptEntryId"`
	}
	list := []*Entry{branch[at]}
	if branch[at].Decode(&fields) == nil && fields.FirstKept != branch[at].ID {
		kept := at - 1
		for kept >= 0 && branch[kept].ID != fields.FirstKept {
			kept--
		}
		if kept >= 0 {
			for _, e := range branch[kept:at] {
				if e.Type != TypeMessage || e.Role != string(llm.RoleSystem) {
					list = append(list, e)
				}
			}
		}
	}
	return append(list, branch[at+1:]...)
}

// contextMessages applies the context edits in list and drops what is no message.
func contextMessages(list []*Entry) []ContextMessage {
	edits := map[string]string{}
	for _, e := range list {
		if e.Type == TypeContextEdit {
			if target, replacement, ok := edit(e); ok {
				edits[target] = replacement
			}
		}
	}
	out := make([]ContextMessage, 0, len(list))
	for i, e := range list {
		if e.Type == TypeCompaction && i > 0 {
			continue
		}
		replacement, edited := edits[e.ID]
		if edited && editable(e) {
			if replacement != "" {
				out = append(out, ContextMessage{e, roleOf(e), replacement})
			}
			continue
		}
		out = appendMessages(out, e)
	}
	return out
}

// appendMessages adds what an unedited entry says.
func appendMessages(out []ContextMessage, e *Entry) []ContextMessage {
	switch e.Type {
	case TypeCompaction:
		if strings.HasPrefix(member(e.raw, "systemMessage"), "{") {
			out = append(out, ContextMessage{e, string(llm.RoleSystem), ""})
		}
		return append(out, ContextMessage{e, RoleCompactionSummary, ""})
	case TypeBranchSummary:
		if s, _ := text(member(e.raw, "summary")); s == "" {
			return out
		}
	case TypeMessage, TypeCustomMessage:
	default:
		return out
	}
	return append(out, ContextMessage{e, roleOf(e), ""})
}

func roleOf(e *Entry) string {
	switch e.Type {
	case TypeCustomMessage:
		return RoleCustom
	case TypeBranchSummary:
		return RoleBranchSummary
	default:
		return e.Role
	}
}

func editable(e *Entry) bool {
	switch {
	case e.Type == TypeCustomMessage:
		return true
	case e.Type != TypeMessage:
		return false
	}
	return e.Role == string(llm.RoleUser) || e.Role == string(llm.RoleAssistant) || e.Role == string(llm.RoleToolResult)
}

// edit returns the raw new content, or "" when the target is left out; ok is false for an edit that says neither.
func edit(e *Entry) (target, content string, ok bool) {
	target, ok = text(member(e.raw, "targetId"))
	replacement := member(e.raw, "replacement")
	if replacement == "null" {
		return target, "", ok
	}
	if !ok || !strings.HasPrefix(replacement, "{") {
		return "", "", false
	}
	content = member(replacement, "content")
	return target, content, content != ""
}

// content is the message's own raw content, or the edited one.
func (c ContextMessage) content(original string) json.RawMessage {
	switch {
	case c.edit == "":
		if original == "" || original == "null" {
			return json.RawMessage("[]")
		}
		return json.RawMessage(original)
	case c.edit[0] == '"' && (c.Role == string(llm.RoleAssistant) || c.Role == string(llm.RoleToolResult)):
		return json.RawMessage(`[{"type":"text","text":` + c.edit + `}]`)
	default:
		return json.RawMessage(c.edit)
	}
}

// JSON is the message in Pi's form, as Pi itself rebuilds it.
func (c ContextMessage) JSON() (json.RawMessage, error) {
	e := c.Entry
	if e.Type == TypeMessage && c.edit == "" && member(e.body, "content") != "null" {
		return json.RawMessage(e.body), nil
	}
	var from map[string]json.RawMessage
	raw := e.raw
	if e.Type == TypeMessage {
		raw = e.body
	}
	if err := json.Unmarshal([]byte(raw), &from); err != nil {
		return nil, err
	}
	if c.Role == string(llm.RoleSystem) && e.Type == TypeCompaction {
		return from["systemMessage"], nil
	}
	if e.Type == TypeMessage {
		from["content"] = c.content(string(from["content"]))
		return json.Marshal(from)
	}
	out := map[string]any{"role": c.Role, "timestamp": e.Time().UnixMilli()}
	for _, name := range []string{"customType", "display", "details", "summary", "fromId", "tokensBefore"} {
		if v, ok := from[name]; ok && (c.Role == RoleCustom || name != "details") {
			out[name] = v
		}
	}
	if c.Role == RoleCustom {
		out["content"] = c.content(string(from["content"]))
	}
	return json.Marshal(out)
}

// The sentences around a summary are Pi's, so that both programs put the same history before a model.
const (
	beforeCompaction = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	afterCompaction  = "\n</summary>"
	beforeBranch     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	afterBranch      = "</summary>"
)

// Model is the message in the form that a model gets. ok is false for what no model gets: system messages (a request has its
// own system prompt), excluded shell output, unknown roles, and messages whose fields cannot be decoded.
func (c ContextMessage) Model() (m llm.Message, ok bool) {
	switch c.Role {
	case RoleCompactionSummary, RoleBranchSummary:
		before, after := beforeCompaction, afterCompaction
		if c.Role == RoleBranchSummary {
			before, after = beforeBranch, afterBranch
		}
		summary, _ := text(member(c.Entry.raw, "summary"))
		return userText(before+summary+after, c.Entry), true
	case RoleCustom:
		m = userText("", c.Entry)
		var content struct {
			Content json.RawMessage `json:"content"`
		}
		content.Content = c.content(member(c.Entry.raw, "content"))
		return m, decodeContent(&m, content.Content) == nil
	case RoleShell:
		return shellMessage(c.Entry)
	case string(llm.RoleUser), string(llm.RoleAssistant), string(llm.RoleToolResult):
		m, err := c.Entry.Message()
		if err == nil && c.edit != "" {
			err = decodeContent(&m, c.content(""))
		}
		return m, err == nil
	default:
		return llm.Message{}, false
	}
}

func userText(s string, e *Entry) llm.Message {
	return llm.Message{
		Role: llm.RoleUser, Timestamp: e.Time().UnixMilli(),
		Content: []llm.Block{{Type: llm.BlockText, Text: s}},
	}
}

// decodeContent replaces the content of m by the raw one, which may be text or blocks.
func decodeContent(m *llm.Message, raw json.RawMessage) error {
	var holder llm.Message
	data, err := json.Marshal(map[string]json.RawMessage{"content": raw})
	if err == nil {
		err = json.Unmarshal(data, &holder)
	}
	m.Content = holder.Content
	return err
}

// shellMessage tells a model what a command that the learner ran printed.
func shellMessage(e *Entry) (llm.Message, bool) {
	var run struct {
		Command, Output, FullOutputPath string
		ExitCode                        *int
		Cancelled, Truncated            bool
		ExcludeFromContext              bool
		Timestamp                       int64
	}
	if json.Unmarshal([]byte(e.body), &run) != nil || run.ExcludeFromContext {
		return llm.Message{}, false
	}
	var b strings.Builder
	b.WriteString("Ran `" + run.Command + "`\n")
	if run.Output == "" {
		b.WriteString("(no output)")
	} else {
		b.WriteString("```\n" + run.Output + "\n```")
	}
	switch {
	case run.Cancelled:
		b.WriteString("\n\n(command cancelled)")
	case run.ExitCode != nil && *run.ExitCode != 0:
		code, _ := json.Marshal(*run.ExitCode)
		b.WriteString("\n\nCommand exited with code " + string(code))
	}
	if run.Truncated && run.FullOutputPath != "" {
		b.WriteString("\n\n[Output truncated. Full output: " + run.FullOutputPath + "]")
	}
	m := userText(b.String(), e)
	m.Timestamp = run.Timestamp
	return m, true
}

// decoded holds the model form of a growing list of context messages. Snapshots whose lists are prefixes of one another share it.
type decoded struct {
	mu       sync.Mutex
	messages []llm.Message
	ends     []int // len(messages) after each context message
}

func (d *decoded) upTo(list []ContextMessage) []llm.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.ends); i < len(list); i++ {
		if m, ok := list[i].Model(); ok {
			d.messages = append(d.messages, m)
		}
		d.ends = append(d.ends, len(d.messages))
	}
	if len(list) == 0 {
		return nil
	}
	n := d.ends[len(list)-1]
	return slices.Clip(d.messages[:n])
}
