package connection_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/repa-app/repa/agent/connection"
	"github.com/repa-app/repa/agent/llm"
	"github.com/repa-app/repa/agent/llm/anthropic"
	"github.com/repa-app/repa/agent/llm/google"
	"github.com/repa-app/repa/agent/llm/offline"
	"github.com/repa-app/repa/agent/llm/openai"
	"github.com/repa-app/repa/testkit/modelserver"
)

const canary = "sk-canary-4f9a27c1"

func lend(t *testing.T, provider connection.Provider, base, key string) connection.Lent {
	t.Helper()
	l, err := connection.Lend("r1", provider, base, key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// refused checks that an error has the code and says the words, and that no key is in it.
func refused(t *testing.T, err error, code string, words ...string) {
	t.Helper()
	var domain *connection.Error
	if !errors.As(err, &domain) {
		t.Fatalf("error %v (%T)", err, err)
	}
	if domain.Code() != code {
		t.Errorf("code %s of %q, want %s", domain.Code(), err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), canary) {
		t.Errorf("the key is in the error: %v", err)
	}
}

func TestLend(t *testing.T) {
	for name, c := range map[string]struct {
		provider connection.Provider
		base     string
		key      string
		want     connection.Definition
	}{
		"openai":             {connection.OpenAI, "", canary, connection.Definition{API: openai.API}},
		"anthropic":          {connection.Anthropic, "", canary, connection.Definition{API: anthropic.API}},
		"google":             {connection.Google, "", canary, connection.Definition{API: google.API}},
		"ollama":             {connection.Ollama, "", "", connection.Definition{API: openai.API, Keyless: true}},
		"ollama with a key":  {connection.Ollama, "https://ollama.example", canary, connection.Definition{API: openai.API}},
		"own server":         {connection.OpenAI, "http://127.0.0.1:8080/v1", "", connection.Definition{API: openai.API, Keyless: true}},
		"own server and key": {connection.OpenAI, "HTTPS://host/v1", canary, connection.Definition{API: openai.API}},
		"every printable":    {connection.OpenAI, "", "!~+/=_-.:\"\\", connection.Definition{API: openai.API}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lend(t, c.provider, c.base, c.key).Definition
			c.want.ID, c.want.Provider, c.want.Name, c.want.BaseURL = "lent-"+string(c.provider)+"-r1", c.provider, string(c.provider), c.base
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestLendRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		provider connection.Provider
		base     string
		key      string
		code     string
		words    []string
	}{
		"unknown provider":    {"mistral", "", canary, "provider_not_found", []string{`"mistral"`, "openai, anthropic, google and ollama"}},
		"no provider":         {"", "", canary, "provider_not_found", nil},
		"builtin":             {connection.Builtin, "", canary, "provider_not_found", nil},
		"other letter case":   {"OpenAI", "", canary, "provider_not_found", nil},
		"no scheme":           {connection.OpenAI, "localhost:8080/v1", canary, "connection_invalid", []string{"https://host/path"}},
		"another scheme":      {connection.OpenAI, "ftp://host/v1", canary, "connection_invalid", nil},
		"a file":              {connection.OpenAI, "file:///etc/passwd", canary, "connection_invalid", nil},
		"a path":              {connection.Ollama, "/v1", "", "connection_invalid", nil},
		"no host":             {connection.OpenAI, "http:///v1", canary, "connection_invalid", nil},
		"only a port":         {connection.OpenAI, "http://:80/v1", canary, "connection_invalid", nil},
		"broken":              {connection.OpenAI, "http://[::1", canary, "connection_invalid", nil},
		"control character":   {connection.OpenAI, "http://host/\n", canary, "connection_invalid", nil},
		"blank":               {connection.OpenAI, " ", canary, "connection_invalid", nil},
		"user name":           {connection.OpenAI, "https://me@host/v1", canary, "connection_invalid", []string{"host", "user name"}},
		"password":            {connection.Google, "https://me:" + canary + "@host", canary, "connection_invalid", []string{"host", "password"}},
		"key in the query":    {connection.Google, "https://host/v1beta?key=" + canary, canary, "connection_invalid", []string{"host", "leave it out"}},
		"key in the fragment": {connection.Google, "https://host/#" + canary, canary, "connection_invalid", []string{"host"}},
		"openai, no key":      {connection.OpenAI, "", "", "connection_invalid", []string{"openai needs an API key"}},
		"anthropic, no key":   {connection.Anthropic, "", "", "connection_invalid", []string{"anthropic"}},
		"google, no key":      {connection.Google, "", "", "connection_invalid", []string{"google"}},
		"line feed":           {connection.OpenAI, "", canary + "\n", "connection_invalid", []string{"openai", "copy it again"}},
		"header injection":    {connection.OpenAI, "", canary + "\r\nX-Evil: 1", "connection_invalid", nil},
		"space":               {connection.Anthropic, "", canary + " " + canary, "connection_invalid", nil},
		"blank key":           {connection.OpenAI, "", "  ", "connection_invalid", nil},
		"other script":        {connection.OpenAI, "", canary + "密", "connection_invalid", nil},
		"delete":              {connection.Ollama, "", canary + "\x7f", "connection_invalid", nil},
		"zero":                {connection.OpenAI, "", canary + "\x00", "connection_invalid", nil},
		"no text":             {connection.OpenAI, "", canary + "\xff", "connection_invalid", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := connection.Lend("r1", c.provider, c.base, c.key)
			refused(t, err, c.code, c.words...)
			if l != (connection.Lent{}) {
				t.Errorf("a connection comes with the error: %+v", l)
			}
		})
	}
}

func TestSame(t *testing.T) {
	one := lend(t, connection.OpenAI, "http://a/v1", canary)
	again, err := connection.Lend("r2", connection.OpenAI, "http://a/v1", strings.Clone(canary))
	if err != nil {
		t.Fatal(err)
	}
	if !one.Same(again) || !again.Same(one) || one.ID == again.ID {
		t.Errorf("%s and %s are the same connection under two ids", one.ID, again.ID)
	}
	for name, other := range map[string]connection.Lent{
		"provider": lend(t, connection.Google, "http://a/v1", canary),
		"endpoint": lend(t, connection.OpenAI, "http://b/v1", canary),
		"key":      lend(t, connection.OpenAI, "http://a/v1", canary+"2"),
		"no key":   lend(t, connection.OpenAI, "http://a/v1", ""),
		"builtin":  connection.Offline(),
	} {
		if one.Same(other) || other.Same(one) {
			t.Errorf("another %s counts as the same", name)
		}
	}
	if !connection.Offline().Same(connection.Offline()) {
		t.Error("the builtin connection differs from itself")
	}
}

func TestBind(t *testing.T) {
	for _, c := range []struct {
		lent  connection.Lent
		model string
		code  string
	}{
		{connection.Offline(), connection.OfflineModel, ""},
		{connection.Offline(), "gpt-5", "model_not_found"},
		{connection.Offline(), "", "model_not_found"},
		{lend(t, connection.OpenAI, "", canary), "any model", ""},
		{lend(t, connection.OpenAI, "", canary), "", "model_not_found"},
		{lend(t, connection.Ollama, "", ""), " \t", "model_not_found"},
	} {
		b, err := c.lent.Bind(c.model)
		if c.code != "" {
			refused(t, err, c.code)
			continue
		}
		if err != nil || b.Model != c.model || b.Definition != c.lent.Definition || !b.Same(c.lent) {
			t.Errorf("%s of %s: %+v, %v", c.model, c.lent.ID, b, err)
		}
	}
}

func TestNotFound(t *testing.T) {
	refused(t, connection.NotFound(lend(t, connection.OpenAI, "", canary).ID), "auth_required", "lent-openai-r1", "hand it over again")
	refused(t, connection.NotFound("mine"), "connection_not_found", `"mine"`)
	refused(t, connection.NotFound(""), "connection_not_found")
}

// TestSecretStaysInside prints every type that holds a key in every way that fmt and JSON know, also inside other values.
func TestSecretStaysInside(t *testing.T) {
	l := lend(t, connection.OpenAI, "http://a/v1", canary)
	b, err := l.Bind("m")
	if err != nil {
		t.Fatal(err)
	}
	type inside struct {
		lent  connection.Lent
		bound *connection.Bound
	}
	hex := fmt.Sprintf("%x", canary)
	for _, v := range []any{
		l, &l, b, &b, l.Definition, inside{l, &b}, &inside{l, &b}, []connection.Lent{l}, map[string]connection.Bound{"b": b}, fmt.Errorf("%v", b),
		struct{ V any }{l},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
			text := fmt.Sprintf(verb, v)
			if strings.Contains(text, canary) || strings.Contains(strings.ToLower(text), hex) {
				t.Errorf("%s of %T shows the key: %s", verb, v, text)
			}
		}
		if text, err := json.Marshal(v); err == nil && strings.Contains(string(text), canary) {
			t.Errorf("JSON of %T shows the key: %s", v, text)
		}
	}
}

func TestOpen(t *testing.T) {
	// The environment of the backend must not matter.
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY"} {
		t.Setenv(name, "sk-of-the-environment")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		t.Setenv(name, "http://192.0.2.1/")
	}
	bearer := map[string]string{"Authorization": "Bearer " + canary}
	for name, c := range map[string]struct {
		provider connection.Provider
		suffix   string // of the base URL
		key      string
		path     string
		headers  map[string]string
		owner    string
	}{
		"openai":             {connection.OpenAI, "/v1", canary, "/v1/chat/completions", bearer, "openai"},
		"openai, no key":     {connection.OpenAI, "/v1/", "", "/v1/chat/completions", nil, "openai"},
		"openai, other path": {connection.OpenAI, "/api/compatible", canary, "/api/compatible/chat/completions", bearer, "openai"},
		"anthropic":          {connection.Anthropic, "", canary, "/v1/messages", map[string]string{"X-Api-Key": canary}, "anthropic"},
		"anthropic, no key":  {connection.Anthropic, "/v1", "", "/v1/messages", nil, "anthropic"},
		"google":             {connection.Google, "", canary, "/v1beta/models/m:streamGenerateContent", map[string]string{"X-Goog-Api-Key": canary}, "google"},
		"google, no key":     {connection.Google, "/v1beta", "", "/v1beta/models/m:streamGenerateContent", nil, "google"},
		"ollama":             {connection.Ollama, "", "", "/v1/chat/completions", nil, "ollama"},
		"ollama, version":    {connection.Ollama, "/v1/", "", "/v1/chat/completions", nil, "ollama"},
		"ollama, key":        {connection.Ollama, "/", canary, "/v1/chat/completions", bearer, "ollama"},
	} {
		t.Run(name, func(t *testing.T) {
			server := modelserver.New(t, modelserver.Text("fine"))
			b, err := lend(t, c.provider, server.URL()+c.suffix, c.key).Bind("m")
			if err != nil {
				t.Fatal(err)
			}
			m, err := b.Open(server.Client()).Stream(t.Context(), &llm.Request{Model: b.Model, Messages: []llm.Message{question}}, func(llm.Event) {})
			if err != nil {
				t.Fatal(err)
			}
			if m.Text() != "fine" || m.Provider != c.owner || m.API != b.API {
				t.Errorf("message %+v", m)
			}
			requests := server.Requests()
			if len(requests) != 1 || requests[0].Path != c.path || requests[0].Model != "m" {
				t.Fatalf("requests %+v", requests)
			}
			for _, h := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
				if got := requests[0].Header.Get(h); got != c.headers[h] {
					t.Errorf("%s is %q, want %q", h, got, c.headers[h])
				}
			}
			if strings.Contains(requests[0].Query, canary) {
				t.Errorf("the key is in the address: %s", requests[0].Query)
			}
		})
	}
}

var question = llm.Message{Role: llm.RoleUser, Content: []llm.Block{{Type: llm.BlockText, Text: "What is a prime?"}}}

func TestOpenOffline(t *testing.T) {
	b, err := connection.Offline().Bind(connection.OfflineModel)
	if err != nil {
		t.Fatal(err)
	}
	never := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("the builtin model uses the network")
		return nil, errors.New("no network")
	})}
	m, err := b.Open(never).Stream(t.Context(), &llm.Request{Model: b.Model, Messages: []llm.Message{question}}, func(llm.Event) {})
	if err != nil || m.API != offline.API || m.API != b.API {
		t.Errorf("message %+v, error %v", m, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
