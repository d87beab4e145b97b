package frames

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Harness is the backend that a file is played against.
type Harness interface {
	URL() string // http://127.0.0.1:port
	Token() string
	// NewDirectory gives an absolute path that does not exist yet.
	NewDirectory() string
	// Connection makes the scripted model the default model of the backend and says under which ids.
	Connection() (connectionID, modelID string)
	// Model sets the answers of the scripted model; after them it answers "ok".
	Model(turns []Turn)
	// Release lets the turn that holds this name go on.
	Release(name string)
}

// Start starts a backend for one file; it ends by t.Cleanup.
type Start func(t testing.TB, server Server) Harness

// Play plays the file at path and fails t at the first step that does not fit. contract is the path of methods.json, against which all frames
// are held too, except those that are invalid on purpose; empty leaves that out.
func Play(t testing.TB, path, contract string, start Start) {
	t.Helper()
	steps, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{t: t, names: names{}, conns: map[string]*inbox{}, methods: map[string]string{}}
	if contract != "" {
		if p.contract, err = openContract(contract); err != nil {
			t.Fatal(err)
		}
	}
	var server Server
	if first := parseAction(t, steps[0]); first.Server != nil {
		server = *first.Server
	}
	p.harness = start(t, server)
	p.names["$token"], p.names["$newDirectory"] = p.harness.Token(), p.harness.NewDirectory()
	t.Cleanup(p.hangUp)
	for i, s := range steps {
		if err := p.step(s); err != nil {
			t.Fatalf("%s: step %d (%s): %v", filepath.Base(path), i+1, s.Dir, err)
		}
	}
	if err := p.checkAll(); err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
}

type player struct {
	t        testing.TB
	harness  Harness
	names    names
	conns    map[string]*inbox
	gone     []*inbox
	response *httpAnswer
	nevers   []never
	contract *contract
	methods  map[string]string // connection and id → method, for the results
	lastID   int
}

type never struct {
	conn, id string
	types    []string
}

func (p *player) hangUp() {
	for _, in := range p.conns {
		p.gone = append(p.gone, in)
	}
	for _, in := range p.gone {
		_ = in.socket.Close() // it may be closed already
		<-in.done
	}
}

