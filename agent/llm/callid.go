package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	maxCallID       = 64 // Anthropic and Gemini refuse longer ids
	maxOpenAICallID = 40 // OpenAI refuses longer ids
)

// CallID makes a tool-call id of another model acceptable to Anthropic and Gemini: [A-Za-z0-9_-], at most 64 bytes.
func CallID(id string) string {
	return cut(callIDChars(id), maxCallID)
}

// OpenAICallID does the same for Chat Completions: "call|item" ids (OpenAI Responses) are joined, and shortened with a hash
// when the result would be longer than 40 bytes. OpenAI itself takes no longer ids at all.
func OpenAICallID(provider string) func(id string) string {
	return func(id string) string {
		if strings.Contains(id, "|") && len(id) > maxOpenAICallID {
			call, _, _ := strings.Cut(id, "|")
			return hashed(callIDChars(call), id, maxOpenAICallID)
		}
		clean := callIDChars(id)
		if provider == "openai" {
			return cut(clean, maxOpenAICallID)
		}
		return cut(clean, maxCallID)
	}
}

func callIDChars(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

func cut(s string, limit int) string {
	return s[:min(len(s), limit)]
}

// hashed is prefix followed by 8 characters that depend on the whole of id, together at most limit bytes.
func hashed(prefix, id string, limit int) string {
	sum := sha256.Sum256([]byte(id))
	tail := "_" + hex.EncodeToString(sum[:4])
	return cut(prefix, limit-len(tail)) + tail
}
