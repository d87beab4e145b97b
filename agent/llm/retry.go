package llm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RetryPolicy says how often and after which pauses a failed call is repeated. Zero fields mean the defaults.
type RetryPolicy struct {
	MaxRetries int           // 3: with the pauses below about a quarter of a minute, which covers most short outages
	Base       time.Duration // 2 s: the pause before the first repetition; each further pause is twice as long
	Cap        time.Duration // 60 s: nobody waits longer than this for an answer that may not come
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.MaxRetries == 0 {
		p.MaxRetries = 3
	}
	if p.Base == 0 {
		p.Base = 2 * time.Second
	}
	if p.Cap == 0 {
		p.Cap = time.Minute
	}
	return p
}

// Retry returns a provider that repeats calls of p which failed with a retryable error, but only while nothing of the answer
// has been emitted. Before each pause it emits an EventNotice. EventStart is emitted once, whatever the number of attempts.
// When the provider asks for a pause, that pause is kept; one longer than the policy's cap fails the call at once. When ctx
// ends during a pause the call ends as aborted.
func Retry(p Provider, policy RetryPolicy) Provider {
	return &retrying{provider: p, policy: policy.withDefaults()}
}

type retrying struct {
	provider Provider
	policy   RetryPolicy
}

func (r *retrying) Stream(ctx context.Context, req *Request, emit func(Event)) (*Message, error) {
	started, shown := false, false
	once := func(e Event) {
		switch e.Type {
		case EventStart:
			if started {
				return
			}
			started = true
		case EventDelta, EventBlock:
			shown = true
		}
		emit(e)
	}
	for attempt := 1; ; attempt++ {
		m, err := r.provider.Stream(ctx, req, once)
		var failure *Error
		if err == nil || shown || attempt > r.policy.MaxRetries || !errors.As(err, &failure) || !failure.Retryable {
			return m, err
		}
		pause, ok := r.pause(attempt, failure)
		if !ok {
			return m, err
		}
		once(Event{Type: EventNotice, Text: fmt.Sprintf("%s Trying again in %s (attempt %d of %d).",
			failure.summary(), pause.Round(100*time.Millisecond), attempt+1, r.policy.MaxRetries+1)})
		if !sleep(ctx, pause) {
			aborted := &Error{Provider: failure.Provider, URL: failure.URL, Kind: KindAborted, Cause: context.Cause(ctx)}
			m.StopReason, m.ErrorMessage = StopAborted, aborted.Error()
			return m, aborted
		}
	}
}

func (r *retrying) pause(attempt int, failure *Error) (time.Duration, bool) {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter, failure.RetryAfter <= r.policy.Cap
	}
	pause := r.policy.Base
	for range attempt - 1 {
		pause = min(2*pause, r.policy.Cap)
	}
	return min(pause, r.policy.Cap), true
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