func parseAction(t testing.TB, s step) action {
	var a action
	if len(s.Do) > 0 {
		if err := json.Unmarshal(s.Do, &a); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (p *player) step(s step) error {
	switch {
	case s.Dir == "!":
		return p.act(parseAction(p.t, s))
	case s.Dir == ">" && s.HTTP != nil:
		return p.request(*s.HTTP)
	case s.Dir == ">":
		return p.send(s)
	case s.Dir != "<":
		return fmt.Errorf("unknown direction %q", s.Dir)
	case s.HTTP != nil:
		return p.expectHTTP(*s.HTTP)
	}
	in, ok := p.conns[s.Conn]
	if !ok {
		return fmt.Errorf("no connection %s", s.Conn)
	}
	if s.Never != nil {
		id, _ := member(s.Frame, "params", "id").(string)
		p.nevers = append(p.nevers, never{s.Conn, id, s.Never})
	}
	if s.Close != nil {
		return in.awaitClose(s.Close.Code)
	}
	if !isUpdate(s.Frame) {
		return p.expectAnswer(in, s)
	}
	return p.expectUpdate(in, s)
}

func (p *player) act(a action) error {
	switch {
	case a.Connect != "":
		if err := p.connect(a.Connect); err != nil || a.As == "" {
			return err
		}
		key, err := p.names.fill(a.As)
		if err != nil {
			return err
		}
		_, err = p.initialize(a.Connect, map[string]any{"hostKey": key})
		return err
	case a.Initialize != "":
		_, err := p.initialize(a.Initialize, nil)
		return err
	case a.Drop != "":
		in := p.conns[a.Drop]
		delete(p.conns, a.Drop)
		p.gone = append(p.gone, in)
		return in.socket.Close()
	case a.Use != "":
		return p.prepare(a.Use)
	case a.Wait > 0:
		<-time.After(time.Duration(a.Wait) * time.Millisecond)
	case a.File != nil:
		return p.writeFile(*a.File)
	case a.Model != nil:
		p.harness.Model(a.Model)
	case a.Release != "":
		p.harness.Release(a.Release)
	case a.Server == nil:
		return errors.New("unknown action")
	}
	return nil
}

func (p *player) writeFile(f File) error {
	space, ok := p.names["$spacePath"].(string)
	if !ok {
		return errors.New("no space is open")
	}
	return os.WriteFile(filepath.Join(space, filepath.FromSlash(f.Path)), []byte(f.Text), 0o600)
}

func (p *player) connect(name string) error {
	socket, err := Dial(p.harness.URL(), "/rpc", nil)
	if err != nil {
		return fmt.Errorf("connect %s: %w", name, err)
	}
	p.conns[name] = newInbox(socket)
	return nil
}

func (p *player) initialize(name string, more map[string]any) (map[string]any, error) {
	params := map[string]any{"versions": []any{1.0}, "token": p.harness.Token()}
	for key, value := range more {
		params[key] = value
	}
	return p.call(name, "initialize", params)
}

// call makes a call that is no step of the file.
func (p *player) call(conn, method string, params map[string]any) (map[string]any, error) {
	in := p.conns[conn]
	p.lastID++
	id := fmt.Sprintf("player-%d", p.lastID)
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if err := in.socket.WriteText(text); err != nil {
		return nil, err
	}
	var result map[string]any
	err = in.await(func(frames []*received) error {
		for i, f := range frames {
			if !f.used && member(f.value, "id") == id {
				in.use(frames, i)
				var ok bool
				if result, ok = member(f.value, "result").(map[string]any); !ok {
					return fmt.Errorf("%s was answered with %v", method, f.value)
				}
				return nil
			}
		}
		return errNotYet
	})
	return result, err
}

func (p *player) prepare(what string) error {
	if err := p.connect("a"); err != nil {
		return err
	}
	hello, err := p.initialize("a", nil)
	if err != nil {
		return err
	}
	p.names["$serverId"], p.names["$hostKey"] = hello["serverId"], hello["hostKey"]
	if what == "initialize" {
		return nil
	}
	space, err := p.call("a", "space.open", map[string]any{"path": p.names["$newDirectory"]})
	if err != nil {
		return err
	}
	p.names["$spaceId"], p.names["$spacePath"] = space["id"], space["path"]
	if what == "space" {
		return nil
	}
	if what != "session" {
		return fmt.Errorf("unknown use %q", what)
	}
	session, err := p.call("a", "session.create", map[string]any{"spaceId": space["id"]})
	if err != nil {
		return err
	}
	p.names["$sessionId"] = session["sessionId"]
	p.names["$connectionId"], p.names["$modelId"] = p.harness.Connection()
	return nil
}

func (p *player) send(s step) error {
	in, ok := p.conns[s.Conn]
	if !ok {
		return fmt.Errorf("no connection %s", s.Conn)
	}
	if s.Raw != nil {
		return in.socket.WriteText([]byte(*s.Raw))
	}
	frame, err := p.names.fill(s.Frame)
	if err != nil {
		return err
	}
	if !s.Invalid {
		if err := p.checkSent(frame); err != nil {
			return err
		}
	}
	p.remember(s.Conn, in, frame)
	text, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return in.socket.WriteText(text)
}

// remember keeps what later frames are judged by: the method of an id, and that a subscription begins anew.
func (p *player) remember(conn string, in *inbox, frame any) {
	if list, ok := frame.([]any); ok {
		for _, item := range list {
			p.remember(conn, in, item)
		}
		return
	}
	method, _ := member(frame, "method").(string)
	p.methods[fmt.Sprint(conn, " ", member(frame, "id"))] = method
	if id, ok := member(frame, "params", "id").(string); ok && method == "subscription.start" {
		cursor, _ := member(frame, "params", "cursor").(string)
		in.started[id] = cursor
	}
}

type httpAnswer struct {
	status int
	header http.Header
	body   []byte
}

func (p *player) request(h httpStep) error {
	path, err := p.names.fillText(h.Path)
	if err != nil {
		return err
	}
	var body io.Reader
	if h.Body != nil {
		body = strings.NewReader(*h.Body)
	}
	request, err := http.NewRequest(h.Method, p.harness.URL()+fmt.Sprint(path), body)
	if err != nil {
		return err
	}
	for name, value := range h.Headers {
		filled, err := p.names.fillText(value)
		if err != nil {
			return err
		}
		request.Header.Set(name, fmt.Sprint(filled))
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	read, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	p.response = &httpAnswer{response.StatusCode, response.Header, read}
	return nil
}

func (p *player) expectHTTP(want httpStep) error {
	got := p.response
	if got == nil {
		return errors.New("no HTTP call was made")
	}
	if got.status != want.Status {
		return fmt.Errorf("status %d (%s), want %d", got.status, bytes.TrimSpace(got.body), want.Status)
	}
	for name, value := range want.Headers {
		if captured, err := p.names.match(value, got.header.Get(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		} else {
			p.names = captured
		}
	}
	if want.Body != nil && string(got.body) != *want.Body {
		return fmt.Errorf("body %q, want %q", got.body, *want.Body)
	}
	if want.JSON == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		return fmt.Errorf("body %q: %w", got.body, err)
	}
	if err := p.checkDefinition(want.Schema, value); err != nil {
		return err
	}
	captured, err := p.names.match(want.JSON, value)
	if err == nil {
		p.names = captured
	}
	return err
}

// checkAll looks at everything that came: the changes that must not, and the chains of cursors are judged as they are used.
func (p *player) checkAll() error {
	for _, n := range p.nevers {
		in := p.conns[n.conn]
		if in == nil {
			continue
		}
		in.mu.Lock()
		frames := slices.Clone(in.frames)
		in.mu.Unlock()
		for _, f := range frames {
			changes, _ := delivery(f, n.id)["changes"].([]any)
			for _, change := range changes {
				if kind, _ := member(change, "type").(string); slices.Contains(n.types, kind) {
					return fmt.Errorf("subscription %s got a change of type %s", n.id, kind)
				}
			}
		}
	}
	return nil
}
