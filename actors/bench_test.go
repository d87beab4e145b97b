package actors_test

import (
	"fmt"
	"testing"

	"github.com/repa-app/repa/actors"
	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/client"
	"github.com/repa-app/repa/testkit/modelserver"
)

// BenchmarkTurn is a whole run as a front end sees it: submission over the WebSocket, durable admission, one request to a model
// server over real HTTP, durable history and end, and the change that tells of it.
func BenchmarkTurn(b *testing.B) {
	for _, tools := range []int{0, 1} {
		b.Run(fmt.Sprintf("tools=%d", tools), func(b *testing.B) {
			w := start(b, nil)
			model := modelserver.NewFunc(b, func(r *modelserver.RecordedRequest) modelserver.Turn {
				if tools == 1 && !endsWithTool(r) {
					return modelserver.Calls(modelserver.ToolCall{ID: "c", Name: "search", Args: `{"query":"x"}`})
				}
				return modelserver.Text("answer")
			})
			c := w.dial()
			lent := call(w, c, protocol.ConnectionLend, protocol.LendParams{Provider: "openai", BaseURL: model.OpenAIURL(), Secret: "k"})
			s, _ := w.session(c)
			i := 0
			for b.Loop() {
				// A fresh session each time, so that the context stays small.
				b.StopTimer()
				key := call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: s.ID}).Key()
				r, err := client.Watch(ctx, c, key.Scope())
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.Next(ctx); err != nil {
					b.Fatal(err)
				}
				p := submission(key, fmt.Sprintf("r%d", i), "question")
				p.Selection = &protocol.RunSelection{Model: &protocol.ModelSelection{ConnectionID: lent.ConnectionID, ID: "m"}}
				i++
				b.StartTimer()
				call(w, c, protocol.SessionSubmit, p)
				for over := false; !over; {
					u, err := r.Next(ctx)
					if err != nil {
						b.Fatal(err)
					}
					for _, change := range u.Changes {
						over = over || change.Type == protocol.ChangeRun && change.Run.Status.Terminal()
					}
				}
				b.StopTimer()
				r.Close(ctx)
				b.StartTimer()
			}
		})
	}
}

func endsWithTool(r *modelserver.RecordedRequest) bool {
	list, _ := r.JSON["messages"].([]any)
	if len(list) == 0 {
		return false
	}
	last, _ := list[len(list)-1].(map[string]any)
	return last["role"] == "tool"
}

// BenchmarkAdmissions is how fast 64 sessions of one space can submit, each admission durable before it is acknowledged. The runs
// are refused by their model at once and end on the side.
func BenchmarkAdmissions(b *testing.B) {
	w := start(b, func(o *actors.Options) { o.Default = connection.Bound{} })
	c := w.dial()
	s, _ := w.session(c)
	const sessions = 64
	keys := make(chan protocol.SessionKey, sessions)
	for range sessions {
		keys <- call(w, c, protocol.SessionCreate, protocol.SpaceParams{SpaceID: s.ID}).Key()
	}
	ids := make(chan int)
	go func() {
		for i := range b.N {
			ids <- i
		}
		close(ids)
	}()
	b.ResetTimer()
	done := make(chan error, sessions)
	for range sessions {
		go func() {
			key := <-keys
			for i := range ids {
				// A steer of no run is admitted, recorded and settled without a run.
				p := submission(key, fmt.Sprintf("a%d", i), "x")
				p.Dispatch = protocol.Dispatch{Kind: "steer", ExpectedRunID: "none"}
				if _, err := client.Call(ctx, c, protocol.SessionSubmit, p); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range sessions {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
}
