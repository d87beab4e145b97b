package llm_test

import (
	"testing"

	"github.com/repa-app/repa/agent/llm"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		words  string
		kind   llm.Kind
		retry  bool
	}{
		{401, "Incorrect API key provided", llm.KindAuth, false},
		{403, "", llm.KindAuth, false},
		{402, "Insufficient credits", llm.KindQuota, false},
		{404, "model not found", llm.KindNotFound, false},
		{408, "", llm.KindTimeout, true},
		{409, "conflict", llm.KindServer, true},
		{413, "request_too_large", llm.KindOverflow, false},
		{429, "Rate limit reached for requests", llm.KindRateLimited, true},
		{429, "You exceeded your current quota, please check your plan and billing details. insufficient_quota", llm.KindQuota, false},
		{429, "You exceeded your current quota. Please retry in 32.5s.", llm.KindRateLimited, true},
		{429, "Request too large: too many tokens per minute", llm.KindRateLimited, true},
		{400, "prompt is too long: 210000 tokens > 200000 maximum", llm.KindOverflow, false},
		{400, "The input token count (1200000) exceeds the maximum number of tokens allowed", llm.KindOverflow, false},
		{400, "Rate limit: maximum context length of all requests", llm.KindRateLimited, true},
		{400, "Your credit balance is too low to access the API", llm.KindQuota, false},
		{400, "API key not valid. Please pass a valid API key. INVALID_ARGUMENT", llm.KindAuth, false},
		{400, "Incorrect API key provided: x", llm.KindAuth, false},
		{400, "unknown field", llm.KindInvalid, false},
		{500, "", llm.KindServer, true},
		{500, "maximum context length", llm.KindServer, true},
		{501, "", llm.KindServer, false},
		{502, "", llm.KindServer, true},
		{503, "", llm.KindOverloaded, true},
		{520, "", llm.KindServer, true},
		{529, "Overloaded", llm.KindOverloaded, true},
		{0, "Overloaded overloaded_error", llm.KindOverloaded, true},
		{0, "rate_limit_error", llm.KindRateLimited, true},
		{0, "context_length_exceeded", llm.KindOverflow, false},
		{0, "invalid x-api-key authentication_error", llm.KindAuth, false},
		{0, "internal error", llm.KindServer, true},
		{0, "upstream timed out", llm.KindServer, true},
		{0, "the request timed out", llm.KindTimeout, true},
		{0, "something odd", llm.KindInvalid, false},
	} {
		kind, retry := llm.Classify(c.status, c.words)
		if kind != c.kind || retry != c.retry {
			t.Errorf("%d %q is %s, retryable %v; want %s, %v", c.status, c.words, kind, retry, c.kind, c.retry)
		}
	}
}
