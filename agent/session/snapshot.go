package session

import (
	"slices"
	"strings"

	"github.com/repa-app/repa/agent/llm"
)

// Snapshot is a session at one moment. It never changes and is safe for concurrent use; callers must not change what it
// refers to.
type Snapshot struct {
	Header   Header
	Name     string           // the newest name given to the session; "" when it has none
	Leaf     *Entry           // nil: no entry yet
	Entries  []*Entry         // of the whole file, in its order
	Branch   []*Entry         // from the root to the leaf
	Messages []ContextMessage // the context, oldest first

	model, thinking *Entry
	decoded         *decoded
}

// Context is the history to put before a model: user, assistant and tool-result messages, oldest first. Messages are decoded at
// the first call and kept.
func (s *Snapshot) Context() []llm.Message { return s.decoded.upTo(s.Messages) }

// ContextEntries are the entries of the branch that the newest compaction leaves in play, that compaction first.
func (s *Snapshot) ContextEntries() []*Entry { return contextEntries(s.Branch) }

// ThinkingLevel is the last level on the branch, "off" when it names none.
func (s *Snapshot) ThinkingLevel() string {
	if s.thinking != nil {
		if level, ok := text(member(s.thinking.raw, "thinkingLevel")); ok {
			return level
		}
	}
	return "off"
}

// Model is the last model on the branch, chosen or answering; both parts are empty when there is none.
func (s *Snapshot) Model() (provider, model string) {
	if s.model == nil {
		return "", ""
	}
	if s.model.Type == TypeModelChange {
		provider, _ = text(member(s.model.raw, "provider"))
		model, _ = text(member(s.model.raw, "modelId"))
		return provider, model
	}
	provider, _ = text(member(s.model.body, "provider"))
	model, _ = text(member(s.model.body, "model"))
	return provider, model
}

// Find returns the entry of the branch with that id, nil when there is none.
func (s *Snapshot) Find(id string) *Entry {
	for _, e := range slices.Backward(s.Branch) {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// pathTo follows the parents of leaf. In a file whose parents form a circle it ends where it would meet an entry again.
func pathTo(leaf *Entry, entries int) []*Entry {
	var branch []*Entry
	for e := leaf; e != nil; e = e.parent {
		if len(branch) == entries {
			return circle(leaf)
		}
		branch = append(branch, e)
	}
	slices.Reverse(branch)
	return branch
}

func circle(leaf *Entry) []*Entry {
	seen := map[*Entry]bool{}
	var branch []*Entry
	for e := leaf; e != nil && !seen[e]; e = e.parent {
		seen[e] = true
		branch = append(branch, e)
	}
	slices.Reverse(branch)
	return branch
}

// project builds the snapshot of a whole branch.
func project(h Header, name string, entries, branch []*Entry) *Snapshot {
	s := &Snapshot{
		Header: h, Name: name, Entries: entries, Branch: branch,
		Messages: contextMessages(contextEntries(branch)), decoded: &decoded{},
	}
	if len(branch) > 0 {
		s.Leaf = branch[len(branch)-1]
	}
	for _, e := range branch {
		s.note(e)
	}
	return s
}

// note takes over the settings that an entry of the branch brings.
func (s *Snapshot) note(e *Entry) {
	switch {
	case e.Type == TypeThinkingLevel:
		s.thinking = e
	case e.Type == TypeModelChange, e.Type == TypeMessage && e.Role == string(llm.RoleAssistant):
		s.model = e
	}
}

// extend returns s with one more entry behind its leaf. The slices grow in place behind what s shows, so only the newest
// snapshot of a store may be extended. Compactions and context edits walk the context; every other entry costs the same whatever the length.
func (s *Snapshot) extend(e *Entry) *Snapshot {
	next := *s
	next.Leaf = e
	next.Entries = append(s.Entries, e)
	next.Branch = append(s.Branch, e)
	next.note(e)
	switch e.Type {
	case TypeCompaction, TypeContextEdit:
		next.Messages = contextMessages(contextEntries(next.Branch))
		next.decoded = &decoded{}
	default:
		next.Messages = appendMessages(s.Messages, e)
	}
	if e.Type == TypeSessionInfo {
		next.Name = nameOf(e)
	}
	return &next
}

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")

func nameOf(e *Entry) string {
	name, _ := text(member(e.raw, "name"))
	return strings.TrimSpace(lineBreaks.Replace(name))
}
