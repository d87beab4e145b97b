package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/repa-app/repa/protocol/internal/fake"
	"github.com/repa-app/repa/protocol/server"
	"github.com/repa-app/repa/testkit/frames"
)

// exchange sends a request byte for byte and gives the status, 0 when the connection was cut without an answer.
func exchange(t *testing.T, base, request string) (int, http.Header) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header
}

func port(base string) string { return base[strings.LastIndex(base, ":")+1:] }

// foreignHosts are spellings that a rebinding page or a careless check would let through.
func foreignHosts(port string) []string {
	p := ":" + port
	return []string{
		"", " ", ":", p, "127.0.0.1", "localhost", "[::1]", "::1", "::1" + p, "127.0.0.1:", "localhost:", "127.0.0.1:0", "127.0.0.1:80",
		"localhost:80", "localhost:443", "[::1]:80", "127.0.0.1:1" + port, "127.0.0.1:0" + port, "localhost:0" + port, "127.0.0.1" + p + "0",
		"0.0.0.0", "0.0.0.0" + p, "[::]" + p, "[::ffff:127.0.0.1]" + p, "[::ffff:7f00:1]" + p, "[0:0:0:0:0:0:0:1]" + p, "[::0001]" + p, "[::1%25lo]" + p, "[::1%lo]" + p,
		"localhost." + p, "127.0.0.1." + p, "localhost.." + p, "LOCALHOST" + p, "Localhost" + p, "localHost" + p, "ⅼocalhost" + p, "localhost%00" + p,
		"127.1" + p, "127.0.1" + p, "127.0.0.01" + p, "127.000.000.001" + p, "2130706433" + p, "0x7f000001" + p, "0x7f.0.0.1" + p, "0177.0.0.1" + p, "017700000001" + p,
		"127.0.0.2" + p, "127.0.0.1" + p + "@evil.example", "evil.example@127.0.0.1" + p, "user:pass@localhost" + p, "localhost" + p + "#x", "localhost" + p + "?x", "localhost" + p + "/",
		"evil.example", "evil.example" + p, "localhost.evil.example" + p, "127.0.0.1.evil.example" + p, "127.0.0.1.nip.io" + p, "evil.localhost" + p, "localhostevil" + p, "xlocalhost" + p,
		"localtest.me" + p, "lvh.me" + p, "localhost,evil.example" + p, "127.0.0.1" + p + ",evil.example", "localhost" + p + " evil.example", "localhost.localdomain" + p,
		"ip6-localhost" + p, "10.0.0.1" + p, "192.168.0.1" + p, "169.254.169.254" + p, "host.docker.internal" + p, "[fe80::1]" + p, "http://127.0.0.1" + p,
	}
}

