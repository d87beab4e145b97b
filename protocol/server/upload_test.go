package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/testkit/frames"
)

const hostKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// connected opens a socket of the host with hostKey.
func connected(t *testing.T, base string) *frames.Socket {
	t.Helper()
	socket := dial(t, base)
	got := call(t, socket, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"versions":[1],"token":"`+fake.Token+`","hostKey":"`+hostKey+`"}}`)
	if !strings.Contains(got, `"result"`) {
		t.Fatal(got)
	}
	return socket
}

func TestUploadAndReadBack(t *testing.T) {
	base := withSpace().Serve(t).URL()
	connected(t, base)
	for _, c := range []struct{ name, mediaType, want, body string }{
		{"text", "text/plain", "text/plain", "bytes"},
		{"with parameter", "text/html; charset=utf-8", "text/html; charset=utf-8", "<p>"},
		{"no type", "", "application/octet-stream", "\x00\xff"},
		{"nothing", "text/plain", "text/plain", ""},
		{"large", "video/mp4", "video/mp4", strings.Repeat("0123456789abcdef", 1<<16)},
	} {
		h := headers("X-Repa-Host-Key", hostKey)
		if c.mediaType != "" {
			h.Set("Content-Type", c.mediaType)
		}
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(c.body)
			if chunked {
				body = io.MultiReader(body) // hides the length
			}
			got := mustFetch(t, "POST", base+"/spaces/p/resources", h, body)
			made, err := protocol.Decode[protocol.ResourcePreparation]([]byte(got.body))
			if got.status != 200 || err != nil || made.Resource.MediaType != c.want || made.Resource.SpaceID != "p" || made.ExpiresAt != fake.Expiry {
				t.Errorf("%s: %d %s %v", c.name, got.status, got.body, err)
				continue
			}
			if got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: type %s", c.name, got.header.Get("Content-Type"))
			}
			checkHeaders(t, got.header)
			back := mustFetch(t, "GET", base+"/spaces/p/resources/"+string(made.Resource.ID), headers(), nil)
			if back.body != c.body || back.header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("%s: %d bytes come back as %s", c.name, len(back.body), back.header.Get("Content-Type"))
			}
		}
	}
}

func TestUploadsAreRefused(t *testing.T) {
	base := withSpace().Serve(t).URL()
	connected(t, base)
	other := strings.Repeat("0", 64)
	for _, c := range []struct {
		name    string
		method  string
		path    string
		headers []string
		status  int
		code    string
		allow   string
	}{
		{name: "no key", status: 401},
		{name: "key of nobody", headers: []string{"X-Repa-Host-Key", other}, status: 401},
		{name: "empty key", headers: []string{"X-Repa-Host-Key", ""}, status: 401},
		{name: "short key", headers: []string{"X-Repa-Host-Key", hostKey[1:]}, status: 401},
		{name: "capitals", headers: []string{"X-Repa-Host-Key", strings.ToUpper(hostKey)}, status: 401},
		{name: "two keys", headers: []string{"X-Repa-Host-Key", hostKey, "X-Repa-Host-Key", hostKey}, status: 401},
		{name: "no key, no space", path: "/spaces/q/resources", status: 401},
		{name: "no space", path: "/spaces/q/resources", headers: []string{"X-Repa-Host-Key", hostKey}, status: 400, code: "not_found"},
		{name: "bad space", path: "/spaces/a.b/resources", headers: []string{"X-Repa-Host-Key", hostKey}, status: 405, allow: "GET, HEAD, OPTIONS"},
		{name: "put", method: "PUT", headers: []string{"X-Repa-Host-Key", hostKey}, status: 405, allow: "POST, OPTIONS"},
		{name: "delete", method: "DELETE", headers: []string{"X-Repa-Host-Key", hostKey}, status: 405, allow: "POST, OPTIONS"},
		{name: "get", method: "GET", headers: []string{"X-Repa-Host-Key", hostKey}, status: 404},
		{name: "to a resource", path: "/spaces/p/resources/" + other, headers: []string{"X-Repa-Host-Key", hostKey}, status: 405, allow: "GET, HEAD, OPTIONS"},
		{name: "cross-site", headers: []string{"X-Repa-Host-Key", hostKey, "Sec-Fetch-Site", "cross-site"}, status: 403},
		{name: "same-site", headers: []string{"X-Repa-Host-Key", hostKey, "Sec-Fetch-Site", "same-site"}, status: 403},
		{name: "other origin", headers: []string{"X-Repa-Host-Key", hostKey, "Origin", "http://evil.example"}, status: 403},
		{name: "own origin", headers: []string{"X-Repa-Host-Key", hostKey, "Origin", base, "Sec-Fetch-Site", "same-origin"}, status: 200},
		{name: "wrong token", headers: []string{"X-Repa-Host-Key", hostKey, "Authorization", "Bearer x"}, status: 401},
	} {
		if c.method == "" {
			c.method = "POST"
		}
		if c.path == "" {
			c.path = "/spaces/p/resources"
		}
		got := mustFetch(t, c.method, base+c.path, headers(c.headers...), strings.NewReader("bytes"))
		if got.status != c.status || got.header.Get("Allow") != c.allow || c.code != "" && !strings.HasPrefix(got.body, `{"code":"`+c.code+`","message":"`) {
			t.Errorf("%s: %d %s %q", c.name, got.status, got.body, got.header.Get("Allow"))
		}
		checkHeaders(t, got.header)
	}
}

