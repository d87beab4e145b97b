package offline

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/repa-app/repa/agent/llm"
)

// API names this family in messages, as the wire families name theirs.
const API = "offline"

// providerName is what messages and errors say about who answered.
const providerName = "builtin"

// New returns the built-in provider. Its only error is that of an ended context; then StopReason is aborted and the message
// holds what was emitted.
func New() llm.Provider { return provider{} }

type provider struct{}

// Stream implements llm.Provider.
func (provider) Stream(ctx context.Context, req *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	if emit == nil {
		emit = func(llm.Event) {}
	}
	m := &llm.Message{
		Role: llm.RoleAssistant, API: API, Provider: providerName, Model: req.Model, ThinkingLevel: req.Thinking,
		Content: []llm.Block{}, Usage: &llm.Usage{}, Timestamp: time.Now().UnixMilli(),
	}
	w := &writer{ctx: ctx, emit: emit, message: m}
	if ctx.Err() == nil {
		w.emit(llm.Event{Type: llm.EventStart})
	}
	if ctx.Err() == nil { // finding the answer reads all that the tools said
		w.blocks(next(req))
	}
	if ctx.Err() != nil && !w.complete {
		err := &llm.Error{Provider: providerName, Kind: llm.KindAborted, Words: ctx.Err().Error(), Cause: ctx.Err()}
		m.StopReason, m.ErrorMessage = llm.StopAborted, err.Error()
		return m, err
	}
	m.StopReason = llm.StopEnd
	if len(m.ToolCalls()) > 0 {
		m.StopReason = llm.StopToolUse
	}
	return m, nil
}

// writer emits blocks and keeps in the message what was emitted.
type writer struct {
	ctx      context.Context
	emit     func(llm.Event)
	message  *llm.Message
	complete bool // every block was emitted
}

func (w *writer) blocks(blocks []llm.Block) {
	for i, b := range blocks {
		if !w.block(i, b) {
			return
		}
	}
	w.complete = true
}

// block emits one block; false means that the context ended before the block was complete.
func (w *writer) block(index int, b llm.Block) bool {
	text := b.Text
	if b.Type == llm.BlockToolCall {
		text = string(b.Arguments)
	}
	at := len(w.message.Content)
	for rest := text; rest != ""; {
		if w.ctx.Err() != nil {
			return false
		}
		n := piece(rest)
		if b.Type == llm.BlockText { // a call counts only when it is whole
			if at == len(w.message.Content) {
				w.message.Content = append(w.message.Content, llm.Block{Type: llm.BlockText})
			}
			w.message.Content[at].Text += rest[:n]
		}
		w.emit(llm.Event{Type: llm.EventDelta, Index: index, Block: b.Type, Text: rest[:n]})
		rest = rest[n:]
	}
	if w.ctx.Err() != nil {
		return false
	}
	w.message.Content = append(w.message.Content[:at], b)
	w.emit(llm.Event{Type: llm.EventBlock, Index: index, Block: b.Type, Done: &b})
	return true
}

// piece is the length of the next delta: the size in which wire providers usually send, so that front ends see the same.
func piece(text string) int {
	const words, runes = 4, 24
	seenWords, seenRunes := 0, 0
	for i, r := range text {
		if seenWords == words || seenRunes == runes {
			return i
		}
		seenRunes++
		if strings.ContainsRune(" \n", r) {
			seenWords++
		}
	}
	return len(text)
}

// cut is text, or its first limit characters and an ellipsis.
func cut(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit])) + "…"
}
