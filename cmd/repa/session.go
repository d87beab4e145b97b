package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/repa-app/repa/agent/session"
	"github.com/repa-app/repa/cas/vfs"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type sessionCommands struct {
	List    sessionList    `cmd:"" help:"${session_list}"`
	Show    sessionShow    `cmd:"" help:"${session_show}"`
	Context sessionContext `cmd:"" help:"${session_context}"`
}

type sessionList struct {
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// sessionRow is one session of a listing. Times are Unix milliseconds.
type sessionRow struct {
	SessionID protocol.ID     `json:"sessionId"`
	Title     string          `json:"title"`
	CreatedAt protocol.Millis `json:"createdAt"`
	UpdatedAt protocol.Millis `json:"updatedAt"`
	Messages  int             `json:"messages"`
}

// Run lists the sessions of a space.
func (c *sessionList) Run(ctx context.Context, t *terminal) error {
	cl, s, err := t.enterDir(ctx, c.Space)
	if err != nil {
		return err
	}
	defer leave(cl)
	return t.listSessions(ctx, cl, s, c.Output)
}

func (t *terminal) listSessions(ctx context.Context, c *client.Client, s protocol.Space, output string) error {
	all, err := client.Call(ctx, c, protocol.SessionList, protocol.SpaceParams{SpaceID: s.ID})
	if err != nil {
		return err
	}
	rows := []sessionRow{}
	for _, v := range all {
		messages, err := history(ctx, c, protocol.SessionKey{SpaceID: s.ID, SessionID: v.SessionID})
		if err != nil {
			return err
		}
		rows = append(rows, sessionRow{v.SessionID, v.Title, v.CreatedAt, v.UpdatedAt, len(messages)})
	}
	if output == outputJSON {
		printJSON(t.out, map[string]any{"sessions": rows})
		return nil
	}
	if len(rows) == 0 {
		t.say(messages.NoSessionsYet)
	}
	for _, r := range rows {
		fmt.Fprintln(t.out, t.text(messages.Messages, r.SessionID, r.UpdatedAt.Time().Local().Format(time.DateTime), r.Messages, r.Title))
	}
	return nil
}

// history returns all messages of a session, oldest first.
func history(ctx context.Context, c *client.Client, key protocol.SessionKey) ([]protocol.Message, error) {
	p := protocol.HistoryParams{SpaceID: key.SpaceID, SessionID: key.SessionID, Limit: protocol.HistoryLimitMax}
	var pages [][]protocol.Message
	for {
		page, err := client.Call(ctx, c, protocol.SessionHistory, p)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page.Messages)
		if page.Before == "" {
			break
		}
		p.Before, p.Revision = page.Before, page.Revision
	}
	var out []protocol.Message
	for i := len(pages) - 1; i >= 0; i-- {
		out = append(out, pages[i]...)
	}
	return out, nil
}

type sessionShow struct {
	ID     string `arg:"" optional:"" help:"${session_show_id}"`
	Space  string `help:"${flag_space}" placeholder:"DIR" default:"."`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// Run prints a session.
func (c *sessionShow) Run(ctx context.Context, t *terminal) error {
	cl, s, err := t.enterDir(ctx, c.Space)
	if err != nil {
		return err
	}
	defer leave(cl)
	id := protocol.ID(c.ID)
	if id == "" {
		var ok bool
		if id, ok, err = recentSession(ctx, cl, s.ID); err == nil && !ok {
			err = &coded{protocol.CodeNotFound, t.text(messages.NoSession, s.Path)}
		}
	} else {
		err = t.findSession(ctx, cl, s, id)
	}
	if err != nil {
		return err
	}
	key := protocol.SessionKey{SpaceID: s.ID, SessionID: id}
	view, err := client.Call(ctx, cl, protocol.SessionGet, key)
	if err != nil {
		return err
	}
	if view.Messages, err = history(ctx, cl, key); err != nil {
		return err
	}
	if c.Output == outputJSON {
		return printWire(t.out, view)
	}
	fmt.Fprintf(t.out, "%s\n%s\n", view.Title, t.text(messages.Continue, id))
	for _, m := range view.Messages {
		t.showMessage(m)
	}
	return nil
}

func (t *terminal) showMessage(m protocol.Message) {
	who := t.text(messages.WhoContext)
	switch m.Role {
	case protocol.RoleUser:
		who = t.text(messages.WhoUser)
	case protocol.RoleAssistant:
		who = t.text(messages.WhoAssistant)
	case protocol.RoleTool:
		who = t.text(messages.WhoTool, m.Name)
	}
	var parts []string
	for _, b := range m.Content {
		switch b.Type {
		case protocol.BlockText:
			parts = append(parts, b.Text)
		case protocol.BlockToolCall:
			parts = append(parts, t.text(messages.ToolRunning, b.Name, string(b.Arguments)))
		}
	}
	if m.Role == protocol.RoleAssistant && m.Error != "" {
		parts = append(parts, m.Error)
	}
	fmt.Fprintf(t.out, "\n[%s %s]\n%s\n", who, m.Timestamp.Time().Local().Format(time.DateTime), strings.Join(parts, "\n"))
}

type sessionContext struct {
	File   string `arg:"" help:"${session_file}"`
	Output string `help:"${flag_output} ${enum}." enum:"text,json" default:"text"`
}

// Run prints the context that a session file gives. It needs no backend and changes nothing.
func (c *sessionContext) Run(_ context.Context, t *terminal) error {
	abs, err := filepath.Abs(c.File)
	if err != nil {
		return err
	}
	folder, err := vfs.OS(filepath.Dir(abs))
	if err != nil {
		return err
	}
	defer folder.Close()
	store, err := session.Open(folder, filepath.Base(abs), session.Source{})
	if err != nil {
		return err
	}
	defer store.Close()
	list := []json.RawMessage{}
	for _, m := range store.Snapshot().Messages {
		raw, err := m.JSON()
		if err != nil {
			return err
		}
		list = append(list, raw)
	}
	if c.Output == outputJSON {
		printJSON(t.out, map[string]any{"messages": list})
		return nil
	}
	for _, raw := range list {
		fmt.Fprintln(t.out, string(raw))
	}
	return nil
}
