package llm

import (
	"net/http"
	"strings"
)

// The families below are matched against the lower-cased words, code and type of an error. They are plain substrings: the
// providers' texts are stable, and nothing has to be compiled at process start.
var (
	overflowWords = []string{
		"prompt is too long", "prompt too long", "exceeds the context window", "exceeds context window", "maximum context length",
		"reduce the length of the messages", "exceeds the available context size", "greater than the context length",
		"context window exceeds limit", "exceeded model token limit", "too many tokens", "token limit exceeded",
		"context_length_exceeded", "context length exceeded", "model_context_window_exceeded", "request_too_large",
		"input is too long for requested model", "maximum prompt length", "exceeds the maximum allowed input length",
		"input length and `max_tokens` exceed context limit",
	}
	throttleWords = []string{"rate limit", "rate_limit", "ratelimit", "too many requests", "throttling", "tokens per minute", "per min"}
	quotaWords    = []string{
		"insufficient_quota", "quota exceeded", "exceeded your current quota", "billing", "out of budget", "available balance",
		"insufficient balance", "insufficient_balance", "credit balance", "monthly limit", "usage limit", "usage_limit", "payment required",
	}
	overloadWords = []string{
		"overloaded", "server busy", "server is busy", "high demand", "at capacity", "service unavailable", "service temporarily unavailable",
		"service is temporarily unavailable", "model is loading",
	}
	serverWords = []string{
		"server error", "server_error", "internal error", "internal_error", "api_error", "provider returned error", "upstream",
		"bad gateway", "gateway timeout", "please retry your request", "unavailable", "deadline_exceeded",
	}
	// Google and xAI answer 400 to a wrong key.
	authWords = []string{
		"authentication_error", "invalid_api_key", "invalid api key", "api key not valid", "incorrect api key", "unauthenticated",
		"permission_error", "permission_denied",
	}
	timeoutWords = []string{"timeout", "timed out"}
)

// Classify tells what kind of error an HTTP status and the provider's words mean, and whether the same request may work
// later. A status of 0 or 2xx stands for an error inside a stream, where only the words count.
func Classify(status int, words string) (kind Kind, retryable bool) {
	text := strings.ToLower(words)
	throttled := hasAny(text, throttleWords)
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return KindOverflow, false
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return KindAuth, false
	case !throttled && status < 500 && isOverflow(text):
		return KindOverflow, false
	case status == http.StatusPaymentRequired:
		return KindQuota, false
	// Gemini says "exceeded your current quota" for its limit per minute too, and then also when to come back.
	case hasAny(text, quotaWords) && !strings.Contains(text, "retry in "):
		return KindQuota, false
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusTooEarly:
		return KindRateLimited, true
	case http.StatusServiceUnavailable, 529:
		return KindOverloaded, true
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, 520, 522, 524, http.StatusConflict:
		return KindServer, true
	case http.StatusRequestTimeout:
		return KindTimeout, true
	case http.StatusNotFound:
		return KindNotFound, false
	}
	switch {
	case status > 500:
		return KindServer, false
	case throttled || strings.Contains(text, "resource_exhausted") || strings.Contains(text, "resourceexhausted"):
		return KindRateLimited, true
	case hasAny(text, overloadWords):
		return KindOverloaded, true
	case hasAny(text, authWords):
		return KindAuth, false
	case hasAny(text, serverWords):
		return KindServer, true
	case hasAny(text, timeoutWords):
		return KindTimeout, true
	}
	return KindInvalid, false
}

func isOverflow(text string) bool {
	if hasAny(text, overflowWords) {
		return true
	}
	return strings.Contains(text, "input token count") && strings.Contains(text, "exceeds the maximum")
}

func hasAny(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
