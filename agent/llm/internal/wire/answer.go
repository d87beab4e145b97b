package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// Answer is the message in the making. It emits the events of what is added to it.
type Answer struct {
	Message *llm.Message
	emit    func(llm.Event)
	parts   []*Part
	started bool
	stop    llm.StopReason // empty until the terminal event
}

func newAnswer(c *Conn, req *llm.Request, emit func(llm.Event)) *Answer {
	if emit == nil {
		emit = func(llm.Event) {}
	}
	return &Answer{emit: emit, Message: &llm.Message{
		Role: llm.RoleAssistant, API: c.API, Provider: c.Provider, Model: req.Model, ThinkingLevel: req.Thinking,
		Usage: &llm.Usage{}, Timestamp: time.Now().UnixMilli(),
	}}
}

// Start emits EventStart unless it was emitted. Families call it for each event of the stream.
func (a *Answer) Start() {
	if !a.started {
		a.started = true
		a.emit(llm.Event{Type: llm.EventStart})
	}
}

// Describe records what the provider says about the answer. Empty values say nothing.
func (a *Answer) Describe(id, model string) {
	if id != "" {
		a.Message.ResponseID = id
	}
	if model != "" && model != a.Message.Model {
		a.Message.ResponseModel = model
	}
}

// Stop records the terminal event.
func (a *Answer) Stop(reason llm.StopReason, raw string) {
	a.stop, a.Message.RawStopReason = reason, raw
}

// Refused is the error for a stop reason that means there is no proper answer.
func (a *Answer) Refused(raw, words string) error {
	a.Message.RawStopReason = raw
	if words != "" {
		raw += ": " + words
	}
	return &llm.Error{Kind: llm.KindRefused, Words: "its stop reason is " + raw}
}

// Part is one block in the making.
type Part struct {
	Block llm.Block // all but the text that is added
	a     *Answer
	index int
	text  strings.Builder
	done  bool
}

// Open begins a block.
func (a *Answer) Open(b llm.Block) *Part {
	p := &Part{Block: b, a: a, index: len(a.parts)}
	a.parts = append(a.parts, p)
	return p
}

// Add appends text, thinking, or a piece of a tool call's arguments.
func (p *Part) Add(text string) {
	if text == "" || p.done {
		return
	}
	p.text.WriteString(text)
	p.a.emit(llm.Event{Type: llm.EventDelta, Index: p.index, Block: p.Block.Type, Text: text})
}

// Close completes the block and emits it. Closing again does nothing.
func (p *Part) Close() {
	if p.done {
		return
	}
	p.seal()
	done := p.Block
	p.a.emit(llm.Event{Type: llm.EventBlock, Index: p.index, Block: done.Type, Done: &done})
}

func (p *Part) seal() {
	if p.done {
		return
	}
	p.done = true
	switch p.Block.Type {
	case llm.BlockText:
		p.Block.Text += p.text.String()
	case llm.BlockThinking:
		p.Block.Thinking += p.text.String()
	case llm.BlockToolCall:
		p.Block.Arguments, p.Block.ArgumentsError = arguments(p.text.String())
	}
}

// arguments checks what a model wrote as arguments. Nothing and null stand for no arguments.
func arguments(text string) (json.RawMessage, string) {
	raw := bytes.TrimSpace([]byte(text))
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), ""
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		const shown = 200 // enough to see what the model did wrong
		return json.RawMessage("{}"), fmt.Sprintf("the arguments are no JSON object (%v): %.*s", err, shown, raw)
	}
	return raw, ""
}

func (a *Answer) finish() *llm.Message {
	for _, p := range a.parts {
		p.Close()
	}
	a.collect()
	calls := len(a.Message.ToolCalls()) > 0
	switch {
	case a.stop == llm.StopEnd && calls: // several servers say stop after tool calls
		a.stop = llm.StopToolUse
	case a.stop == llm.StopToolUse && !calls:
		a.stop = llm.StopEnd
	}
	a.Message.StopReason = a.stop
	return a.Message
}

// fail keeps what arrived.
func (a *Answer) fail(e *llm.Error) *llm.Message {
	for _, p := range a.parts {
		p.seal()
	}
	a.collect()
	a.Message.StopReason, a.Message.ErrorMessage = llm.StopError, e.Error()
	if e.Kind == llm.KindAborted {
		a.Message.StopReason = llm.StopAborted
	}
	return a.Message
}

func (a *Answer) collect() {
	a.Message.Content = make([]llm.Block, 0, len(a.parts))
	for _, p := range a.parts {
		a.Message.Content = append(a.Message.Content, p.Block)
	}
}