func TestOnlyOwnHosts(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	request := func(path, host, more string) string {
		return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s\r\n", path, host, fake.Token, more)
	}
	for _, host := range []string{"127.0.0.1:", "localhost:", "[::1]:"} {
		if status, _ := exchange(t, base, request("/protocol.json", host+port(base), "")); status != http.StatusOK {
			t.Errorf("own host %s: %d", host, status)
		}
	}
	hosts := foreignHosts(port(base))
	if len(hosts) < 60 {
		t.Errorf("only %d hosts", len(hosts))
	}
	upgrade := "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, host := range hosts {
		for path, more := range map[string]string{"/protocol.json": "", "/rpc": upgrade, "/other": upgrade} {
			// What is no host name at all is refused by net/http itself, before any handler.
			if status, _ := exchange(t, base, request(path, host, more)); status != http.StatusForbidden && status != http.StatusBadRequest {
				t.Errorf("host %q at %s: %d", host, path, status)
			}
		}
	}
	for name, raw := range map[string]string{
		"no host, 1.0": "GET /protocol.json HTTP/1.0\r\nAuthorization: Bearer " + fake.Token + "\r\n\r\n",
		"no host, 1.1": "GET /protocol.json HTTP/1.1\r\nConnection: close\r\n\r\n",
		"absolute":     "GET http://evil.example/protocol.json HTTP/1.1\r\nHost: 127.0.0.1:" + port(base) + "\r\nConnection: close\r\n\r\n",
		"two hosts":    "GET /protocol.json HTTP/1.1\r\nHost: 127.0.0.1:" + port(base) + "\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
	} {
		if status, _ := exchange(t, base, raw); status != http.StatusForbidden && status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// caller is who asks, by what the headers say.
type caller struct {
	name    string
	headers map[string]string
	query   string
	host    string
	token   bool // has the right token
	foreign bool // is refused before the token counts
}

func callers(base string) []caller {
	right := "Bearer " + fake.Token
	return []caller{
		{name: "no token"},
		{name: "wrong token", headers: map[string]string{"Authorization": "Bearer " + strings.Repeat("x", len(fake.Token))}},
		{name: "short token", headers: map[string]string{"Authorization": "Bearer " + fake.Token[:31]}},
		{name: "empty token", headers: map[string]string{"Authorization": "Bearer "}},
		{name: "basic", headers: map[string]string{"Authorization": "Basic " + fake.Token}},
		{name: "query token", query: "?token=" + fake.Token},
		{name: "cookie token", headers: map[string]string{"Cookie": "token=" + fake.Token}},
		{name: "foreign host", headers: map[string]string{"Authorization": right}, host: "evil.example", foreign: true},
		{name: "foreign origin", headers: map[string]string{"Authorization": right, "Origin": "http://evil.example"}, foreign: true},
		{name: "other port's origin", headers: map[string]string{"Authorization": right, "Origin": "http://127.0.0.1:1"}, foreign: true},
		{name: "https origin", headers: map[string]string{"Authorization": right, "Origin": "https://127.0.0.1:" + port(base)}, foreign: true},
		{name: "null origin", headers: map[string]string{"Authorization": right, "Origin": "null"}, foreign: true},
		{name: "empty origin", headers: map[string]string{"Authorization": right, "Origin": ""}, foreign: true},
		{name: "two origins", headers: map[string]string{"Authorization": right, "Origin": base + "\r\nOrigin: " + base}, foreign: true},
		{name: "right", headers: map[string]string{"Authorization": right}, token: true},
		{name: "right, own origin", headers: map[string]string{"Authorization": right, "Origin": base}, token: true},
		{name: "other name's origin", headers: map[string]string{"Authorization": right, "Origin": "http://localhost:" + port(base)}, foreign: true},
	}
}

// TestEveryRouteIsClosed walks all routes with all callers.
func TestEveryRouteIsClosed(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	resource := "/spaces/p/resources/" + strings.Repeat("0", 64)
	routes := []struct {
		method, path string
		allowed      int // with the right token
	}{
		{"GET", "/protocol.json", 200}, {"HEAD", "/protocol.json", 200}, {"POST", "/protocol.json", 405}, {"DELETE", "/protocol.json", 405},
		{"PUT", "/protocol.json", 405}, {"PATCH", "/protocol.json", 405}, {"TRACE", "/protocol.json", 405}, {"GET", "/", 404}, {"GET", "/rpc", 404}, {"POST", "/rpc", 405},
		{"GET", "/health", 404}, {"GET", "/debug/pprof/", 404}, {"GET", "//protocol.json", 404}, {"GET", "/protocol.json/", 404}, {"GET", "/%70rotocol.json", 200},
		{"POST", "/nothing", 405}, {"GET", "/../protocol.json", 404},
		// The fake has no space, and nobody here has a host key.
		{"GET", resource, 400}, {"HEAD", resource, 400}, {"POST", resource, 405}, {"DELETE", resource, 405}, {"POST", "/spaces/p/resources", 401},
		{"PUT", "/spaces/p/resources", 405}, {"GET", "/spaces/p/resources", 404}, {"GET", "/spaces/p/resources/x", 404},
	}
	for _, route := range routes {
		for _, c := range callers(base) {
			host := c.host
			if host == "" {
				host = strings.TrimPrefix(base, "http://")
			}
			request := fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 0\r\n", route.method, route.path, c.query, host)
			for name, value := range c.headers {
				request += name + ": " + value + "\r\n"
			}
			status, header := exchange(t, base, request+"\r\n")
			want := http.StatusUnauthorized
			if c.foreign {
				want = http.StatusForbidden
			} else if c.token {
				want = route.allowed
			}
			if status != want {
				t.Errorf("%s %s with %s: %d, want %d", route.method, route.path, c.name, status, want)
			}
			checkHeaders(t, header)
		}
	}
}

func checkHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("answer has %s", name)
		}
	}
	if header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("answer lacks its headers: %v", header)
	}
}

