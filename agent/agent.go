package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/tool"
)

const (
	// defaultMaxTurns ends a run that keeps calling tools. Real work in a folder of notes takes a handful of turns, long research
	// about thirty; a run beyond 50 has lost its way and costs the learner money.
	defaultMaxTurns = 50

	// maxSameCalls ends a run that makes the same call with the same arguments again and again. Twice happens (a check after a
	// change), three times is a model that waits; the fifth will not answer differently.
	maxSameCalls = 5

	// abortGrace is how long a stopped run waits for tools that change nothing. They end within milliseconds when they watch
	// their context; two seconds cover a slow disk, and nobody who pressed stop waits longer than that.
	abortGrace = 2 * time.Second
)

// Incoming is a message that enters history, with the request it belongs to.
type Incoming struct {
	RequestID string
	Message   llm.Message
}

// Inbox holds input for a running run. Both methods return at once, and what they return is taken: at most one message in
// one-at-a-time mode, else all that wait. They are called from the goroutine of Run.
type Inbox interface {
	Steering(ctx context.Context) []Incoming
	FollowUps(ctx context.Context) []Incoming
}

// Record is one message to be made durable.
type Record struct {
	RequestID string // "": the message belongs to no request of its own
	Message   llm.Message
}

// Recorder appends messages to history, all or none, and returns their entry ids once they are durable. The context does not
// end with the run: a stopped run still records what was said.
type Recorder interface {
	Append(ctx context.Context, records []Record) ([]string, error)
}

// Sink sees the events of a run. Emit must not block and must not change what the event refers to.
type Sink interface {
	Emit(Event)
}

// Config is what a run needs. Provider, Model and Recorder are required.
type Config struct {
	Provider  llm.Provider
	Model     string
	Thinking  string // "": the model's default
	MaxTokens int    // 0: the provider's default
	NoImages  bool   // the model takes no images
	SessionID string // a stable key for the provider's prompt cache

	System  string
	Tools   []tool.Tool
	History []llm.Message // the context before this run
	Prompt  []Incoming    // starts the run

	Inbox    Inbox // nil: nothing ever waits
	Recorder Recorder
	Sink     Sink // nil: nobody looks

	MaxTurns int              // 0: 50
	NewID    func() string    // makes the random part of live ids; nil: UUIDs
	Now      func() time.Time // nil: the system's
	Log      *slog.Logger     // for the stacks of panics in tools; nil: the default logger
}

func (c Config) withDefaults() Config {
	if c.Inbox == nil {
		c.Inbox = nothing{}
	}
	if c.Sink == nil {
		c.Sink = nothing{}
	}
	if c.MaxTurns == 0 {
		c.MaxTurns = defaultMaxTurns
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// nothing is an empty inbox and a sink that nobody looks at.
type nothing struct{}

func (nothing) Steering(context.Context) []Incoming  { return nil }
func (nothing) FollowUps(context.Context) []Incoming { return nil }
func (nothing) Emit(Event)                           {}

// Status is how a run ended.
type Status string

const (
	Completed Status = "completed"
	Failed    Status = "failed"
	Aborted   Status = "aborted" // its context ended before the run did, even if the answer was complete by then
)

// Result is the outcome of a run.
type Result struct {
	Status      Status
	Err         error          // of a failed run; has a Code() string
	Usage       llm.Usage      // of all model calls of the run
	StopReason  llm.StopReason // of the last assistant message; "" when there was none
	Undelivered []Incoming     // given by the prompt or the inbox, but not recorded
	Abandoned   []Abandoned    // tools that were still running when the run ended
}

// Abandoned is a tool that did not stop when the run was stopped. Its result is dropped.
type Abandoned struct {
	CallID, Tool string
	Done         <-chan struct{} // closed when the tool returned
}

// Error is why a run failed, unless the provider or the recorder said it. Its code is runtime, configuration or storage.
type Error struct {
	code, message string
	cause         error
}

func (e *Error) Error() string { return e.message }
func (e *Error) Unwrap() error { return e.cause }

// Code is the stable domain code.
func (e *Error) Code() string { return e.code }
