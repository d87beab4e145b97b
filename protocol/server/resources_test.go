package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/repa-app/repa/protocol"
	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/protocol/server"
)

// answer is an HTTP answer that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// headers makes headers from names and values in turn.
func headers(pairs ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + fake.Token}}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// fetch does one HTTP exchange over a connection of its own.
func fetch(t testing.TB, method, url string, h http.Header, body io.Reader) (answer, error) {
	t.Helper()
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = h
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

func mustFetch(t testing.TB, method, url string, h http.Header, body io.Reader) answer {
	t.Helper()
	a, err := fetch(t, method, url, h, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

// withSpace gives a backend with the open space p.
func withSpace() *fake.Backend {
	b := fake.New("s")
	b.Publish(protocol.Change{Type: protocol.ChangeSpace, Space: &protocol.Space{ID: "p", Path: "/p"}})
	return b
}

func TestRanges(t *testing.T) {
	b := withSpace()
	base := b.Serve(t).URL()
	full, empty := b.Keep("p", []byte("0123456789")), b.Keep("p", nil)
	tag := `"` + string(full) + `"`
	other := `"` + strings.Repeat("0", 64) + `"`
	const large = "99999999999999999999999999"
	for _, c := range []struct {
		name    string
		headers []string
		empty   bool
		status  int
		body    string
		rng     string // Content-Range
	}{
		{name: "whole", status: 200, body: "0123456789"},
		{name: "first", headers: []string{"Range", "bytes=0-0"}, status: 206, body: "0", rng: "bytes 0-0/10"},
		{name: "middle", headers: []string{"Range", "bytes=2-4"}, status: 206, body: "234", rng: "bytes 2-4/10"},
		{name: "all by range", headers: []string{"Range", "bytes=0-9"}, status: 206, body: "0123456789", rng: "bytes 0-9/10"},
		{name: "last", headers: []string{"Range", "bytes=9-9"}, status: 206, body: "9", rng: "bytes 9-9/10"},
		{name: "open end", headers: []string{"Range", "bytes=7-"}, status: 206, body: "789", rng: "bytes 7-9/10"},
		{name: "end is cut", headers: []string{"Range", "bytes=8-100"}, status: 206, body: "89", rng: "bytes 8-9/10"},
		{name: "huge end", headers: []string{"Range", "bytes=8-" + large}, status: 206, body: "89", rng: "bytes 8-9/10"},
		{name: "suffix", headers: []string{"Range", "bytes=-3"}, status: 206, body: "789", rng: "bytes 7-9/10"},
		{name: "long suffix", headers: []string{"Range", "bytes=-30"}, status: 206, body: "0123456789", rng: "bytes 0-9/10"},
		{name: "huge suffix", headers: []string{"Range", "bytes=-" + large}, status: 206, body: "0123456789", rng: "bytes 0-9/10"},
		{name: "unit in capitals", headers: []string{"Range", "BYTES=1-1"}, status: 206, body: "1", rng: "bytes 1-1/10"},
		{name: "other unit", headers: []string{"Range", "lines=1-1"}, status: 200, body: "0123456789"},
		{name: "start behind the end", headers: []string{"Range", "bytes=10-"}, status: 416, rng: "bytes */10"},
		{name: "huge start", headers: []string{"Range", "bytes=" + large + "-"}, status: 416, rng: "bytes */10"},
		{name: "suffix of nothing", headers: []string{"Range", "bytes=-0"}, status: 416, rng: "bytes */10"},
		{name: "backwards", headers: []string{"Range", "bytes=5-4"}, status: 416, rng: "bytes */10"},
		{name: "no numbers", headers: []string{"Range", "bytes=-"}, status: 416, rng: "bytes */10"},
		{name: "no range", headers: []string{"Range", "bytes="}, status: 416, rng: "bytes */10"},
		{name: "no set", headers: []string{"Range", "bytes"}, status: 416, rng: "bytes */10"},
		{name: "letters", headers: []string{"Range", "bytes=a-b"}, status: 416, rng: "bytes */10"},
		{name: "sign", headers: []string{"Range", "bytes=+1-2"}, status: 416, rng: "bytes */10"},
		{name: "two minus signs", headers: []string{"Range", "bytes=1--2"}, status: 416, rng: "bytes */10"},
		{name: "space", headers: []string{"Range", "bytes=1 -2"}, status: 416, rng: "bytes */10"},
		{name: "two ranges", headers: []string{"Range", "bytes=0-0,2-2"}, status: 416, rng: "bytes */10"},
		{name: "two headers", headers: []string{"Range", "bytes=0-0", "Range", "bytes=2-2"}, status: 416, rng: "bytes */10"},
		{name: "empty", empty: true, status: 200},
		{name: "start of empty", empty: true, headers: []string{"Range", "bytes=0-0"}, status: 416, rng: "bytes */0"},
		{name: "end of empty", empty: true, headers: []string{"Range", "bytes=-5"}, status: 200},
		{name: "known", headers: []string{"If-None-Match", tag}, status: 304},
		{name: "known, weak", headers: []string{"If-None-Match", "W/" + tag}, status: 304},
		{name: "known among others", headers: []string{"If-None-Match", other + " , " + tag}, status: 304},
		{name: "known in the second header", headers: []string{"If-None-Match", other, "If-None-Match", tag}, status: 304},
		{name: "anything known", headers: []string{"If-None-Match", "*"}, status: 304},
		{name: "other known", headers: []string{"If-None-Match", other}, status: 200, body: "0123456789"},
		{name: "known without quotes", headers: []string{"If-None-Match", string(full)}, status: 200, body: "0123456789"},
		{name: "known comes before range", headers: []string{"If-None-Match", tag, "Range", "bytes=99-"}, status: 304},
		{name: "match", headers: []string{"If-Match", tag, "Range", "bytes=1-1"}, status: 206, body: "1", rng: "bytes 1-1/10"},
		{name: "match anything", headers: []string{"If-Match", "*"}, status: 200, body: "0123456789"},
		{name: "no match", headers: []string{"If-Match", other}, status: 412},
		{name: "weak is no match", headers: []string{"If-Match", "W/" + tag}, status: 412},
		{name: "if range", headers: []string{"If-Range", tag, "Range", "bytes=1-1"}, status: 206, body: "1", rng: "bytes 1-1/10"},
		{name: "if other range", headers: []string{"If-Range", other, "Range", "bytes=1-1"}, status: 200, body: "0123456789"},
		{name: "if weak range", headers: []string{"If-Range", "W/" + tag, "Range", "bytes=1-1"}, status: 200, body: "0123456789"},
		{name: "if range by date", headers: []string{"If-Range", "Mon, 01 Dec 2025 00:00:00 GMT", "Range", "bytes=1-1"}, status: 200, body: "0123456789"},
		{name: "if other range, bad range", headers: []string{"If-Range", other, "Range", "bytes=99-"}, status: 200, body: "0123456789"},
	} {
		id, etag := full, tag
		if c.empty {
			id, etag = empty, `"`+string(empty)+`"`
		}
		url := base + "/spaces/p/resources/" + string(id)
		got := mustFetch(t, "GET", url, headers(c.headers...), nil)
		if got.status != c.status || got.body != c.body || got.header.Get("Content-Range") != c.rng {
			t.Errorf("%s: %d %q %q", c.name, got.status, got.body, got.header.Get("Content-Range"))
		}
		checkResourceHeaders(t, c.name, got, etag)
		head := mustFetch(t, "HEAD", url, headers(c.headers...), nil)
		if got.status == 206 || got.status == 416 { // HEAD has no ranges
			if head.status != 200 || head.header.Get("Content-Length") != "10" && !c.empty || head.header.Get("Content-Range") != "" {
				t.Errorf("HEAD %s: %d %v", c.name, head.status, head.header)
			}
			continue
		}
		got.header.Del("Date")
		head.header.Del("Date")
		if head.status != got.status || head.body != "" || len(head.header) != len(got.header) || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %v, GET has %d %v", c.name, head.status, head.header, got.status, got.header)
		}
	}
}

// checkResourceHeaders wants what every answer about a resource has: what may be kept says so, the rest does not.
func checkResourceHeaders(t *testing.T, name string, a answer, tag string) {
	t.Helper()
	want := map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Last-Modified": "", "Content-Encoding": ""}
	switch a.status {
	case 200, 206:
		want["Content-Type"], want["Content-Disposition"], want["Accept-Ranges"] = "application/octet-stream", "attachment", "bytes"
		want["Content-Length"] = strconv.Itoa(len(a.body))
		fallthrough
	case 304:
		want["Cache-Control"], want["ETag"] = "private, max-age=31536000, immutable", tag
	default:
		want["ETag"] = ""
	}
	for header, value := range want {
		if got := a.header.Get(header); got != value {
			t.Errorf("%s (%d): %s is %q, want %q", name, a.status, header, got, value)
		}
	}
	for header := range a.header {
		if strings.HasPrefix(header, "Access-Control-") {
			t.Errorf("%s: answer has %s", name, header)
		}
	}
}

// TestRangesOfAnySize cuts drawn ranges from resources larger than what is in memory at a time.
func TestRangesOfAnySize(t *testing.T) {
	b := withSpace()
	base := b.Serve(t).URL()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 300_000).Draw(t, "size")
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		start := rapid.IntRange(0, size-1).Draw(t, "start")
		end := rapid.IntRange(start, size+10).Draw(t, "end")
		url := base + "/spaces/p/resources/" + string(b.Keep("p", data))
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = headers("Range", "bytes="+strconv.Itoa(start)+"-"+strconv.Itoa(end))
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 206 || string(got) != string(data[start:min(end+1, size)]) {
			t.Fatalf("%d, %d bytes, %v", response.StatusCode, len(got), err)
		}
	})
}

