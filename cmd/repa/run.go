package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/google/uuid"

	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type runCommand struct {
	Space    string   `help:"${flag_space}" placeholder:"DIR" default:"."`
	Example  bool     `help:"${flag_example}"`
	Session  string   `help:"${flag_session}" placeholder:"ID" xor:"session"`
	Continue bool     `short:"c" help:"${flag_continue}" xor:"session"`
	New      bool     `help:"${flag_new}" xor:"session"`
	Model    string   `help:"${flag_model}" placeholder:"CONNECTION/MODEL"`
	Output   string   `help:"${flag_output} ${enum}." enum:"text,json,stream-json" default:"text"`
	Prompt   []string `arg:"" optional:"" help:"${run_prompt}"`
}

// oneShot is one execution of the command, with whatever is known of its result.
type oneShot struct {
	*runCommand
	t      *terminal
	watch  watcher
	result runResult
}

// Run asks once.
func (c *runCommand) Run(ctx context.Context, t *terminal) error {
	o := &oneShot{runCommand: c, t: t, watch: quietWatcher{}, result: runResult{Status: statusFailed, Changes: []change{}}}
	switch c.Output {
	case outputText:
		o.watch = newTextWatcher(t)
	case outputStream:
		o.watch, o.result.Type = streamWatcher{t.out}, "result"
	}
	return o.finish(o.ask(ctx))
}

// finish prints the result in the form that was asked for and turns it into the exit code.
func (o *oneShot) finish(err error) error {
	if w, ok := o.watch.(*textWatcher); ok {
		w.endLine()
	}
	if o.Output != outputText {
		if err != nil && o.result.Error == nil {
			o.result.Error = failureOf(err)
		}
		printJSON(o.t.out, o.result)
		err = nil
	}
	var usage *exit
	switch {
	case errors.As(err, &usage):
		return err
	case err != nil:
		return &exit{exitFailed, err.Error()}
	case o.result.Status == string(protocol.RunCompleted):
		return nil
	case o.result.Status == string(protocol.RunCancelled):
		if o.Output == outputText {
			o.t.say(messages.Cancelled)
		}
		return &exit{code: exitCancelled}
	case o.result.Error != nil && o.result.Error.Code == codeUsage:
		return &exit{code: exitUsage}
	case o.Output == outputText && o.result.Error != nil:
		return o.t.fail(exitFailed, messages.RunFailed, o.result.Error.Code, o.result.Error.Message)
	}
	return &exit{code: exitFailed}
}

// codeUsage is the error code of a command line without a question.
const codeUsage = "usage"

func (o *oneShot) ask(ctx context.Context) error {
	input, err := o.input()
	if err != nil {
		return err
	}
	dir := o.Space
	if o.Example {
		if dir, err = o.t.exampleFolder(); err != nil {
			return err
		}
		o.t.quiet = true
	}
	path, err := o.t.checkSpace(dir)
	if err != nil {
		return err
	}
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	c, s, err := o.t.enter(interrupted, path)
	if err != nil {
		return o.cancelled(interrupted, err)
	}
	defer leave(c)
	selection, err := o.t.selectModel(interrupted, c, o.Model)
	if err != nil {
		return o.cancelled(interrupted, err)
	}
	session, err := o.session(interrupted, c, s)
	if err != nil {
		return o.cancelled(interrupted, err)
	}
	o.result.SessionID = &session
	o.line(struct {
		Type      string      `json:"type"`
		SessionID protocol.ID `json:"sessionId"`
		SpaceID   protocol.ID `json:"spaceId"`
		Path      string      `json:"path"`
	}{"session", session, s.ID, s.Path})
	return o.turn(ctx, interrupted, c, protocol.Submit{
		Target: protocol.SessionKey{SpaceID: s.ID, SessionID: session}, RequestID: protocol.ID(uuid.NewString()),
		Input: input, Dispatch: protocol.Dispatch{Kind: "start"}, Selection: selection,
	})
}

// cancelled tells a failure from a wait that Ctrl+C ended.
func (o *oneShot) cancelled(interrupted context.Context, err error) error {
	if interrupted.Err() == nil {
		return err
	}
	o.result.Status = string(protocol.RunCancelled)
	return nil
}

// line prints one object of stream-json.
func (o *oneShot) line(v any) {
	if o.Output == outputStream {
		printJSON(o.t.out, v)
	}
}

