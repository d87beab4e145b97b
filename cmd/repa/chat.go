package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/google/uuid"
	"golang.org/x/term"

	"github.com/repa-app/repa/cmd/repa/messages"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
)

type chatCommand struct {
	Dir   string `arg:"" optional:"" default:"." help:"${flag_space}"`
	Model string `help:"${flag_model}" placeholder:"CONNECTION/MODEL"`
}

// maxLine bounds one line of input, like a submission.
const maxLine = maxStdin

// lineMode is a front end that reads lines. One goroutine reads, one receives the updates of the run; deciding and printing is
// done in loop's goroutine.
type lineMode struct {
	t         *terminal
	client    *client.Client
	space     protocol.Space
	session   protocol.ID
	selection *protocol.RunSelection
	prompt    bool // a terminal: show where to write

	turn      *follower // of the run that is followed; nil: nothing runs here
	out       *textWatcher
	unfollow  context.CancelFunc
	updates   chan news
	receiving sync.WaitGroup
}

// news is an update of the followed run, or the end of its receiver.
type news struct {
	turn   *follower
	update client.Update
	err    error
}

// Run talks until the input ends or the learner leaves.
func (c *chatCommand) Run(ctx context.Context, t *terminal) error {
	cl, s, err := t.enterDir(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer leave(cl)
	m := &lineMode{t: t, client: cl, space: s, updates: make(chan news), out: newTextWatcher(t), prompt: term.IsTerminal(int(t.in.Fd()))}
	if m.selection, err = t.selectModel(ctx, cl, c.Model); err != nil {
		return err
	}
	id, ok, err := recentSession(ctx, cl, s.ID)
	if err == nil && !ok {
		id, err = newSession(ctx, cl, s.ID)
	}
	if err != nil {
		return err
	}
	m.session = id
	if m.prompt {
		t.say(messages.ChatWelcome, s.Path)
	}
	return m.loop(ctx)
}

func (m *lineMode) loop(ctx context.Context) error {
	follow, stop := context.WithCancel(ctx)
	defer m.receiving.Wait()
	defer stop()
	lines, readErr := m.read(follow)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	m.ask()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return m.drain(follow, readErr)
			}
			if leave, err := m.line(follow, line); leave || err != nil {
				return err
			}
		case n := <-m.updates:
			if err := m.news(n); err != nil {
				return err
			}
		case <-interrupts:
			if m.turn == nil {
				return nil
			}
			m.cancel(follow)
		}
	}
}

// read hands over the lines of the input. The goroutine ends with the input, or with the process when the terminal blocks it.
func (m *lineMode) read(ctx context.Context) (<-chan string, *error) {
	lines, failed := make(chan string), new(error)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(m.t.in)
		s.Buffer(make([]byte, 64<<10), maxLine)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
		*failed = s.Err()
	}()
	return lines, failed
}