func TestOptionsIsAnsweredWithoutTokenAndWithoutCORS(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	status, header := exchange(t, base, "OPTIONS /anything HTTP/1.1\r\nHost: "+strings.TrimPrefix(base, "http://")+"\r\nConnection: close\r\n\r\n")
	if status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	checkHeaders(t, header)
}

func TestCrossSiteRequestIsRefused(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	request := "POST /nothing HTTP/1.1\r\nHost: " + strings.TrimPrefix(base, "http://") + "\r\nConnection: close\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 0\r\nAuthorization: Bearer " + fake.Token + "\r\n\r\n"
	if status, _ := exchange(t, base, request); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
}

func TestUpgradeOnlyAtRPC(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	for _, c := range []struct {
		path    string
		headers map[string]string
		want    int // 0: cut without an answer
	}{
		{path: "/rpc", want: 101},
		{path: "/rpc?token=x", want: 101},
		{path: "/rpc", headers: map[string]string{"Origin": base}, want: 101},
		{path: "/rpc", headers: map[string]string{"Authorization": "Bearer " + fake.Token}, want: 101},
		{path: "/rpc", headers: map[string]string{"Authorization": "Bearer wrong"}, want: 401},
		{path: "/rpc", headers: map[string]string{"Origin": "http://evil.example"}, want: 403},
		{path: "/rpc", headers: map[string]string{"Origin": "null"}, want: 403},
		{path: "/rpc", headers: map[string]string{"Host": "evil.example"}, want: 403},
		{path: "/rpc", headers: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		{path: "/rpc/"}, {path: "/%72pc"}, {path: "//rpc"}, {path: "/RPC"}, {path: "/"}, {path: "/protocol.json"},
		{path: "/protocol.json", headers: map[string]string{"Authorization": "Bearer " + fake.Token}},
	} {
		socket, err := frames.Dial(base, c.path, c.headers)
		got := 101
		var refused *frames.StatusError
		switch {
		case err == nil:
			_ = socket.Close()
		case errors.As(err, &refused):
			got = refused.Status
		default:
			got = 0
		}
		if got != c.want {
			t.Errorf("%s with %v: %d, want %d (%v)", c.path, c.headers, got, c.want, err)
		}
	}
}

func TestShortTokenIsRefused(t *testing.T) {
	if _, err := server.Listen(server.Options{Token: strings.Repeat("x", 31), Backend: fake.New("s")}); err == nil {
		t.Error("a token of 31 characters was accepted")
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	u, err := url.Parse(fake.New("s").Serve(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	if u.Hostname() != "127.0.0.1" {
		t.Errorf("listens at %s", u)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip, ok := address.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip.IP.String(), u.Port()), 5*time.Second)
		if err == nil {
			_ = conn.Close()
			t.Errorf("reachable at %s", ip.IP)
		}
	}
}

func TestUnauthorisedSocketsAreLimited(t *testing.T) {
	base := fake.New("s").Serve(t).URL()
	var sockets []*frames.Socket
	for i := range 32 {
		socket, err := frames.Dial(base, "/rpc", nil)
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		sockets = append(sockets, socket)
		defer socket.Close()
	}
	var refused *frames.StatusError
	if _, err := frames.Dial(base, "/rpc", nil); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Fatalf("socket 33: %v", err)
	}
	call(t, sockets[0], `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"versions":[1],"token":"`+fake.Token+`"}}`)
	last, err := frames.Dial(base, "/rpc", nil)
	if err != nil {
		t.Fatalf("after one was authorised: %v", err)
	}
	_ = last.Close()
}
