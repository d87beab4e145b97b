package frames

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// inbox is everything that came on one connection, in order.
type inbox struct {
	socket *Socket
	done   chan struct{}

	mu     sync.Mutex
	frames []*received
	end    error // why nothing more comes
	news   chan struct{}

	// The rest belongs to the player.
	last      int // index after the last frame that a step used
	positions map[string]*position
	started   map[string]string // subscriptions whose start is under way, with their cursor
}

type received struct {
	value any
	used  bool
}

// position is how far the changes of one subscription have been used.
type position struct{ frame, change int }

func newInbox(socket *Socket) *inbox {
	in := &inbox{socket: socket, done: make(chan struct{}), news: make(chan struct{}, 1), positions: map[string]*position{}, started: map[string]string{}}
	go in.read()
	return in
}

func (in *inbox) read() {
	defer close(in.done)
	for {
		text, err := in.socket.Read()
		var value any
		if err == nil {
			if err = json.Unmarshal(text, &value); err != nil {
				err = fmt.Errorf("server sent what is not JSON: %q", text)
			}
		}
		in.mu.Lock()
		if err != nil {
			in.end = err
		} else {
			in.frames = append(in.frames, &received{value: value})
		}
		in.mu.Unlock()
		select {
		case in.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

var errNotYet = errors.New("has not come yet")

// await asks look, with all frames so far, until it says something else than errNotYet. At the end of the connection or of patience it
// gives what came instead.
func (in *inbox) await(look func(frames []*received) error) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		in.mu.Lock()
		frames, end := slices.Clone(in.frames), in.end
		in.mu.Unlock()
		err := look(frames)
		if !errors.Is(err, errNotYet) {
			return err
		}
		if end != nil {
			return fmt.Errorf("connection ended (%w) while a frame %w; unused: %s", end, err, unused(frames))
		}
		select {
		case <-in.news:
		case <-deadline.C:
			return fmt.Errorf("frame %w; unused: %s", err, unused(frames))
		}
	}
}

func unused(frames []*received) string {
	var list []any
	for _, f := range frames {
		if !f.used {
			list = append(list, f.value)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// awaitClose waits for the close frame.
func (in *inbox) awaitClose(code int) error {
	select {
	case <-in.done:
	case <-time.After(patience):
		return fmt.Errorf("connection is still open, want close %d", code)
	}
	var closed *ClosedError
	if !errors.As(in.end, &closed) {
		return fmt.Errorf("connection ended with %w, want close %d", in.end, code)
	}
	if closed.Code != code {
		return fmt.Errorf("closed with %d, want %d", closed.Code, code)
	}
	return nil
}

func (in *inbox) use(frames []*received, i int) {
	frames[i].used = true
	in.last = max(in.last, i+1)
}

func member(value any, path ...string) any {
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

func isUpdate(value any) bool { return member(value, "method") == "subscription.update" }

// delivery gives the delivery of a frame if it is one for that subscription.
func delivery(f *received, id string) map[string]any {
	if !isUpdate(f.value) || member(f.value, "params", "id") != id {
		return nil
	}
	d, _ := member(f.value, "params", "delivery").(map[string]any)
	return d
}
