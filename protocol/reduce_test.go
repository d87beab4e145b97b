package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/repa-app/repa/protocol"
)

func snapshot() protocol.Snapshot {
	return protocol.Snapshot{
		Lifecycle: protocol.LifecycleRunning,
		Spaces:    []protocol.Space{{ID: "p", Path: "/p"}},
		Sessions: []protocol.SessionView{{SpaceID: "p", SessionID: "s", Messages: []protocol.Message{
			{ID: "live", Role: protocol.RoleAssistant, Streaming: true},
		}}},
	}
}

func message(id, text string) *protocol.Message {
	return &protocol.Message{ID: id, Role: protocol.RoleAssistant, Content: []protocol.Block{protocol.TextBlock(text)}}
}

func at(c protocol.Change) protocol.Change {
	c.SpaceID, c.SessionID = "p", "s"
	return c
}

func delta(index int, kind protocol.DeltaKind, text string) protocol.Change {
	return at(protocol.Change{Type: protocol.ChangeDelta, MessageID: "live", Index: protocol.Int(index), Kind: kind, Text: text})
}

// brief writes what matters of a snapshot on one line.
func brief(s protocol.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", s.Lifecycle)
	for _, p := range s.Spaces {
		fmt.Fprintf(&b, " space %s@%s", p.ID, p.ContentRevision)
	}
	for _, v := range s.Sessions {
		fmt.Fprintf(&b, " session %s:%s", v.SessionID, v.Title)
		for _, m := range v.Messages {
			fmt.Fprintf(&b, " %s[", m.ID)
			for _, block := range m.Content {
				fmt.Fprintf(&b, "%.1s:%s;", block.Type, block.Text)
			}
			b.WriteString("]")
		}
		for _, r := range v.Runs {
			fmt.Fprintf(&b, " run %s=%s", r.ID, r.Status)
		}
		for _, i := range v.Interactions {
			fmt.Fprintf(&b, " ask %s=%s", i.ID, i.Title)
		}
		for _, n := range v.Notices {
			fmt.Fprintf(&b, " notice %s=%s", n.ID, n.Message)
		}
	}
	for _, r := range s.Processing {
		fmt.Fprintf(&b, " job %s", r.RequestID)
	}
	for _, e := range s.Execution {
		fmt.Fprintf(&b, " command %s", e.ID)
	}
	return b.String()
}