// input is the question and, as a part of its own, what was piped in.
func (o *oneShot) input() (protocol.Input, error) {
	question := strings.TrimSpace(strings.Join(o.Prompt, " "))
	piped, err := o.t.pipedText()
	if err != nil {
		return protocol.Input{}, err
	}
	var in protocol.Input
	switch {
	case question != "" && piped != "":
		in.Parts = []protocol.InputPart{protocol.TextPart(question), protocol.TextPart(o.t.text(messages.StdinText) + "\n" + piped)}
	case question != "":
		in.Parts = []protocol.InputPart{protocol.TextPart(question)}
	case strings.TrimSpace(piped) != "":
		in.Parts = []protocol.InputPart{protocol.TextPart(piped)}
	default:
		o.result.Error = &failure{codeUsage, o.t.text(messages.NoPrompt)}
		return in, o.t.fail(exitUsage, messages.NoPrompt)
	}
	return in, nil
}

func (o *oneShot) session(ctx context.Context, c *client.Client, s protocol.Space) (protocol.ID, error) {
	if o.Session != "" {
		id := protocol.ID(o.Session)
		return id, o.t.findSession(ctx, c, s, id)
	}
	if o.Continue {
		id, ok, err := recentSession(ctx, c, s.ID)
		if err == nil && !ok {
			err = &coded{protocol.CodeNotFound, o.t.text(messages.NoSession, s.Path)}
		}
		return id, err
	}
	return newSession(ctx, c, s.ID)
}

// turn submits and follows the run to its end. Ctrl+C cancels the run and waits for its end; once more leaves at once.
func (o *oneShot) turn(ctx, interrupted context.Context, c *client.Client, submit protocol.Submit) error {
	key := submit.Target
	replica, err := watchFromHere(ctx, c, key)
	if err != nil {
		return err
	}
	o.result.RequestID = &submit.RequestID
	r, err := client.Call(ctx, c, protocol.SessionSubmit, submit)
	if err != nil {
		return err
	}
	o.line(struct {
		Type      string                 `json:"type"`
		RequestID protocol.ID            `json:"requestId"`
		Status    protocol.RequestStatus `json:"status"`
	}{"request", r.RequestID, r.Status})
	o.result.RunID = &r.RunID
	follow, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := context.AfterFunc(interrupted, func() { o.stop(follow, cancel, c, key.SpaceID, r.RunID) })
	defer stopped()
	f := newFollower(r.RequestID, r.RunID, o.watch)
	err = f.follow(follow, replica)
	o.result.Text, o.result.Changes = f.answer, f.changes
	if err != nil {
		return o.lost(interrupted, err)
	}
	o.result.Status = string(f.ended.Status)
	if e := f.ended.Error; e != nil {
		o.result.Error = &failure{e.Code, e.Message}
	}
	return o.account(ctx, c, key.SpaceID, r.RequestID)
}

// stop cancels the run; a second Ctrl+C ends the wait for its end.
func (o *oneShot) stop(ctx context.Context, leave context.CancelFunc, c *client.Client, space, run protocol.ID) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt)
	defer signal.Stop(again)
	o.t.say(messages.Cancelling)
	if _, err := client.Call(ctx, c, protocol.RunCancel, protocol.RunParams{SpaceID: space, RunID: run}); err != nil && ctx.Err() == nil {
		fmt.Fprintln(o.t.err, "repa: "+err.Error())
	}
	select {
	case <-again:
		leave()
	case <-ctx.Done():
	}
}

func (o *oneShot) lost(interrupted context.Context, err error) error {
	if interrupted.Err() != nil {
		o.result.Status = string(protocol.RunCancelled)
		return nil
	}
	if errors.Is(err, client.ErrReplicaClosed) {
		return &coded{protocol.CodeInterrupted, o.t.text(messages.BackendLost)}
	}
	return err
}

// account asks what the run used.
func (o *oneShot) account(ctx context.Context, c *client.Client, space, request protocol.ID) error {
	record, err := client.Call(ctx, c, protocol.RequestGet, protocol.RequestGetParams{SpaceID: space, RequestID: request})
	if err != nil {
		return err
	}
	if record.Request == nil {
		return nil
	}
	free := true
	for _, a := range record.Request.ModelAttempts {
		free = free && (a.Binding.Connection.Provider == string(connection.Builtin) || a.Binding.Connection.Provider == string(connection.Ollama))
		if u := a.Usage; u != nil {
			o.result.Usage.Input += u.Input
			o.result.Usage.Output += u.Output
			o.result.Usage.CacheRead += u.CacheRead
			o.result.Usage.CacheWrite += u.CacheWrite
		}
	}
	if free {
		o.result.Usage.Cost = new(float64)
	}
	return nil
}
