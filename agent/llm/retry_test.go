package llm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// attempts is a provider that fails as scripted and then answers "done".
type attempts struct {
	errs  []*llm.Error
	words string // what a failing attempt says before it fails
	count int
}

func (a *attempts) Stream(_ context.Context, _ *llm.Request, emit func(llm.Event)) (*llm.Message, error) {
	a.count++
	emit(llm.Event{Type: llm.EventStart})
	if a.count <= len(a.errs) {
		if a.words != "" {
			emit(llm.Event{Type: llm.EventDelta, Block: llm.BlockText, Text: a.words})
		}
		err := a.errs[a.count-1]
		return &llm.Message{StopReason: llm.StopError, ErrorMessage: err.Error()}, err
	}
	return &llm.Message{StopReason: llm.StopEnd, Content: []llm.Block{{Type: llm.BlockText, Text: "done"}}}, nil
}

func overloaded() *llm.Error {
	return &llm.Error{Provider: "openai", URL: "http://h/v1", Status: 529, Words: "busy", Kind: llm.KindOverloaded, Retryable: true}
}

func TestRetryPauses(t *testing.T) {
	t.Parallel()
	asked := overloaded()
	asked.RetryAfter = 9 * time.Second
	tooLong := overloaded()
	tooLong.RetryAfter = 61 * time.Second
	final := overloaded()
	final.Retryable = false
	for name, c := range map[string]struct {
		errs   []*llm.Error
		words  string
		policy llm.RetryPolicy
		count  int
		took   time.Duration
		ok     bool
	}{
		"none":           {count: 1, ok: true},
		"once":           {errs: []*llm.Error{overloaded()}, count: 2, took: 2 * time.Second, ok: true},
		"three times":    {errs: []*llm.Error{overloaded(), overloaded(), overloaded()}, count: 4, took: 14 * time.Second, ok: true},
		"four times":     {errs: []*llm.Error{overloaded(), overloaded(), overloaded(), overloaded()}, count: 4, took: 14 * time.Second},
		"asked to wait":  {errs: []*llm.Error{asked}, count: 2, took: 9 * time.Second, ok: true},
		"asked too long": {errs: []*llm.Error{tooLong}, count: 1},
		"not retryable":  {errs: []*llm.Error{final}, count: 1},
		"already shown":  {errs: []*llm.Error{overloaded()}, words: "Hel", count: 1},
		"capped": {errs: []*llm.Error{overloaded(), overloaded(), overloaded()}, count: 4, ok: true,
			policy: llm.RetryPolicy{Base: 2 * time.Second, Cap: 3 * time.Second}, took: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &attempts{errs: c.errs, words: c.words}
				begin := time.Now()
				var r recorder
				m, err := llm.Retry(p, c.policy).Stream(t.Context(), &llm.Request{}, r.emit)
				if p.count != c.count || time.Since(begin) != c.took || (err == nil) != c.ok || (m.StopReason == llm.StopEnd) != c.ok {
					t.Errorf("%d attempts in %v, error %v, message %+v", p.count, time.Since(begin), err, m)
				}
				starts, notices := 0, 0
				for _, e := range r.events {
					switch e.Type {
					case llm.EventStart:
						starts++
					case llm.EventNotice:
						notices++
						if !strings.Contains(e.Text, "busy. Trying again in ") {
							t.Errorf("notice %q", e.Text)
						}
					}
				}
				if starts != 1 || notices != c.count-1 {
					t.Errorf("%d starts and %d notices for %d attempts", starts, notices, c.count)
				}
			})
		})
	}
}

func TestRetryIsAbortable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		p := &attempts{errs: []*llm.Error{overloaded()}}
		begin := time.Now()
		m, err := llm.Retry(p, llm.RetryPolicy{}).Stream(ctx, &llm.Request{}, func(llm.Event) {})
		if !errors.Is(err, context.Canceled) || m.StopReason != llm.StopAborted || m.ErrorMessage != err.Error() || p.count != 1 || time.Since(begin) != time.Second {
			t.Errorf("%v after %v and %d attempts: %+v", err, time.Since(begin), p.count, m)
		}
	})
}
