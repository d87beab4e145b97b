package rpc_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/rpc"
)

// BenchmarkCalls makes calls over one connection, some at once, each with the params of a submission that is decoded strictly and sent back.
func BenchmarkCalls(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(map[int]string{1: "one", 16: "sixteen", 64: "sixty-four"}[callers], func(b *testing.B) { benchmarkCalls(b, callers) })
	}
}

func submission() protocol.Submit {
	return protocol.RunSubmitParams{SpaceID: "space", SessionID: "session", RequestID: "request", Text: "What is a monad?"}.Submit()
}

func benchmarkCalls(b *testing.B, callers int) {
	url, _ := serve(b, rpc.Options{}, func(*rpc.Peer) func(*rpc.Call) {
		return func(call *rpc.Call) {
			value, err := protocol.SessionSubmit.DecodeParams(call.Params)
			if err != nil {
				call.Fail(err)
				return
			}
			call.Reply(value)
		}
	})
	peer := dial(b, url, nil)
	params := submission()
	times := make([][]time.Duration, callers)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			for left.Add(-1) >= 0 {
				begin := time.Now()
				if _, err := peer.Call(context.Background(), "session.submit", params); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(begin))
			}
		})
	}
	running.Wait()
	b.StopTimer()
	all := slices.Concat(times...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// feed is a source over a log of encoded changes that all subscribers share.
type feed struct {
	log    *changeLog
	sent   int
	cursor string
}

// maxChanges keeps one delivery far below what a reader takes as one message.
const maxChanges = 1024

type changeLog struct {
	mu      sync.Mutex
	changes []jsontext.Value
}

func (f *feed) Next() (string, any, bool) {
	f.log.mu.Lock()
	changes := f.log.changes[f.sent:min(len(f.log.changes), f.sent+maxChanges)]
	f.log.mu.Unlock()
	if len(changes) == 0 {
		return "", nil, false
	}
	f.sent += len(changes)
	return protocol.UpdateNotification, protocol.ChangesUpdate("w", f.cursor, "server:1", changes), true
}

// BenchmarkFanOut delivers changes to 100 subscribers; each change is encoded once. One operation is one change to all of them.
func BenchmarkFanOut(b *testing.B) {
	const subscribers = 100
	var peers []*rpc.Peer
	var mu sync.Mutex
	url, _ := serve(b, rpc.Options{}, func(peer *rpc.Peer) func(*rpc.Call) {
		mu.Lock()
		peers = append(peers, peer)
		mu.Unlock()
		return func(call *rpc.Call) { call.Reply(nil) }
	})
	var delivered atomic.Int64
	done := make(chan struct{}, 1)
	total := int64(b.N) * subscribers
	count := func(_ string, params jsontext.Value) {
		if delivered.Add(countChanges(params)) == total {
			done <- struct{}{}
		}
	}
	for range subscribers {
		if _, err := dial(b, url, count).Call(context.Background(), "hello", nil); err != nil {
			b.Fatal(err)
		}
	}
	log := &changeLog{}
	feeds := make([]*feed, subscribers)
	for i := range feeds {
		feeds[i] = &feed{log: log, cursor: "server:0"}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		raw, err := protocol.Encode(protocol.Change{Type: protocol.ChangeDelta, SpaceID: "space", SessionID: "session", MessageID: "live", Index: 0, Kind: "text", Text: "token"})
		if err != nil {
			b.Fatal(err)
		}
		log.mu.Lock()
		log.changes = append(log.changes, raw)
		log.mu.Unlock()
		for j, f := range feeds {
			peers[j].Push(f)
		}
	}
	<-done
	b.StopTimer()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "changes/s")
}

func countChanges(params jsontext.Value) (n int64) {
	const mark = `"type":"delta"`
	for i := 0; i+len(mark) <= len(params); i++ {
		if params[i] == '"' && string(params[i:i+len(mark)]) == mark {
			n++
		}
	}
	return n
}

// BenchmarkDecode is the strict reading of one submission, without a socket.
func BenchmarkDecode(b *testing.B) {
	raw, err := protocol.Encode(submission())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := protocol.SessionSubmit.DecodeParams(raw); err != nil {
			b.Fatal(err)
		}
	}
}