// sink is a backend that counts what is uploaded and keeps nothing.
type sink struct {
	*fake.Backend
	began chan struct{}
	got   chan int64
	then  func(n int64, err error) error
}

func (b sink) Upload(_ context.Context, _ server.HostIdentity, space protocol.ID, mediaType string, body io.Reader) (protocol.ResourcePreparation, error) {
	b.began <- struct{}{}
	n, err := io.Copy(io.Discard, body)
	b.got <- n
	if b.then != nil {
		err = b.then(n, err)
	}
	id := protocol.ID(strings.Repeat("0", 64))
	return protocol.ResourcePreparation{ID: "x", Resource: protocol.ResourceRef{SpaceID: space, ID: id, MediaType: mediaType}}, err
}

func serveSink(t *testing.T, then func(int64, error) error, change ...func(*server.Options)) (sink, *server.Server) {
	t.Helper()
	b := sink{withSpace(), make(chan struct{}, 2), make(chan int64, 1), then}
	return b, b.Serve(t, append(change, func(o *server.Options) { o.Backend = b })...)
}

// zeros is a body of n bytes without a length.
func zeros(n int64) io.Reader {
	return io.MultiReader(io.LimitReader(neverEnding{}, n))
}

type neverEnding struct{}

func (neverEnding) Read(p []byte) (int, error) { return len(p), nil }

// TestLimitOfUploads sends 64 MiB, which is allowed and never in memory, and a byte more, which is not whatever the backend makes of it.
func TestLimitOfUploads(t *testing.T) {
	b, s := serveSink(t, nil)
	url := s.URL() + "/spaces/p/resources"
	h := headers("X-Repa-Host-Key", hostKey)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := mustFetch(t, "POST", url, h, zeros(server.MaxUpload)); got.status != 200 || <-b.got != server.MaxUpload {
		t.Errorf("64 MiB: %d %s", got.status, got.body)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > server.MaxUpload/8 {
		t.Errorf("an upload of 64 MiB took %d bytes of memory", used)
	}
	if got := mustFetch(t, "POST", url, h, zeros(server.MaxUpload+1)); got.status != 413 || <-b.got != server.MaxUpload {
		t.Errorf("a byte more: %d %s", got.status, got.body)
	}
	status, header := exchange(t, s.URL(), fmt.Sprintf("POST /spaces/p/resources HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Repa-Host-Key: %s\r\nContent-Length: %d\r\n\r\n",
		strings.TrimPrefix(s.URL(), "http://"), fake.Token, hostKey, server.MaxUpload+1))
	if status != 413 {
		t.Errorf("a byte more, announced: %d", status)
	}
	checkHeaders(t, header)
	forgiving, s := serveSink(t, func(int64, error) error { return nil })
	if got := mustFetch(t, "POST", s.URL()+"/spaces/p/resources", h, zeros(server.MaxUpload+1)); got.status != 413 || <-forgiving.got != server.MaxUpload {
		t.Errorf("a byte more, and the backend does not mind: %d %s", got.status, got.body)
	}
}

func TestFailuresOfUploads(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{protocol.Errorf(protocol.CodeClosed, "The host has detached"), 409, `{"code":"closed","message":"The host has detached"}`},
		{protocol.Errorf(protocol.CodeShuttingDown, "No new work"), 400, `{"code":"shutting_down","message":"No new work"}`},
		{fmt.Errorf("upload: %w", server.ErrUnknownHost), 401, "The host of this key is not connected.\n"},
		{errors.New("secret path"), 500, `{"code":"storage","message":"Internal error: the backend could not finish this call; its log says why"}`},
	} {
		b, s := serveSink(t, func(int64, error) error { return c.err })
		got := mustFetch(t, "POST", s.URL()+"/spaces/p/resources", headers("X-Repa-Host-Key", hostKey), strings.NewReader("bytes"))
		if got.status != c.status || got.body != c.body || <-b.got != 5 {
			t.Errorf("%v: %d %s", c.err, got.status, got.body)
		}
		checkHeaders(t, got.header)
	}
}