func TestResourcesThatAreNotThere(t *testing.T) {
	b := withSpace()
	base := b.Serve(t).URL()
	id := string(b.Keep("p", []byte("bytes")))
	for _, c := range []struct {
		path   string
		status int
		code   string
	}{
		{"/spaces/q/resources/" + id, 400, "not_found"},
		{"/spaces/p/resources/" + strings.Repeat("0", 64), 400, "revision_unavailable"},
		{"/spaces/p/resources/ABC", 404, ""},
		{"/spaces/p/resources/" + strings.ToUpper(id), 404, ""},
		{"/spaces/p/resources/" + id + "0", 404, ""},
		{"/spaces/p/resources/" + id[1:], 404, ""},
		{"/spaces/p/resources/" + id + "/", 404, ""},
		{"/spaces/p/resources/", 404, ""},
		{"/spaces/p/resources", 404, ""},
		{"/spaces//resources/" + id, 404, ""},
		{"/spaces/a b/resources/" + id, 404, ""},
		{"/spaces/a%2Fb/resources/" + id, 404, ""},
		{"/spaces/" + strings.Repeat("p", 129) + "/resources/" + id, 404, ""},
		{"/spaces/p/x/resources/" + id, 404, ""},
		{"/spaces/../spaces/p/resources/" + id, 404, ""},
		{"//spaces/p/resources/" + id, 404, ""},
		{"/Spaces/p/resources/" + id, 404, ""},
	} {
		got := mustFetch(t, "GET", base+strings.ReplaceAll(c.path, " ", "%20"), headers(), nil)
		if got.status != c.status || c.code != "" && (!strings.HasPrefix(got.body, `{"code":"`+c.code+`","message":"`) || got.header.Get("Content-Type") != "application/json") {
			t.Errorf("%s: %d %s", c.path, got.status, got.body)
		}
		checkHeaders(t, got.header)
	}
}

