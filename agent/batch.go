package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

// What a model is told about calls that were not executed. The words for an unknown tool and an abort are Pi's.
const (
	saidAborted = "Operation aborted"
	saidLength  = "The answer reached the output limit before this call was complete, so it was not executed. " +
		"Make the call again with complete arguments; split large content into smaller calls."
	saidEnded = "Not executed: the run was ended because the same call was repeated."
)

// call is one tool call of a batch.
type call struct {
	block     llm.Block
	*callable                 // nil: no such tool
	args      json.RawMessage // checked and corrected
	result    *tool.Result    // nil: not finished
	duration  *int64
}

// batch executes the calls of one assistant message and records their results together, in the order of the calls.
func (r *run) batch(ctx context.Context, stop llm.StopReason, blocks []llm.Block) error {
	r.Sink.Emit(Event{Type: EventPhase, Phase: PhaseTool})
	calls := make([]*call, len(blocks))
	sequential := false
	for i, b := range blocks {
		calls[i] = &call{block: b, callable: r.tools[b.Name]}
		sequential = sequential || calls[i].callable != nil && calls[i].tool.Sequential()
	}
	var ended error
	for group := range slices.Chunk(calls, groupSize(sequential, len(calls))) {
		if err := r.group(ctx, stop, group, ended); ended == nil {
			ended = err
		}
	}
	records := make([]Record, len(calls))
	for i, c := range calls {
		records[i].Message = c.message(r.Now())
	}
	if err := r.record(ctx, records, nil); err != nil {
		return err
	}
	if ended == nil && ctx.Err() != nil {
		ended = errAborted
	}
	return ended
}

func groupSize(sequential bool, calls int) int {
	if sequential {
		return 1
	}
	return calls
}

// group prepares its calls one after the other, then runs those that can run side by side. After ended no call is prepared; it
// returns why the run must end.
func (r *run) group(ctx context.Context, stop llm.StopReason, calls []*call, ended error) error {
	var ready []*call
	for _, c := range calls {
		switch {
		case ended != nil:
			c.fail(saidEnded)
			continue
		case ctx.Err() != nil:
			c.fail(saidAborted)
			continue
		}
		r.Sink.Emit(Event{Type: EventToolStart, CallID: c.block.ID, Tool: c.block.Name, Args: c.block.Arguments})
		if ended = r.same.next(c.block); ended != nil {
			c.fail(ended.Error())
		} else {
			c.prepare(stop)
		}
		if c.result != nil {
			r.toolEnd(c)
		} else {
			ready = append(ready, c)
		}
	}
	if ctx.Err() != nil {
		for _, c := range ready {
			c.fail(saidAborted)
			r.toolEnd(c)
		}
		return ended
	}
	r.execute(ctx, ready)
	return ended
}

func (r *run) toolEnd(c *call) {
	r.Sink.Emit(Event{Type: EventToolEnd, CallID: c.block.ID, Tool: c.block.Name, Args: c.block.Arguments, IsError: c.result.IsError})
}

// prepare checks a call; one that cannot be executed gets its error result here.
func (c *call) prepare(stop llm.StopReason) {
	switch {
	case stop == llm.StopLength:
		c.fail(saidLength)
	case c.callable == nil:
		c.fail(fmt.Sprintf("Tool %s not found", c.block.Name))
	case c.block.ArgumentsError != "":
		c.fail(fmt.Sprintf("The arguments for tool %q could not be read: %s. Make the call again with a valid JSON object.", c.block.Name, c.block.ArgumentsError))
	default:
		args := c.block.Arguments
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		if p, ok := c.tool.(tool.Preparer); ok {
			args = p.Prepare(args)
		}
		var err error
		if c.args, err = c.check(args); err != nil {
			c.fail(err.Error())
		}
	}
}

func (c *call) fail(text string) {
	r := errorResult(text)
	c.result = &r
}

func errorResult(text string) tool.Result {
	r := tool.Text(text)
	r.IsError = true
	return r
}

// finished is what a tool's goroutine reports.
type finished struct {
	call     *call
	result   tool.Result
	duration time.Duration
}

// execute runs the calls side by side and reports each end as it comes. Once the run is stopped, tools that change content are
// waited for, the others for abortGrace.
func (r *run) execute(ctx context.Context, calls []*call) {
	results := make(chan finished, len(calls)) // holds them all: an abandoned tool must not block for ever when it ends
	ends := make([]chan struct{}, len(calls))
	for i, c := range calls {
		ends[i] = make(chan struct{})
		go func() {
			defer close(ends[i])
			begun := time.Now()
			result := r.call(ctx, c)
			results <- finished{c, result, time.Since(begun)}
		}()
	}
	stopped, grace := ctx.Done(), (<-chan time.Time)(nil)
	for left := len(calls); left > 0; {
		select {
		case f := <-results:
			if f.call.result != nil {
				continue // abandoned before
			}
			ms := f.duration.Milliseconds()
			f.call.result, f.call.duration = &f.result, &ms
			r.toolEnd(f.call)
			left--
		case <-stopped:
			stopped = nil
			timer := time.NewTimer(abortGrace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			grace = nil
			for i, c := range calls {
				if c.result != nil || c.tool.Sequential() {
					continue
				}
				c.fail(saidAborted)
				r.result.Abandoned = append(r.result.Abandoned, Abandoned{c.block.ID, c.block.Name, ends[i]})
				r.toolEnd(c)
				left--
			}
		}
	}
}

// call executes one tool. Errors and panics become error results.
func (r *run) call(ctx context.Context, c *call) (result tool.Result) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("a tool panicked", "tool", c.block.Name, "panic", p, "stack", string(debug.Stack()))
			result = errorResult(fmt.Sprintf("The tool %s has a fault and stopped: %v", c.block.Name, p))
		}
	}()
	result, err := c.tool.Execute(ctx, c.block.ID, c.args)
	switch {
	case err == nil:
		return result
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return errorResult(saidAborted)
	default:
		return tool.Failure(err)
	}
}

// message is the call's result as history keeps it.
func (c *call) message(now time.Time) llm.Message {
	m := llm.Message{
		Role: llm.RoleToolResult, ToolCallID: c.block.ID, ToolName: c.block.Name, Content: c.result.Content,
		Details: c.result.Details, IsError: &c.result.IsError, DurationMs: c.duration, Timestamp: now.UnixMilli(),
	}
	if m.Content == nil {
		m.Content = []llm.Block{}
	}
	if m.Details == nil {
		m.Details = json.RawMessage("{}")
	}
	return m
}

// sameCalls counts equal calls in a row.
type sameCalls struct {
	last string
	n    int
}

func (s *sameCalls) next(b llm.Block) error {
	var args bytes.Buffer
	if json.Compact(&args, b.Arguments) != nil {
		args.Write(b.Arguments)
	}
	key := b.Name + "\x00" + args.String()
	if key != s.last {
		s.last, s.n = key, 0
	}
	if s.n++; s.n < maxSameCalls {
		return nil
	}
	return &Error{"runtime", fmt.Sprintf("the run was ended: the model made the same call of %s %d times in a row. "+
		"Say what to do differently, or use another model", b.Name, maxSameCalls), nil}
}