// TestHostDetachesDuringItsUpload wants 409: what was uploaded belongs to nobody any more.
func TestHostDetachesDuringItsUpload(t *testing.T) {
	base := withSpace().Serve(t).URL()
	socket := connected(t, base)
	body, feed := io.Pipe()
	done := make(chan answer, 1)
	go func() {
		got, err := fetch(t, "POST", base+"/spaces/p/resources", headers("X-Repa-Host-Key", hostKey), body)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	// The backend has looked for the host when the first megabytes, which fit no buffer, are through.
	if _, err := io.CopyN(feed, neverEnding{}, 16<<20); err != nil {
		t.Fatal(err)
	}
	call(t, socket, `{"jsonrpc":"2.0","id":1,"method":"client.detach"}`)
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.status != http.StatusConflict || !strings.HasPrefix(got.body, `{"code":"closed",`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// beginUpload announces ten bytes and sends five.
func beginUpload(t *testing.T, base string) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /spaces/p/resources HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Repa-Host-Key: %s\r\nContent-Length: 10\r\n\r\n12345",
		address, fake.Token, hostKey)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestClientsThatStopSending wants an upload to end, and not as if it were whole, when its client pauses for too long, leaves, or the server stops.
func TestClientsThatStopSending(t *testing.T) {
	for name, stop := range map[string]func(*net.TCPConn, *server.Server){
		"pauses":      nil,
		"leaves":      func(c *net.TCPConn, _ *server.Server) { _ = c.Close() },
		"half-closes": func(c *net.TCPConn, _ *server.Server) { _ = c.CloseWrite() },
		"is cut": func(_ *net.TCPConn, s *server.Server) {
			cut, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Shutdown(cut) // its error says that something was cut
		},
	} {
		failed := make(chan error, 1)
		b, s := serveSink(t, func(_ int64, err error) error { failed <- err; return nil }, func(o *server.Options) {
			if stop == nil {
				o.Stall = 20 * time.Millisecond
			}
		})
		conn := beginUpload(t, s.URL())
		<-b.began
		if stop != nil {
			stop(conn.(*net.TCPConn), s)
		}
		select {
		case n := <-b.got:
			if err := <-failed; err == nil || n > 5 {
				t.Errorf("a client that %s uploaded %d bytes: %v", name, n, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("a client that %s keeps its upload open", name)
		}
		if name == "leaves" {
			continue
		}
		if rest, err := io.ReadAll(conn); len(rest) > 0 {
			t.Errorf("a client that %s was answered %q %v", name, rest, err)
		}
	}
}

// TestSlowSenderIsWaitedFor sends a byte at a time, and again over the same connection.
func TestSlowSenderIsWaitedFor(t *testing.T) {
	b, s := serveSink(t, nil)
	conn := beginUpload(t, s.URL())
	answers := bufio.NewReader(conn)
	for round := range 2 {
		for _, c := range []byte("67890") {
			if _, err := conn.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 || <-b.got != 10 {
			t.Errorf("round %d: %d %v", round, response.StatusCode, err)
		}
		_ = response.Body.Close()
		if round == 0 {
			if _, err := fmt.Fprintf(conn, "POST /spaces/p/resources HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nX-Repa-Host-Key: %s\r\nContent-Length: 10\r\n\r\n12345",
				strings.TrimPrefix(s.URL(), "http://"), fake.Token, hostKey); err != nil {
				t.Fatal(err)
			}
		}
	}
}