// failing is a resource that cannot be read from a place on.
type failing struct {
	size, bad int64
	closed    chan struct{}
}

func (f *failing) Size() int64  { return f.size }
func (f *failing) Close() error { close(f.closed); return errors.New("close too") }
func (f *failing) ReadAt(p []byte, at int64) (int, error) {
	if n := max(0, f.bad-at); n < int64(len(p)) {
		return int(n), protocol.Errorf(protocol.CodeInvalidStorage, "the bytes are damaged")
	}
	return len(p), nil
}

// withResource is a backend that opens something else.
type withResource struct {
	*fake.Backend
	open func(ctx context.Context) (server.Resource, error)
}

func (b withResource) OpenResource(ctx context.Context, _, _ protocol.ID) (server.Resource, error) {
	return b.open(ctx)
}

func serveResource(t *testing.T, open func(ctx context.Context) (server.Resource, error), change ...func(*server.Options)) (*server.Server, string) {
	t.Helper()
	b := withSpace()
	change = append(change, func(o *server.Options) { o.Backend = withResource{b, open} })
	s := b.Serve(t, change...)
	return s, s.URL() + "/spaces/p/resources/" + strings.Repeat("0", 64)
}

// TestDamageIsNoEnd wants a download that breaks off to look like that, and one that cannot begin to say why.
func TestDamageIsNoEnd(t *testing.T) {
	for _, c := range []struct {
		name      string
		size, bad int64
		headers   []string
		status    int // 0: the answer breaks off
		body      string
	}{
		{name: "at the start", size: 1 << 20, bad: 0, status: 400, body: `{"code":"invalid_storage","message":"the bytes are damaged"}`},
		{name: "in the first part", size: 1 << 20, bad: 100, status: 400, body: `{"code":"invalid_storage","message":"the bytes are damaged"}`},
		{name: "later", size: 1 << 20, bad: 500_000},
		{name: "at the last byte", size: 1 << 20, bad: 1<<20 - 1},
		{name: "in a range", size: 1 << 20, bad: 500_000, headers: []string{"Range", "bytes=400000-600000"}},
		{name: "behind a range", size: 1 << 20, bad: 500_000, headers: []string{"Range", "bytes=0-3"}, status: 206, body: "\x00\x00\x00\x00"},
		{name: "before a range", size: 1 << 20, bad: 500_000, headers: []string{"Range", "bytes=600000-"}, status: 400, body: `{"code":"invalid_storage","message":"the bytes are damaged"}`},
	} {
		r := &failing{c.size, c.bad, make(chan struct{})}
		_, url := serveResource(t, func(context.Context) (server.Resource, error) { return r, nil })
		got, err := fetch(t, "GET", url, headers(c.headers...), nil)
		if c.status == 0 && err == nil || c.status != 0 && (err != nil || got.status != c.status || got.body != c.body) {
			t.Errorf("%s: %d, %d bytes, %v", c.name, got.status, len(got.body), err)
		}
		if got.status >= 400 {
			checkResourceHeaders(t, c.name, got, "")
		}
		<-r.closed
	}
}