func TestApply(t *testing.T) {
	job := func(status protocol.BackgroundStatus) protocol.Change {
		return protocol.Change{Type: protocol.ChangeProcessing, Processing: &protocol.BackgroundRequest{RequestID: "j", Status: status}}
	}
	command := func(status protocol.ExecutionStatus) protocol.Change {
		return protocol.Change{Type: protocol.ChangeExecution, Execution: &protocol.ExecutionView{ID: "c", Status: status}}
	}
	run := func(status protocol.RunStatus) protocol.Change {
		return protocol.Change{Type: protocol.ChangeRun, Run: &protocol.Run{SpaceID: "p", SessionID: "s", ID: "r", Status: status}}
	}
	ask := func(title string) protocol.Change {
		c := at(protocol.Change{Type: protocol.ChangeInteraction, ID: "q"})
		if title != "" {
			c.Interaction = &protocol.Interaction{ID: "q", Title: title}
		}
		return c
	}
	const start = "running space p@ session s: live[]"
	for name, c := range map[string]struct {
		changes []protocol.Change
		want    string
	}{
		"nothing":                   {nil, start},
		"lifecycle":                 {[]protocol.Change{{Type: protocol.ChangeLifecycle, Lifecycle: protocol.LifecycleDraining}}, "draining space p@ session s: live[]"},
		"new space":                 {[]protocol.Change{{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: "o"}}}, "running space p@ space o@ session s: live[]"},
		"content":                   {[]protocol.Change{{Type: protocol.ChangeContent, SpaceID: "p", Revision: "2"}}, "running space p@2 session s: live[]"},
		"content of unknown space":  {[]protocol.Change{{Type: protocol.ChangeContent, SpaceID: "o", Revision: "2"}}, start},
		"session replaced":          {[]protocol.Change{{Type: protocol.ChangeSession, Session: &protocol.SessionView{SpaceID: "p", SessionID: "s", Title: "T"}}}, "running space p@ session s:T"},
		"same session, other space": {[]protocol.Change{{Type: protocol.ChangeSession, Session: &protocol.SessionView{SpaceID: "o", SessionID: "s"}}}, start + " session s:"},
		"session removed":           {[]protocol.Change{at(protocol.Change{Type: protocol.ChangeSessionRemoved})}, "running space p@"},
		"message appended":          {[]protocol.Change{at(protocol.Change{Type: protocol.ChangeMessage, Message: message("m", "x")})}, start + " m[t:x;]"},
		"message replaces":          {[]protocol.Change{at(protocol.Change{Type: protocol.ChangeMessage, Message: message("m", "x"), Replaces: "live"})}, "running space p@ session s: m[t:x;]"},
		"message comes twice, also as replacement": {[]protocol.Change{
			at(protocol.Change{Type: protocol.ChangeMessage, Message: message("m", "x")}),
			at(protocol.Change{Type: protocol.ChangeMessage, Message: message("m", "y"), Replaces: "live"}),
		}, "running space p@ session s: m[t:y;]"},
		"deltas":                      {[]protocol.Change{delta(0, "text", "Hel"), delta(0, "text", "lo")}, "running space p@ session s: live[t:Hello;]"},
		"delta pads":                  {[]protocol.Change{delta(1, "thinking", "x")}, "running space p@ session s: live[t:;t:x;]"},
		"delta of another kind":       {[]protocol.Change{delta(0, "text", "x"), delta(0, "thinking", "y")}, "running space p@ session s: live[t:x;]"},
		"delta far away":              {[]protocol.Change{delta(1<<40, "text", "x")}, start},
		"delta of an unknown message": {[]protocol.Change{at(protocol.Change{Type: protocol.ChangeDelta, MessageID: "gone", Kind: "text", Text: "x"})}, start},
		"unknown session":             {[]protocol.Change{{Type: protocol.ChangeMessage, SpaceID: "p", SessionID: "o", Message: message("m", "x")}}, start},
		"run":                         {[]protocol.Change{run("accepted"), run("completed")}, start + " run r=completed"},
		"question":                    {[]protocol.Change{ask("a"), ask("b")}, start + " ask q=b"},
		"question gone":               {[]protocol.Change{ask("a"), ask("")}, start},
		"notice":                      {[]protocol.Change{at(protocol.Change{Type: protocol.ChangeNotice, Notice: &protocol.Notice{ID: "n", Message: "x"}})}, start + " notice n=x"},
		"job runs":                    {[]protocol.Change{job("accepted"), job("running")}, start + " job j"},
		"job ends":                    {[]protocol.Change{job("running"), job("failed")}, start},
		"command runs":                {[]protocol.Change{command("authorizing"), command("running")}, start + " command c"},
		"command ends":                {[]protocol.Change{command("running"), command("cancelled")}, start},
		"only signals": {[]protocol.Change{
			{Type: protocol.ChangeSettings}, {Type: protocol.ChangeRequest}, {Type: protocol.ChangeQueue}, {Type: protocol.ChangeConnection},
			{Type: protocol.ChangeCapability}, at(protocol.Change{Type: protocol.ChangeTool}), {Type: protocol.ChangeExecutionOutput},
		}, start},
	} {
		s := snapshot()
		for _, change := range c.changes {
			protocol.Apply(&s, change)
		}
		if got := brief(s); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestCloneIsIndependent applies drawn changes after a clone, and to a second snapshot from the same changes, and looks whether the clone or
// the changes move.
func TestCloneIsIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot()
		changes := rapid.SliceOfN(rapid.Custom(drawChange), 1, 20).Draw(t, "changes")
		half := len(changes) / 2
		for _, change := range changes[:half] {
			protocol.Apply(&s, change)
		}
		clone, before := s.Clone(), brief(s)
		for _, change := range changes[half:] {
			protocol.Apply(&s, change)
		}
		if got := brief(clone); got != before {
			t.Fatalf("the clone became\n%s, was\n%s", got, before)
		}
		again := snapshot()
		for _, change := range changes {
			protocol.Apply(&again, change)
		}
		if diff := cmp.Diff(brief(again), brief(s)); diff != "" {
			t.Fatalf("the same changes give another state: %s", diff)
		}
	})
}

func drawChange(t *rapid.T) protocol.Change {
	id := rapid.SampledFrom([]string{"live", "m", "n"}).Draw(t, "id")
	switch rapid.IntRange(0, 4).Draw(t, "type") {
	case 0:
		return at(protocol.Change{Type: protocol.ChangeMessage, Message: message(id, "x"), Replaces: rapid.SampledFrom([]string{"", "live"}).Draw(t, "replaces")})
	case 1:
		return at(protocol.Change{Type: protocol.ChangeDelta, MessageID: id, Index: protocol.Int(rapid.IntRange(0, 2).Draw(t, "index")), Kind: "text", Text: "d"})
	case 2:
		return protocol.Change{Type: protocol.ChangeRun, Run: &protocol.Run{SpaceID: "p", SessionID: "s", ID: protocol.ID(id), Status: "running"}}
	case 3:
		view := protocol.SessionView{SpaceID: "p", SessionID: "s", Title: id, Messages: []protocol.Message{*message("live", "v")}}
		return protocol.Change{Type: protocol.ChangeSession, Session: &view}
	}
	return at(protocol.Change{Type: protocol.ChangeNotice, Notice: &protocol.Notice{ID: id}})
}

