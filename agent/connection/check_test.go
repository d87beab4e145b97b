package connection_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/repa-app/repa/agent/connection"
)

// serve starts a server that answers every request, and returns its address and a client.
func serve(t *testing.T, answer http.HandlerFunc) (string, *http.Client) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		provider connection.Provider
		suffix   string
		key      string
		path     string
		header   string
		value    string
	}{
		"openai":               {connection.OpenAI, "/v1", canary, "/v1/models", "Authorization", "Bearer " + canary},
		"openai, slash":        {connection.OpenAI, "/v1/", canary, "/v1/models", "Authorization", "Bearer " + canary},
		"openai, no key":       {connection.OpenAI, "/v1", "", "/v1/models", "Authorization", ""},
		"anthropic":            {connection.Anthropic, "", canary, "/v1/models", "X-Api-Key", canary},
		"anthropic, version":   {connection.Anthropic, "/v1", canary, "/v1/models", "X-Api-Key", canary},
		"google":               {connection.Google, "", canary, "/v1beta/models", "X-Goog-Api-Key", canary},
		"google, version":      {connection.Google, "/v1/", canary, "/v1/models", "X-Goog-Api-Key", canary},
		"google, beta version": {connection.Google, "/v1beta", canary, "/v1beta/models", "X-Goog-Api-Key", canary},
		"ollama":               {connection.Ollama, "", "", "/v1/models", "Authorization", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r
				fmt.Fprint(w, ` {"data":[]}`)
			})
			address, err := lend(t, c.provider, url+c.suffix, c.key).Check(t.Context(), client)
			if err != nil || address != url+c.path {
				t.Fatalf("address %q, error %v", address, err)
			}
			if got.Method != http.MethodGet || got.URL.Path != c.path || got.URL.RawQuery != "" || got.Header.Get(c.header) != c.value {
				t.Errorf("request %s %s with %v", got.Method, got.URL, got.Header)
			}
			if version := got.Header.Get("Anthropic-Version"); (version != "") != (c.provider == connection.Anthropic) {
				t.Errorf("anthropic-version is %q", version)
			}
		})
	}
}

func TestCheckFaults(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"wrong key": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "{\n  \"error\": \"Incorrect API key provided: %s.\"\n}", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}, []string{"401", "Incorrect API key provided: [key]."}},
		"key far behind": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, strings.Repeat("key "+canary+",", 4000))
		}, []string{"403", "[key]"}},
		"no such path": {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, []string{"404", "page not found"}},
		"fault":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, []string{"502"}},
		"login page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>please log in</html>") }, []string{"list of models", "please log in"}},
		"nothing":      {func(http.ResponseWriter, *http.Request) {}, []string{"list of models"}},
		"binary":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 0xff, 0xfe}) }, []string{"list of models"}},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		}, []string{"broke off"}},
	} {
		t.Run(name, func(t *testing.T) {
			url, client := serve(t, c.answer)
			address, err := lend(t, connection.OpenAI, url+"/v1", canary).Check(t.Context(), client)
			refused(t, err, "provider", append(c.words, url+"/v1/models")...)
			if address != url+"/v1/models" {
				t.Errorf("address %q", address)
			}
			const most = 1100 // a fault is a line for people, whatever a proxy sends
			if len(err.Error()) > most {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestCheckDeadEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = lend(t, connection.Ollama, "http://"+address, "").Check(t.Context(), nil)
	refused(t, err, "provider", address, "cannot be reached", "refused")
}

// TestCheckStaysHere: Go's client takes x-api-key along to wherever a server redirects it.
func TestCheckStaysHere(t *testing.T) {
	var visits int
	elsewhere, _ := serve(t, func(http.ResponseWriter, *http.Request) { visits++ })
	for _, p := range []connection.Provider{connection.OpenAI, connection.Anthropic, connection.Google} {
		url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		})
		_, err := lend(t, p, url, canary).Check(t.Context(), client)
		refused(t, err, "provider", "307")
	}
	if visits != 0 {
		t.Errorf("the key was carried to another address %d times", visits)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	_, err := lend(t, connection.Google, url, canary).Check(ctx, client)
	refused(t, err, "provider", "canceled")
}
