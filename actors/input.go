package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/repa-app/repa/actors/ledger"
	"github.com/repa-app/repa/cas"
	"github.com/repa-app/repa/cas/recordlog"
	"github.com/repa-app/repa/protocol"
)

// maxInline is the longest text of an input that stands in the journal itself. Longer ones lie in the space's store: 4 KiB hold nearly every
// question and few attachments, and a read of the store costs as much as one of the journal from there on.
const maxInline = 4 << 10

func requestOwner(id protocol.ID) cas.Owner { return cas.Owner{Kind: cas.OwnerRequest, ID: string(id)} }

func sessionOwner(id protocol.ID) cas.Owner { return cas.Owner{Kind: cas.OwnerSession, ID: string(id)} }

// longTexts names the texts of an input that belong into the store.
func longTexts(in protocol.Input) []ledger.Text {
	var out []ledger.Text
	for i, p := range in.Parts {
		if ledger.HasText(p) && len(p.Text) > maxInline {
			out = append(out, ledger.Text{Part: i, ID: cas.Sum([]byte(p.Text)).String(), Size: int64(len(p.Text))})
		}
	}
	return out
}

// fingerprint is the same for all forms of one submission, wherever its texts lie, and another for every other submission.
func fingerprint(s protocol.Submission, apart []ledger.Text) (string, error) {
	if s.Input != nil {
		ids := map[int]string{}
		for _, t := range apart {
			ids[t.Part] = t.ID
		}
		in := protocol.Input{Parts: make([]protocol.InputPart, len(s.Input.Parts))}
		for i, p := range s.Input.Parts {
			if ledger.HasText(p) {
				id, ok := ids[i]
				if !ok {
					id = cas.Sum([]byte(p.Text)).String()
				}
				p.Text = id
			}
			in.Parts[i] = p
		}
		s.Input = &in
	}
	text, err := protocol.Canonical(s)
	return string(text), err
}

// keptInput is an input of which some texts lie in the store.
type keptInput struct {
	input protocol.Input
	texts []ledger.Text
	store *cas.Store
}

// read returns the whole input. It waits for the disk. Errors: *cas.DamageError, cas.ErrNotFound, errors of the disk.
func (k keptInput) read(ctx context.Context) (protocol.Input, error) {
	read := map[string]string{}
	for _, t := range k.texts {
		id, err := cas.ParseID(t.ID)
		if err != nil {
			return protocol.Input{}, err
		}
		data, err := k.store.Get(ctx, id, t.Size)
		if err != nil {
			return protocol.Input{}, fmt.Errorf("read attached text: %w", err)
		}
		read[t.ID] = string(data)
	}
	return ledger.Replace(k.input, k.texts, func(t ledger.Text) string { return read[t.ID] }), nil
}

// foundRequest is a request as the space knows it. Its kept input has the texts that it lacks.
type foundRequest struct {
	request protocol.Request
	kept    keptInput
}

// whole returns the request with all its texts. It waits for the disk; errors are those of keptInput.read.
func (f foundRequest) whole(ctx context.Context) (protocol.Request, error) {
	if len(f.kept.texts) == 0 {
		return f.request, nil
	}
	in, err := f.kept.read(ctx)
	if err != nil {
		return protocol.Request{}, err
	}
	return ledger.WithInput(f.request, in), nil
}

// foundRun is a run as the space or its session knows it. Its text may have to be made of the input of the request that started it.
type foundRun struct {
	run  protocol.Run
	kept keptInput
}

// whole returns the run with its text. It waits for the disk; errors are those of keptInput.read.
func (f foundRun) whole(ctx context.Context) (protocol.Run, error) {
	if len(f.kept.texts) == 0 {
		return f.run, nil
	}
	in, err := f.kept.read(ctx)
	if err != nil {
		return protocol.Run{}, err
	}
	f.run.Text = inputText(in)
	return f.run, nil
}

// found returns a request that the space knows, nil when there is none.
func (l *loadedSpace) found(id protocol.ID) *foundRequest {
	r := l.state.Requests[id]
	if r == nil {
		return nil
	}
	return &foundRequest{*r, keptInput{r.Input, l.state.Texts[id], l.space.Store()}}
}

// foundRun completes a run of the state.
func (l *loadedSpace) foundRun(run protocol.Run) foundRun {
	f := foundRun{run: run}
	if texts := l.state.TextsOf(run); len(texts) > 0 {
		if r := l.state.Requests[run.RequestIDs[0]]; r != nil {
			f.kept = keptInput{r.Input, texts, l.space.Store()}
		}
	}
	return f
}

// appendAdmission makes an admission durable: first the texts that it names, held by the request, then the record.
func appendAdmission(ctx context.Context, store *cas.Store, log *recordlog.Log, f ledger.Admitted) error {
	if len(f.Texts) == 0 {
		return appendFacts(ctx, log, f)
	}
	owner := requestOwner(f.Request.RequestID)
	texts := make([][]byte, len(f.Texts))
	for i, t := range f.Texts {
		texts[i] = []byte(f.Request.Input.Parts[t.Part].Text)
	}
	if _, err := store.PutHeld(ctx, owner, texts...); err != nil {
		return fmt.Errorf("keep attached text: %w", err)
	}
	err := appendFacts(ctx, log, f)
	if err == nil || errors.Is(err, recordlog.ErrFailed) || ctx.Err() != nil {
		return err // after a failure that left the outcome open, the next opening of the space decides what the request holds
	}
	return errors.Join(err, store.Release(ctx, owner))
}

// inputText flattens an input for the model: its parts joined by blank lines, a selection labelled with where it is from.
func inputText(in protocol.Input) string {
	var parts []string
	for _, p := range in.Parts {
		switch p.Kind {
		case "selection":
			source := ""
			if t := p.Source; t != nil && t.Target.Location != nil {
				source = " from " + t.Target.Location.Path
			}
			parts = append(parts, "Selected text"+source+":\n\n"+p.Text)
		default:
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}