// drain waits for the end of what runs when the input has ended: a script wants the answer.
func (m *lineMode) drain(ctx context.Context, readErr *error) error {
	if *readErr != nil && !errors.Is(*readErr, io.EOF) {
		return *readErr
	}
	for m.turn != nil {
		select {
		case n := <-m.updates:
			if err := m.news(n); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (m *lineMode) ask() {
	if m.prompt && m.turn == nil {
		fmt.Fprint(m.t.err, "> ")
	}
}

// line handles one line; leave says that the learner wants to go.
func (m *lineMode) line(ctx context.Context, line string) (leave bool, err error) {
	text := strings.TrimSpace(line)
	if strings.HasPrefix(text, "/") {
		leave, err = m.command(ctx, text)
	} else if text != "" {
		err = m.send(ctx, text)
	}
	if err != nil && !fatal(err) {
		m.complain(err)
		err = nil
	}
	if !leave {
		m.ask()
	}
	return leave, err
}

// fatal tells a lost backend from what the learner can mend and try again.
func fatal(err error) bool {
	return errors.Is(err, client.ErrNotConnected) || errors.Is(err, context.Canceled)
}

func (m *lineMode) key() protocol.SessionKey {
	return protocol.SessionKey{SpaceID: m.space.ID, SessionID: m.session}
}

// send starts a run, or supplements the one that runs.
func (m *lineMode) send(ctx context.Context, text string) error {
	submit := protocol.Submit{Target: m.key(), RequestID: protocol.ID(uuid.NewString()),
		Input: protocol.Input{Parts: []protocol.InputPart{protocol.TextPart(text)}}}
	if m.turn != nil {
		submit.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: m.turn.run}
		r, err := client.Call(ctx, m.client, protocol.SessionSubmit, submit)
		if err != nil {
			return err
		}
		if r.Status == protocol.RequestNotEntered {
			m.say(messages.NotEntered, r.RequestID, r.Delivery.Reason, text)
		} else {
			m.say(messages.ChatSteered)
		}
		return nil
	}
	submit.Dispatch, submit.Selection = protocol.Dispatch{Kind: "start"}, m.selection
	replica, err := watchFromHere(ctx, m.client, m.key())
	if err != nil {
		return err
	}
	r, err := client.Call(ctx, m.client, protocol.SessionSubmit, submit)
	if err != nil {
		replica.Close(ctx)
		return err
	}
	m.follow(ctx, newFollower(r.RequestID, r.RunID, m.out), replica)
	return nil
}

// follow receives the updates of a run until nobody wants them any more.
func (m *lineMode) follow(ctx context.Context, f *follower, replica *client.Replica) {
	m.out.begin()
	m.turn = f
	ctx, m.unfollow = context.WithCancel(ctx)
	m.receiving.Go(func() {
		defer replica.Close(context.WithoutCancel(ctx)) // the backend must hear of it also when the wait was ended
		for {
			u, err := replica.Next(ctx)
			select {
			case m.updates <- news{f, u, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
}

// news shows an update of the run; the last one ends the turn.
func (m *lineMode) news(n news) error {
	if n.turn != m.turn {
		return nil // of a run that is not looked at any more
	}
	if n.err != nil {
		return n.err
	}
	m.turn.update(n.update)
	ended := m.turn.ended
	if ended == nil {
		return nil
	}
	m.leaveRun()
	switch {
	case ended.Status == protocol.RunCancelled:
		m.say(messages.Cancelled)
	case ended.Error != nil:
		m.say(messages.RunFailed, ended.Error.Code, ended.Error.Message)
	}
	m.ask()
	return nil
}

// leaveRun stops looking at the run.
func (m *lineMode) leaveRun() {
	m.out.endLine()
	m.unfollow()
	m.turn = nil
}

// say prints a line beside the answer.
func (m *lineMode) say(message messages.Message, args ...any) {
	m.out.endLine()
	m.t.say(message, args...)
}

func (m *lineMode) complain(err error) {
	m.out.endLine()
	fmt.Fprintln(m.t.err, "repa: "+err.Error())
}

func (m *lineMode) cancel(ctx context.Context) {
	if m.turn == nil {
		m.say(messages.ChatNothing)
		return
	}
	if _, err := client.Call(ctx, m.client, protocol.RunCancel, protocol.RunParams{SpaceID: m.space.ID, RunID: m.turn.run}); err != nil {
		m.complain(err)
	}
}

func (m *lineMode) command(ctx context.Context, text string) (leave bool, err error) {
	name, argument, _ := strings.Cut(text, " ")
	switch name {
	case "/help":
		m.say(messages.ChatHelp)
	case "/exit", "/quit":
		return true, nil
	case "/cancel":
		m.cancel(ctx)
	case "/sessions":
		m.out.endLine()
		err = m.t.listSessions(ctx, m.client, m.space, outputText)
	case "/new":
		var id protocol.ID
		if id, err = newSession(ctx, m.client, m.space.ID); err == nil {
			m.change(id)
			m.say(messages.ChatNew, id)
		}
	case "/use":
		err = m.use(ctx, protocol.ID(strings.TrimSpace(argument)))
	default:
		m.say(messages.ChatUnknown, name)
	}
	return false, err
}

func (m *lineMode) use(ctx context.Context, id protocol.ID) error {
	if id == "" {
		m.say(messages.ChatUseWhich)
		return nil
	}
	if err := m.t.findSession(ctx, m.client, m.space, id); err != nil {
		return err
	}
	v, err := client.Call(ctx, m.client, protocol.SessionGet, protocol.SessionKey{SpaceID: m.space.ID, SessionID: id})
	if err != nil {
		return err
	}
	m.change(id)
	m.say(messages.ChatUse, id, v.Title)
	return nil
}

// change looks at another session. What runs in the old one goes on.
func (m *lineMode) change(id protocol.ID) {
	if m.turn != nil && id != m.session {
		m.say(messages.ChatBusySwap)
		m.leaveRun()
	}
	m.session = id
}
