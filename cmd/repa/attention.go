package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
)

type changesCommand struct{ spaceFlags }

// Run prints what in a space wants attention.
func (c *changesCommand) Run(ctx context.Context, t *terminal) error {
	return c.visit(ctx, t, func(v *visit) error {
		r, err := ask(v, protocol.ContentChanges, protocol.ContentChangesParams{SpaceID: v.space.ID})
		if err != nil {
			return err
		}
		if v.json {
			return printWire(t.out, r)
		}
		t.printAttention(r)
		return nil
	})
}

func (t *terminal) printAttention(r protocol.ContentReport) {
	var rows [][]string
	row := func(kind messages.Message, what string) { rows = append(rows, []string{t.text(kind), what}) }
	for _, o := range r.Unresolved {
		row(messages.NeedsRecovery, t.text(messages.RecoveryOf, o.OperationID, strings.Join(o.Conflicts, ", ")))
	}
	for _, m := range r.Missing {
		what := t.text(messages.MissingOf, m.Path, m.Ref.ID)
		if len(m.Proposals) > 0 {
			what = t.text(messages.MissingPerhaps, what, strings.Join(m.Proposals, ", "))
		}
		row(messages.MissingFile, what)
	}
	for _, c := range r.ConflictCopies {
		row(messages.ConflictCopy, t.text(messages.ConflictCopyOf, c.Path, c.Of))
	}
	for _, pair := range r.Twins {
		row(messages.Twins, t.text(messages.TwinsOf, pair[0], pair[1]))
	}
	for _, o := range r.Outside {
		row(messages.ChangedOutside, t.text(messages.ChangedOutsideAt, o.Path, o.Time.Time().Local().Format(time.DateTime)))
	}
	if len(rows) == 0 {
		fmt.Fprintln(t.out, t.text(messages.AttentionNone))
		return
	}
	t.table(rows)
	if len(r.Unresolved) > 0 {
		t.say(messages.RecoveryHint)
	}
}
