package feed_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/repa-app/repa/actors/feed"
	"github.com/repa-app/repa/protocol"
)

// writer takes turns at the sessions of a feed with pieces of an answer, as fast models do; a message is replaced before it grows
// longer than answers are.
type writer struct {
	feed     *feed.Feed
	sessions int
	n        int
}

const benchSessions, benchPieces = 10, 1000

func newWriter(sessions int) *writer {
	w := &writer{feed: feed.New(serverID, slog.New(slog.DiscardHandler)), sessions: sessions}
	w.feed.Publish(openSpace("p"))
	for i := range sessions {
		w.feed.Publish(newSession("p", benchSession(i)))
	}
	return w
}

func benchSession(i int) protocol.ID { return protocol.ID(fmt.Sprint("s", i%benchSessions)) }

func (w *writer) publish() {
	id := benchSession(w.n % w.sessions)
	if w.n%(w.sessions*benchPieces) < w.sessions {
		w.feed.Publish(message("p", id, "live", ""))
	}
	w.feed.Publish(delta("p", id, "live", 0, "token "))
	w.n++
}

// listen starts a subscriber that fetches whenever it is woken, until the returned function is called.
func (w *writer) listen(group *sync.WaitGroup, i int) (stop func()) {
	news, ended := make(chan struct{}, 1), make(chan struct{})
	scope := protocol.Scope{SpaceID: "p", SessionID: benchSession(i)}
	s := w.feed.Subscribe(protocol.ID(fmt.Sprint("r", i)), scope, nil, func(*feed.Subscription) {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	group.Go(func() {
		defer s.Close()
		for {
			for _, _, ok := s.Next(); ok; _, _, ok = s.Next() {
			}
			select {
			case <-news:
			case <-ended:
				return
			}
		}
	})
	return func() { close(ended) }
}

// BenchmarkPublish is one change with its part of the fetching, for 100 subscribers in 10 sessions.
func BenchmarkPublish(b *testing.B) {
	b.Run("fetched as it comes", func(b *testing.B) {
		w := newWriter(benchSessions)
		var subs []*feed.Subscription
		for i := range 100 {
			s := w.feed.Subscribe("r", protocol.Scope{SpaceID: "p", SessionID: benchSession(i)}, nil, func(*feed.Subscription) {})
			s.Next()
			subs = append(subs, s)
		}
		delivered := 0
		b.ReportAllocs()
		for b.Loop() {
			at := w.n % benchSessions
			w.publish()
			for i := at; i < len(subs); i += benchSessions {
				for _, _, ok := subs[i].Next(); ok; _, _, ok = subs[i].Next() {
					delivered++
				}
			}
		}
		b.ReportMetric(float64(delivered)/b.Elapsed().Seconds(), "changes/s")
	})
	b.Run("fetched by 100 goroutines", func(b *testing.B) {
		w := newWriter(benchSessions)
		var group sync.WaitGroup
		var stops []func()
		for i := range 100 {
			stops = append(stops, w.listen(&group, i))
		}
		b.ReportAllocs()
		for b.Loop() {
			w.publish()
		}
		for _, stop := range stops {
			stop()
		}
		group.Wait()
		b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "changes/s") // each has ten readers
	})
}

// BenchmarkNeighbours is one change and its fetching by one subscriber, beside others of the same session that never fetch.
func BenchmarkNeighbours(b *testing.B) {
	for _, idle := range []int{0, 1, 10} {
		b.Run(fmt.Sprint(idle, " never fetch"), func(b *testing.B) {
			w := newWriter(1)
			scope := protocol.Scope{SpaceID: "p", SessionID: "s0"}
			s := w.feed.Subscribe("r", scope, nil, func(*feed.Subscription) {})
			s.Next()
			for range idle {
				w.feed.Subscribe("idle", scope, nil, func(*feed.Subscription) {}).Next()
			}
			b.ReportAllocs()
			for b.Loop() {
				w.publish()
				s.Next()
			}
		})
	}
}
