package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "", 0},
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "-3", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "Tue, 01 Dec 2026 10:00:30 GMT", 30 * time.Second},
		{"Retry-After", "Tue, 01 Dec 2026 09:00:00 GMT", 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"Retry-After-Ms", "inf", 24 * time.Hour},
	} {
		if got := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestParseError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{`{"error":{"message":"m","type":"t"}}`, "m"},
		{`{"type":"error","error":{"type":"t","message":"m"}}`, "m"},
		{`[{"error":{"code":400,"message":"m","status":"S"}}]`, "m"},
		{`{"error":"m"}`, "m"},
		{`{"message":"m"}`, "m"},
		{`{"detail":"m"}`, "m"},
		{`{"detail":[{"loc":["body"],"msg":"a"},{"msg":"b"}]}`, "a; b"},
		{`{"error":{"message":"Provider returned error","metadata":{"raw":"behind"}}}`, "Provider returned error: behind"},
		{`{"error":{"code":3}}`, `{"error":{"code":3}}`},
		{`[]`, `[]`},
		{"busy\n", "busy"},
		{"<html><title> Oops </title>", "a web page titled Oops"},
		{"<p>", "a web page"},
		{"", ""},
	} {
		if got := parseError([]byte(c.body)).Words; got != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
	}
}

func FuzzParseError(f *testing.F) {
	for _, seed := range []string{`{"error":{"details":[{"retryDelay":"3s"},7]}}`, `[[{}]]`, `{"detail":[null]}`, "<title>", "\xff", `{"error":{"code":1e400}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if p := parseError(body); p.RetryAfter < 0 || p.code != 0 && (p.code < 400 || p.code > 599) {
			t.Errorf("%q: %+v", body, p)
		}
	})
}

func TestClean(t *testing.T) {
	t.Parallel()
	c := NewConn("p", "a", OpenAI, "http://user:hunter2+@h/", "sk/secret=", nil)
	got := c.clean("the key sk/secret= or sk%2Fsecret%3D\n of  hunter2+ is wrong")
	if want := "the key [key removed] or [key removed] of [key removed] is wrong"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := make([]rune, 2000)
	for i := range long {
		long[i] = '长'
	}
	if got := []rune(c.clean(string(long))); len(got) != maxWords+1 || got[maxWords] != '…' {
		t.Errorf("%d characters left", len(got))
	}
}
