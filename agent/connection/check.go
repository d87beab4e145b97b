package connection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer bounds what Check reads of an answer: the beginning names the fault.
const maxAnswer = 64 << 10

// Check asks the connection's server for its list of models, which costs nothing, and returns the address that answered. Its
// error names the address, the status and the server's own words; the secret is cut out of them.
func (l Lent) Check(ctx context.Context, client *http.Client) (string, error) {
	address, header, value := l.listing()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return address, fail("connection_invalid", "the address %s is not usable: %v", address, err)
	}
	if l.secret.reveal() != "" {
		req.Header.Set(header, value)
	}
	if l.Provider == Anthropic {
		req.Header.Set("anthropic-version", "2023-06-01")
	}
	if client == nil {
		client = http.DefaultClient
	}
	here := *client
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the key is for this endpoint only
	res, err := here.Do(req)
	if err != nil {
		return address, l.failed("%s cannot be reached: %v", address, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return address, l.failed("%s broke off its answer: %v", address, err)
	}
	words := strings.Join(strings.Fields(string(body)), " ")
	if res.StatusCode != http.StatusOK {
		return address, l.failed("%s answered %s: %s", address, res.Status, words)
	}
	if !strings.HasPrefix(words, "{") && !strings.HasPrefix(words, "[") { // compatible servers differ in more than that
		return address, l.failed("%s did not answer with a list of models, so it is no server of this kind: %s", address, words)
	}
	return address, nil
}

// maxWords is enough for what servers say about a fault, and little of the pages that proxies send.
const maxWords = 1000

func (l Lent) failed(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if key := l.secret.reveal(); key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	if len(text) > maxWords {
		text = text[:maxWords] + "…"
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	return &Error{"provider", text}
}

// listing returns where the provider lists its models, and the header that carries the key.
func (l Lent) listing() (address, header, value string) {
	base := strings.TrimRight(l.endpoint(), "/")
	switch l.Provider {
	case Anthropic:
		return strings.TrimSuffix(base, "/v1") + "/v1/models", "x-api-key", l.secret.reveal()
	case Google:
		if !strings.HasSuffix(base, "/v1beta") && !strings.HasSuffix(base, "/v1") {
			base += "/v1beta"
		}
		return base + "/models", "x-goog-api-key", l.secret.reveal()
	}
	return base + "/models", "Authorization", "Bearer " + l.secret.reveal()
}