func TestRelevance(t *testing.T) {
	scopes := []protocol.Scope{{}, {SpaceID: "p"}, {SpaceID: "p", SessionID: "s"}, {SpaceID: "p", SessionID: "t"}, {SpaceID: "o"}, {SpaceID: "o", SessionID: "s"}}
	session := protocol.SessionKey{SpaceID: "p", SessionID: "s"}
	setting := func(kind string, space, session protocol.ID) protocol.Change {
		return protocol.Change{Type: protocol.ChangeSettings, Scope: &protocol.SettingScope{Kind: kind, SpaceID: space, SessionID: session}}
	}
	agent := protocol.Source{Kind: "agent", SpaceID: "p", SessionID: "s"}
	for name, c := range map[string]struct {
		change protocol.Change
		want   string // one digit a scope: application, space, session, other session, other space, its session
	}{
		"lifecycle":          {protocol.Change{Type: protocol.ChangeLifecycle}, "111111"},
		"connection":         {protocol.Change{Type: protocol.ChangeConnection}, "111111"},
		"settings of all":    {setting("application", "", ""), "111111"},
		"settings of space":  {setting("space", "p", ""), "111100"},
		"settings of one":    {setting("session", "p", "s"), "111000"},
		"content":            {protocol.Change{Type: protocol.ChangeContent, SpaceID: "p"}, "111100"},
		"space":              {protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: "p"}}, "111100"},
		"capability of all":  {protocol.Change{Type: protocol.ChangeCapability, Event: &protocol.CapabilityEvent{Scope: protocol.CapabilityScope{Kind: "application"}}}, "111111"},
		"capability":         {protocol.Change{Type: protocol.ChangeCapability, Event: &protocol.CapabilityEvent{Scope: protocol.CapabilityScope{Kind: "space", SpaceID: "p"}}}, "111100"},
		"session":            {protocol.Change{Type: protocol.ChangeSession, Session: &protocol.SessionView{SpaceID: "p", SessionID: "s"}}, "111000"},
		"session removed":    {at(protocol.Change{Type: protocol.ChangeSessionRemoved}), "111000"},
		"run":                {protocol.Change{Type: protocol.ChangeRun, Run: &protocol.Run{SpaceID: "p", SessionID: "s"}}, "111000"},
		"request":            {protocol.Change{Type: protocol.ChangeRequest, Request: &protocol.Request{Target: session}}, "111000"},
		"queue":              {protocol.Change{Type: protocol.ChangeQueue, Queue: &protocol.Queue{Target: session}}, "111000"},
		"interaction":        {at(protocol.Change{Type: protocol.ChangeInteraction}), "111000"},
		"notice":             {at(protocol.Change{Type: protocol.ChangeNotice}), "111000"},
		"message":            {at(protocol.Change{Type: protocol.ChangeMessage}), "001000"},
		"delta":              {at(protocol.Change{Type: protocol.ChangeDelta}), "001000"},
		"tool":               {at(protocol.Change{Type: protocol.ChangeTool}), "001000"},
		"job of a space":     {protocol.Change{Type: protocol.ChangeProcessing, Processing: &protocol.BackgroundRequest{SpaceID: "p"}}, "110000"},
		"job of all":         {protocol.Change{Type: protocol.ChangeProcessing, Processing: &protocol.BackgroundRequest{}}, "100000"},
		"command of a host":  {protocol.Change{Type: protocol.ChangeExecution, Execution: &protocol.ExecutionView{SpaceID: "p", Source: protocol.Source{Kind: "client"}}}, "110000"},
		"command of a run":   {protocol.Change{Type: protocol.ChangeExecution, Execution: &protocol.ExecutionView{SpaceID: "p", Source: agent}}, "111000"},
		"output":             {protocol.Change{Type: protocol.ChangeExecutionOutput, SpaceID: "p", Source: &agent}, "111000"},
		"without its record": {protocol.Change{Type: protocol.ChangeRun}, "000000"},
	} {
		got := ""
		for _, scope := range scopes {
			got += map[bool]string{true: "1", false: "0"}[protocol.Relevant(scope, c.change)]
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
