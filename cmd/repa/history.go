package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
)

type historyCommand struct {
	Path  string `arg:"" help:"${document}"`
	Limit int    `help:"${history_limit}" placeholder:"N"`
	spaceFlags
}

// documentHistory is the object of --output json.
type documentHistory struct {
	Document  protocol.HistoryDocument `json:"document"`
	Revisions []revisionRow            `json:"revisions"`
}

// revisionRow is one state of a document. Times are Unix milliseconds; a null revision is "there was no file", or one that was not read. Without an operation
// it is what an operation found and replaced.
type revisionRow struct {
	Revision    protocol.NullRevision `json:"revision"`
	Time        protocol.Millis       `json:"time"`
	Actor       protocol.Actor        `json:"actor"`
	Cause       string                `json:"cause"`
	OperationID protocol.ID           `json:"operationId,omitempty"`
	SessionID   protocol.ID           `json:"sessionId,omitempty"`
	RunID       protocol.ID           `json:"runId,omitempty"`
	Size        *protocol.Int         `json:"size"`
}

// Run prints the revisions of a document, newest first.
func (c *historyCommand) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 0 {
		return t.fail(exitUsage, messages.HistoryLimit)
	}
	return c.visit(ctx, t, func(v *visit) error {
		target, err := v.target(c.Path)
		if err != nil {
			return err
		}
		v.note(target)
		h, err := v.revisions(target, c.Limit)
		if err != nil {
			return err
		}
		if v.json {
			out := documentHistory{h.Document, []revisionRow{}}
			for _, r := range h.Revisions {
				out.Revisions = append(out.Revisions, revisionRow{r.Revision, r.Time, r.Actor, r.Cause, r.OperationID, r.SessionID, r.RunID, r.Size})
			}
			printJSON(t.out, out)
			return nil
		}
		if len(h.Revisions) == 0 {
			t.say(messages.HistoryNone, h.Document.Path)
			return nil
		}
		t.printHistory(h)
		return nil
	})
}

func (t *terminal) printHistory(h protocol.ContentHistoryResult) {
	rows := [][]string{{t.text(messages.HistoryTime), t.text(messages.HistoryWho), t.text(messages.HistoryWhat), t.text(messages.HistorySize),
		t.text(messages.HistoryRevision), t.text(messages.HistoryOperation)}}
	for _, r := range h.Revisions {
		bytes := nothing
		if r.Size != nil {
			bytes = size(int64(*r.Size))
		}
		what := t.cause(r.Cause)
		if r.Revision == nil && r.Size == nil {
			what = t.text(messages.HistoryGone, what)
		}
		if r.Path != h.Document.Path {
			what = t.text(messages.HistoryElsewhere, what, r.Path)
		}
		rows = append(rows, []string{r.Time.Time().Local().Format(time.DateTime), t.who(r), what, bytes, shortRevision(r.Revision), shortOf(r.OperationID)})
	}
	t.table(rows)
}

// who is the actor of a revision in words; of an agent also the run, which can be undone as a whole.
func (t *terminal) who(r protocol.ContentRevision) string {
	switch r.Actor {
	case protocol.ActorLearner:
		return t.text(messages.ActorLearner)
	case protocol.ActorAgent:
		if r.RunID == "" {
			return t.text(messages.ActorAgent)
		}
		return t.text(messages.ActorAgentRun, shortOf(r.RunID))
	case protocol.ActorOutside:
		return t.text(messages.ActorOutside)
	}
	return string(r.Actor)
}

// cause is what was done in words. A method that has none is named.
func (t *terminal) cause(cause string) string {
	if m, ok := messages.Causes[cause]; ok {
		return t.text(m)
	}
	return cause
}

type diffCommand struct {
	Path string `arg:"" help:"${document}"`
	From string `help:"${diff_from}" placeholder:"REV"`
	To   string `help:"${diff_to}" placeholder:"REV"`
	spaceFlags
}

// Run prints what changed between two revisions.
func (c *diffCommand) Run(ctx context.Context, t *terminal) error {
	return c.visit(ctx, t, func(v *visit) error {
		target, err := v.target(c.Path)
		if err != nil {
			return err
		}
		p := protocol.ContentDiffParams{Target: target}
		if p.From, err = v.revision(target, c.From); err != nil {
			return err
		}
		if p.To, err = v.revision(target, c.To); err != nil {
			return err
		}
		d, err := ask(v, protocol.ContentDiff, p)
		switch {
		case err != nil:
			return err
		case v.json:
			printJSON(t.out, d)
		case d.Unified == "":
			t.say(messages.DiffNone)
		case t.colours(t.out):
			fmt.Fprint(t.out, coloured(d.Unified))
		default:
			fmt.Fprint(t.out, d.Unified)
		}
		return nil
	})
}

// coloured marks the lines of a diff of one file: what is gone red, what is new green, places cyan, names bold.
func coloured(unified string) string {
	var out strings.Builder
	names := true // until the first place: in it, lines may begin like names
	for line := range strings.Lines(unified) {
		text, end := strings.TrimSuffix(line, "\n"), ""
		if len(text) < len(line) {
			end = "\n"
		}
		colour := ""
		switch {
		case strings.HasPrefix(text, "@@"):
			names, colour = false, "36"
		case names:
			colour = "1"
		case strings.HasPrefix(text, "+"):
			colour = "32"
		case strings.HasPrefix(text, "-"):
			colour = "31"
		}
		if colour != "" {
			text = "\x1b[" + colour + "m" + text + "\x1b[0m"
		}
		out.WriteString(text + end)
	}
	return out.String()
}
