package connection

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/anthropic"
	"github.com/repa-app/repa/agent/llm/google"
	"github.com/repa-app/repa/agent/llm/offline"
	"github.com/repa-app/repa/agent/llm/openai"
)

// Provider names a kind of endpoint.
type Provider string

// The providers. Keys are optional at an endpoint that is not the provider's own.
const (
	Builtin   Provider = "builtin"
	OpenAI    Provider = "openai"    // and every server that speaks OpenAI's Chat Completions
	Anthropic Provider = "anthropic" // Messages
	Google    Provider = "google"    // Gemini
	Ollama    Provider = "ollama"    // OpenAI's wire format, usually without a key
)

// LentPrefix begins the id of every lent connection, so that such an id is known for what it was after its backend ended.
const LentPrefix = "lent-"

// OfflineModel is the one model of the builtin connection.
const OfflineModel = "offline"

// Definition is a connection without its secret.
type Definition struct {
	ID       string
	Name     string
	Provider Provider
	BaseURL  string // empty: the provider's own
	Keyless  bool   // no key is sent
	API      string // the wire format, as session files name it
}

// Error is a domain error.
type Error struct{ code, message string }

// Error implements error.
func (e *Error) Error() string { return e.message }

// Code returns provider_not_found, connection_invalid, connection_not_found, model_not_found, auth_required or provider.
func (e *Error) Code() string { return e.code }

func fail(code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Offline is the builtin connection.
func Offline() Lent {
	return Lent{Definition: Definition{ID: string(Builtin), Name: "Built in", Provider: Builtin, Keyless: true, API: offline.API}}
}

// Lent is a connection with its secret.
type Lent struct {
	Definition
	secret secret
}

// secret holds a key behind a pointer: whatever prints a value that holds it, at any depth, shows an address.
type secret struct{ text *string }

func (s secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Lend makes a lent connection; its id ends with the random text given. Errors: provider_not_found; connection_invalid for a base
// URL that is not http(s) or carries credentials or a query, for no key at the provider's own endpoint, and for a key
// with characters that no header can carry.
func Lend(random string, provider Provider, baseURL, key string) (Lent, error) {
	d := Definition{Provider: provider, Name: string(provider), BaseURL: baseURL, Keyless: key == ""}
	switch provider {
	case OpenAI:
		d.API = openai.API
	case Anthropic:
		d.API = anthropic.API
	case Google:
		d.API = google.API
	case Ollama:
		d.API = openai.API
	default:
		return Lent{}, fail("provider_not_found", "there is no provider %q; known are openai, anthropic, google and ollama", provider)
	}
	if err := checkURL(baseURL); err != nil {
		return Lent{}, err
	}
	if key == "" && baseURL == "" && provider != Ollama {
		return Lent{}, fail("connection_invalid", "%s needs an API key", provider)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return Lent{}, fail("connection_invalid", "the API key for %s contains a space or another character that no key has; copy it again", provider)
	}
	d.ID = LentPrefix + string(provider) + "-" + random
	return Lent{Definition: d, secret: secret{&key}}, nil
}

// Same reports whether both reach the same provider at the same endpoint with the same secret.
func (l Lent) Same(other Lent) bool {
	return l.Provider == other.Provider && l.BaseURL == other.BaseURL && l.secret.reveal() == other.secret.reveal()
}

func checkURL(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fail("connection_invalid", "the base URL is no http or https address; it looks like https://host/path")
	case u.User != nil:
		return fail("connection_invalid", "the base URL of %s contains a user name or password; leave them out", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return fail("connection_invalid", "the base URL of %s contains a part behind ? or #; leave it out, the key is handed over by itself", u.Host)
	}
	return nil
}

// Bound is a connection with the model that a run uses.
type Bound struct {
	Lent
	Model string
}

// Bind chooses a model. Errors: model_not_found.
func (l Lent) Bind(model string) (Bound, error) {
	if l.Provider == Builtin && model != OfflineModel {
		return Bound{}, fail("model_not_found", "the built-in connection has no model %q; its only model is %s", model, OfflineModel)
	}
	if strings.TrimSpace(model) == "" {
		return Bound{}, fail("model_not_found", "no model was named for %s", l.Name)
	}
	return Bound{Lent: l, Model: model}, nil
}

// Open returns the provider. httpClient's transport and timeout are used; nil is the standard library's.
func (b Bound) Open(httpClient *http.Client) llm.Provider {
	switch b.Provider {
	case OpenAI:
		return openai.New(openai.Options{BaseURL: b.BaseURL, APIKey: b.secret.reveal(), HTTPClient: httpClient})
	case Anthropic:
		return anthropic.New(anthropic.Options{BaseURL: b.BaseURL, APIKey: b.secret.reveal(), HTTPClient: httpClient})
	case Google:
		return google.New(google.Options{BaseURL: b.BaseURL, APIKey: b.secret.reveal(), HTTPClient: httpClient})
	case Ollama:
		return openai.New(openai.Options{BaseURL: b.endpoint(), APIKey: b.secret.reveal(), Provider: string(Ollama), HTTPClient: httpClient})
	}
	return offline.New()
}

// defaultOllama is where an Ollama server listens when nothing else is said.
const defaultOllama = "http://127.0.0.1:11434"

// endpoint is the base address of the wire format.
func (l Lent) endpoint() string {
	base := l.BaseURL
	switch {
	case l.Provider == Ollama:
		if base == "" {
			base = defaultOllama
		}
		if base = strings.TrimRight(base, "/"); !strings.HasSuffix(base, "/v1") {
			base += "/v1"
		}
	case base != "":
	case l.Provider == OpenAI:
		base = openai.DefaultBaseURL
	case l.Provider == Anthropic:
		base = anthropic.DefaultBaseURL
	case l.Provider == Google:
		base = google.DefaultBaseURL
	}
	return base
}

// NotFound is the error for an id that names no connection of this host.
func NotFound(id string) error {
	if strings.HasPrefix(id, LentPrefix) {
		return fail("auth_required", "the key for connection %s was lent to a backend or front end that has ended; hand it over again", id)
	}
	return fail("connection_not_found", "there is no model connection %q", id)
}
