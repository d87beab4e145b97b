package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

// watcher gets what happens in a run, in order.
type watcher interface {
	text(messageID, text string)
	thinking(messageID, text string)
	tool(call toolEvent)
	changed(c change)
	run(r protocol.Run)
	notice(n protocol.Notice)
}

// toolEvent is the start or end of a tool call.
type toolEvent struct {
	CallID    string          `json:"callId"`
	Name      string          `json:"name"`
	Status    string          `json:"status"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// change is one file before and after an operation; null is "not there".
type change struct {
	Path        string  `json:"path"`
	Before      *string `json:"before"`
	After       *string `json:"after"`
	OperationID string  `json:"operationId"`
}

// follower folds the updates of a session into what one run says and does. A lost connection or a slow reader brings a
// snapshot; the follower then goes on where it was.
type follower struct {
	request protocol.ID
	run     protocol.ID // once known
	watch   watcher

	inRun     bool // the run's own messages have begun
	shown     map[string]string
	arguments map[string]json.RawMessage
	seen      map[string]bool // finished messages
	answer    string          // of the last assistant message with text
	changes   []change
	ended     *protocol.Run
}

func newFollower(request, run protocol.ID, w watcher) *follower {
	return &follower{request: request, run: run, watch: w, shown: map[string]string{}, arguments: map[string]json.RawMessage{}, seen: map[string]bool{}, changes: []change{}}
}

// watchFromHere watches a session from its present state on: what was before is not shown again.
func watchFromHere(ctx context.Context, c *client.Client, key protocol.SessionKey) (*client.Replica, error) {
	r, err := client.Watch(ctx, c, key.Scope())
	if err != nil {
		return nil, err
	}
	if _, err := r.Next(ctx); err != nil {
		r.Close(ctx)
		return nil, err
	}
	return r, nil
}

// follow reads updates until the run has ended.
func (f *follower) follow(ctx context.Context, r *client.Replica) error {
	for f.ended == nil {
		u, err := r.Next(ctx)
		if err != nil {
			return err
		}
		f.update(u)
	}
	return nil
}

func (f *follower) update(u client.Update) {
	if u.Snapshot == nil {
		for _, c := range u.Changes {
			f.change(c)
		}
		return
	}
	for _, v := range u.Snapshot.Sessions {
		for i := range v.Messages {
			f.message(&v.Messages[i], "")
		}
		for _, r := range v.Runs {
			f.runChanged(r)
		}
	}
}

func (f *follower) change(c protocol.Change) {
	switch c.Type {
	case protocol.ChangeMessage:
		f.message(c.Message, c.Replaces)
	case protocol.ChangeDelta:
		if !f.inRun {
			return
		}
		f.shown[key(c.MessageID, int(c.Index))] += c.Text
		if c.Kind == protocol.DeltaKind(protocol.BlockThinking) {
			f.watch.thinking(c.MessageID, c.Text)
		} else {
			f.watch.text(c.MessageID, c.Text)
		}
	case protocol.ChangeTool:
		if c.RunID == f.run {
			f.watch.tool(toolEvent{c.CallID, c.Name, string(c.Status), f.arguments[c.CallID]})
		}
	case protocol.ChangeNotice:
		f.watch.notice(*c.Notice)
	case protocol.ChangeRun:
		f.runChanged(*c.Run)
	}
}

func key(message string, block int) string { return message + "/" + string(rune(block)) }

// message shows what deltas have not shown: the rest of each block. A finished message replaces the live one of the same blocks.
func (f *follower) message(m *protocol.Message, replaces string) {
	if m.RequestID == f.request {
		f.inRun = true
		return
	}
	if !f.inRun || f.seen[m.ID] {
		return
	}
	f.seen[m.ID] = !m.Streaming
	if m.Role == protocol.RoleTool {
		f.toolResult(m)
		return
	}
	if m.Role != protocol.RoleAssistant {
		return
	}
	id := m.ID
	if replaces != "" {
		id = replaces
	}
	var texts []string
	for i, b := range m.Content {
		switch b.Type {
		case protocol.BlockText:
			f.rest(id, i, b.Text, f.watch.text)
			texts = append(texts, b.Text)
		case protocol.BlockThinking:
			f.rest(id, i, b.Text, f.watch.thinking)
		case protocol.BlockToolCall:
			f.arguments[b.ID] = json.RawMessage(b.Arguments)
		}
	}
	if text := strings.Join(texts, "\n"); strings.TrimSpace(text) != "" {
		f.answer = text
	}
}

func (f *follower) rest(message string, block int, whole string, show func(string, string)) {
	k := key(message, block)
	if rest, ok := strings.CutPrefix(whole, f.shown[k]); ok && rest != "" {
		f.shown[k] = whole
		show(message, rest)
	}
}

// toolResult collects the receipts of saved changes.
func (f *follower) toolResult(m *protocol.Message) {
	var d struct {
		OperationID string   `json:"operationId"`
		Changes     []change `json:"changes"`
	}
	if json.Unmarshal(m.Details, &d) != nil {
		return
	}
	for _, c := range d.Changes {
		c.OperationID = d.OperationID
		f.changes = append(f.changes, c)
		f.watch.changed(c)
	}
}

func (f *follower) runChanged(r protocol.Run) {
	if r.ID != f.run || f.ended != nil {
		return
	}
	f.watch.run(r)
	if r.Status.Terminal() {
		f.ended = &r
	}
}
