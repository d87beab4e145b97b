package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/repa-app/repa/agent/llm"
)

// parsed is an error with what its kind is decided from: the words with the provider's codes, and the HTTP status that an
// error inside a stream may name.
type parsed struct {
	llm.Error
	tagged string
	code   int
}

// parseError reads the error body of any of the wire formats, and of the servers that only resemble them. A body that is not
// JSON is taken as text.
func parseError(body []byte) *parsed {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // Gemini wraps errors in a list when no event stream was asked for
	}
	var doc map[string]any
	if json.Unmarshal(body, &doc) != nil {
		return &parsed{Error: llm.Error{Words: plainWords(body)}, tagged: string(body)}
	}
	inner, ok := doc["error"].(map[string]any)
	if !ok {
		inner = doc
	}
	p := &parsed{}
	p.Words = firstText(inner, doc, "message", "error", "detail", "error_description", "title")
	if p.Words == "" {
		p.Words = string(body)
	}
	if meta, ok := inner["metadata"].(map[string]any); ok { // OpenRouter: what the server behind it said
		if raw, ok := meta["raw"].(string); ok {
			p.Words += ": " + raw
		}
	}
	p.tagged = strings.Join([]string{p.Words, text(inner["code"]), text(inner["type"]), text(inner["status"])}, " ")
	if code, ok := inner["code"].(float64); ok && code >= 400 && code < 600 {
		p.code = int(code)
	}
	p.RetryAfter = retryDelay(inner["details"])
	return p
}

func firstText(inner, doc map[string]any, names ...string) string {
	for _, from := range []map[string]any{inner, doc} {
		for _, name := range names {
			if s := text(from[name]); s != "" {
				return s
			}
		}
	}
	return ""
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return fmt.Sprint(int64(v))
	case []any: // FastAPI's list of faults
		var out []string
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				out = append(out, text(m["msg"]))
			}
		}
		return strings.Join(out, "; ")
	}
	return ""
}

// retryDelay finds Google's RetryInfo, for example {"retryDelay": "32s"}.
func retryDelay(details any) time.Duration {
	list, _ := details.([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		if d, err := time.ParseDuration(text(m["retryDelay"])); err == nil && d > 0 {
			return d
		}
	}
	return 0
}

func plainWords(body []byte) string {
	s := string(body)
	if strings.HasPrefix(s, "<") {
		if _, rest, ok := strings.Cut(s, "<title>"); ok {
			title, _, _ := strings.Cut(rest, "</title>")
			return "a web page titled " + strings.TrimSpace(title)
		}
		return "a web page"
	}
	return s
}
