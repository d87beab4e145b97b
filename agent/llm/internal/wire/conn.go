package wire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// Format is the shape of a stream.
type Format uint8

const (
	OpenAI    Format = iota // data lines, [DONE] at the end
	Anthropic               // named events
	Google                  // data lines, ends with the body
)

// idleLimit ends a call when nothing arrives for so long. Local servers load a model for minutes before the first byte;
// five minutes is also what Pi waits.
const idleLimit = 5 * time.Minute

var errIdle = errors.New("nothing arrived for 5 minutes")

// Conn is an endpoint with its credential.
type Conn struct {
	Provider string
	API      string
	format   Format
	keyless  bool
	client   *http.Client
	secrets  []string
}

// NewConn returns a connection. base is only looked at for a password to keep out of errors. From client its transport and
// timeout are used; nil means the standard library's.
func NewConn(provider, api string, format Format, base, key string, client *http.Client) *Conn {
	c := &Conn{Provider: provider, API: api, format: format, keyless: key == ""}
	if u, err := url.Parse(base); err == nil {
		if password, ok := u.User.Password(); ok {
			c.secrets = append(c.secrets, password)
		}
	}
	if key != "" {
		c.secrets = append(c.secrets, key, url.QueryEscape(key))
	}
	var next http.RoundTripper = http.DefaultTransport
	c.client = &http.Client{}
	if client != nil {
		c.client.Timeout, c.client.Jar = client.Timeout, client.Jar
		if client.Transport != nil {
			next = client.Transport
		}
	}
	c.client.Transport = &transport{next: next, conn: c}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Client is the HTTP client for the SDK.
func (c *Conn) Client() *http.Client { return c.client }

// Run performs one call. stream talks to the SDK with the given context and fills the answer; it returns what the SDK
// returned, or an *llm.Error of its own.
func (c *Conn) Run(ctx context.Context, req *llm.Request, emit func(llm.Event), stream func(context.Context, *Answer) error) (*llm.Message, error) {
	a := newAnswer(c, req, emit)
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{cancel: cancel}
	x.idle = time.AfterFunc(idleLimit, func() { cancel(errIdle) })
	defer x.idle.Stop()

	var err error
	if ctx.Err() == nil {
		err = stream(context.WithValue(inner, exchangeKey{}, x), a)
	}
	if failure := c.failure(ctx, inner, x, a, err); failure != nil {
		return a.fail(failure), failure
	}
	return a.finish(), nil
}

// failure decides what went wrong, if anything did. What the transport saw comes before what the SDK says about it.
func (c *Conn) failure(ctx, inner context.Context, x *exchange, a *Answer, err error) *llm.Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var own *llm.Error
	clean := x.fault == nil && err == nil
	switch {
	case clean && a.stop != "":
		return nil
	case ctx.Err() != nil:
		own = &llm.Error{Kind: llm.KindAborted, Cause: context.Cause(ctx)}
	case context.Cause(inner) == errIdle:
		own = &llm.Error{Kind: llm.KindTimeout, Retryable: true, Words: errIdle.Error()}
	case x.fault != nil:
		own = x.fault
	case errors.As(err, &own):
	case err != nil && x.url == "":
		own = &llm.Error{Kind: llm.KindInvalid, Words: err.Error(), Cause: err}
	case err != nil:
		own = &llm.Error{Kind: llm.KindProtocol, Words: err.Error()}
	default:
		own = &llm.Error{Kind: llm.KindInterrupted, Retryable: true, Words: "the stream ended before its last event"}
	}
	out := *own
	out.Provider, out.URL, out.Keyless = c.Provider, x.url, c.keyless
	if out.Status == 0 {
		out.Status = x.status
	}
	out.Words = c.clean(out.Words)
	return &out
}

// maxWords bounds the provider's words in an error: enough for a long explanation, too little to fill a screen.
const maxWords = 600

// clean removes secrets, line breaks and excess from text that came from outside.
func (c *Conn) clean(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, s := range c.secrets {
		if len(s) >= 4 { // a shorter one is no secret, and cutting it out would garble the text
			text = strings.ReplaceAll(text, s, "[key removed]")
		}
	}
	if runes := []rune(text); len(runes) > maxWords {
		text = string(runes[:maxWords]) + "…"
	}
	return text
}
