package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// maxErrorBody bounds what is read of an error answer. Providers send a few hundred bytes; proxies send pages.
const maxErrorBody = 64 << 10

type exchangeKey struct{}

// exchange is what the transport saw of one call.
type exchange struct {
	cancel context.CancelCauseFunc
	idle   *time.Timer

	mu     sync.Mutex
	url    string
	status int
	fault  *llm.Error
}

func (x *exchange) alive() { x.idle.Reset(idleLimit) }

// fail records the first fault; later ones are its consequences.
func (x *exchange) fail(e *llm.Error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fault == nil {
		x.fault = e
	}
}

type transport struct {
	next http.RoundTripper
	conn *Conn
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.next.RoundTrip(req)
	}
	if t.conn.keyless && t.conn.format == Google {
		req = req.Clone(req.Context())
		req.Header.Del("X-Goog-Api-Key") // the SDK refuses to work without a key; a stand-in was given to it
	}
	x.mu.Lock()
	x.url = (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}).String()
	x.mu.Unlock()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		x.fail(unreachable(err))
		return nil, err
	}
	x.alive()
	x.mu.Lock()
	x.status = resp.StatusCode
	x.mu.Unlock()
	if resp.StatusCode/100 != 2 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		_ = resp.Body.Close()
		x.fail(statusError(resp, body))
		resp.Body = http.NoBody
		return resp, nil
	}
	resp.Body = newStream(resp.Body, t.conn.format, x)
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	return resp, nil
}

func unreachable(err error) *llm.Error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // url.Error carries the whole address
	}
	var certificate *tls.CertificateVerificationError
	return &llm.Error{Kind: llm.KindUnreachable, Retryable: !errors.As(err, &certificate) && !absent(err), Words: err.Error(), Cause: err}
}

// absent reports that no server listens at an address of this machine: one that is not running does not come up by waiting.
func absent(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || !errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	address, ok := op.Addr.(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

func statusError(resp *http.Response, body []byte) *llm.Error {
	e := parseError(body)
	e.Status = resp.StatusCode
	if resp.StatusCode/100 == 3 {
		e.Kind, e.Retryable = llm.KindInvalid, false
		e.Words = "the server redirects to another address, which is not followed"
		return &e.Error
	}
	e.Kind, e.Retryable = llm.Classify(resp.StatusCode, e.tagged)
	if wait := retryAfter(resp.Header, time.Now()); wait > 0 {
		e.RetryAfter = wait
	}
	return &e.Error
}

// retryAfter reads the headers in which servers say when to come back: milliseconds, seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	const day = 24 * 60 * 60 // longer pauses mean the same: not now
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, day*1000) * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(min(s, day) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// isNone reports whether a JSON value says nothing: null, false, "", {} or absent.
func isNone(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}":
		return true
	}
	return false
}