func TestFailuresOfOpening(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{errors.New("secret path"), 500, `{"code":"storage","message":"Internal error: the backend could not finish this call; its log says why"}`},
		{protocol.Errorf(protocol.CodeClosed, "The backend has ended"), 400, `{"code":"closed","message":"The backend has ended"}`},
	} {
		_, url := serveResource(t, func(context.Context) (server.Resource, error) { return nil, c.err })
		if got := mustFetch(t, "GET", url, headers(), nil); got.status != c.status || got.body != c.body {
			t.Errorf("%v: %d %s", c.err, got.status, got.body)
		}
	}
}

// endless is a resource that is larger than any buffer between the two ends.
type endless struct {
	closed chan struct{}
	once   sync.Once
}

func (*endless) Size() int64                           { return 1 << 40 }
func (e *endless) Close() error                        { e.once.Do(func() { close(e.closed) }); return nil }
func (*endless) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

// begin asks for a resource and reads only the first byte of the answer.
func begin(t *testing.T, url string) net.Conn {
	t.Helper()
	address, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /"+path+" HTTP/1.1\r\nHost: "+address+"\r\nAuthorization: Bearer "+fake.Token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestClientsThatStopReading wants the resource of a download to be closed when its client pauses for too long, leaves, or the server stops.
func TestClientsThatStopReading(t *testing.T) {
	for name, stop := range map[string]func(net.Conn, *server.Server){
		"pauses": nil,
		"leaves": func(c net.Conn, _ *server.Server) { _ = c.Close() },
		"is cut": func(_ net.Conn, s *server.Server) {
			cut, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Shutdown(cut) // its error says that something was cut
		},
	} {
		r := &endless{closed: make(chan struct{})}
		s, url := serveResource(t, func(context.Context) (server.Resource, error) { return r, nil }, func(o *server.Options) {
			if stop == nil {
				o.Stall = 20 * time.Millisecond
			}
		})
		conn := begin(t, url)
		if stop != nil {
			stop(conn, s)
		}
		select {
		case <-r.closed:
		case <-time.After(30 * time.Second):
			t.Errorf("a client that %s keeps its resource open", name)
		}
	}
}

// TestSlowReaderGetsEverything reads a byte at a time at first: what is behind does not fit between the two ends.
func TestSlowReaderGetsEverything(t *testing.T) {
	b := withSpace()
	base := b.Serve(t).URL()
	data := strings.Repeat("0123456789abcdef", 1<<20)
	request, err := http.NewRequest("GET", base+"/spaces/p/resources/"+string(b.Keep("p", []byte(data))), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = headers()
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, ReadBufferSize: 1}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got strings.Builder
	for range 10_000 {
		if _, err := io.CopyN(&got, response.Body, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.Copy(&got, response.Body); err != nil || got.String() != data {
		t.Errorf("%d bytes of %d: %v", got.Len(), len(data), err)
	}
}

// FuzzRange sends any Range and conditions: the answer is the whole, exactly the part that it names, or none.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-1", "bytes=-3", "bytes=4-", "bytes=9-2", "bytes=0-0,5-6", "items=1", "bytes=99999999999999999999-", "bytes= 1-2", "=", "bytes=-0"} {
		f.Add(seed, "")
	}
	f.Add("bytes=1-2", "*")
	f.Add("", `W/"x", "y`)
	const data = "0123456789"
	b := withSpace()
	base := b.Serve(f).URL()
	url := base + "/spaces/p/resources/" + string(b.Keep("p", []byte(data)))
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	f.Cleanup(client.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, rng, match string) {
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = headers("Range", rng)
		if match != "" {
			request.Header.Set("If-None-Match", match)
		}
		response, err := client.Do(request)
		if err != nil {
			return // what no header can hold was not sent
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		named := response.Header.Get("Content-Range")
		switch response.StatusCode {
		case 200:
			if string(body) != data || named != "" {
				t.Errorf("%q: %q %q", rng, body, named)
			}
		case 206:
			at := strings.Index(data, string(body))
			if len(body) == 0 || at < 0 || named != "bytes "+strconv.Itoa(at)+"-"+strconv.Itoa(at+len(body)-1)+"/10" {
				t.Errorf("%q: %q %q", rng, body, named)
			}
		case 304, 400, 416:
			if response.StatusCode != 400 && len(body) > 0 || response.StatusCode == 416 && named != "bytes */10" {
				t.Errorf("%q: %d %q %q", rng, response.StatusCode, body, named)
			}
		default:
			t.Errorf("%q: %d", rng, response.StatusCode)
		}
	})
}
