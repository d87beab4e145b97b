package modelserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Format is a wire format.
type Format string

const (
	OpenAI    Format = "openai"
	Anthropic Format = "anthropic"
	Gemini    Format = "gemini"
)

// The server's own names in its answers.
const (
	responseID    = "resp-1"
	responseModel = "scripted-model"
)

type object = map[string]any

// Body returns the whole body of a turn's answer, as it is sent when nothing cuts it.
func Body(f Format, t Turn) []byte {
	if t.Garbage != nil {
		return t.Garbage
	}
	head, tail := events(f, &t)
	return []byte(strings.Join(append(head, tail...), ""))
}

// events renders a turn. A turn's Hold stands between head and tail; each element is sent as one write.
func events(f Format, t *Turn) (head, tail []string) {
	switch f {
	case Anthropic:
		return anthropicEvents(t)
	case Gemini:
		return geminiEvents(t)
	default:
		return openAIEvents(t)
	}
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("modelserver: encode an event: %v", err))
	}
	return string(raw)
}

func data(v any) string { return "data: " + encode(v) + "\n\n" }

func openAIEvents(t *Turn) (head, tail []string) {
	chunk := func(delta object, finish any) string {
		return data(object{
			"id": responseID, "object": "chat.completion.chunk", "created": 1, "model": responseModel,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	head = append(head, chunk(object{"role": "assistant", "content": ""}, nil))
	if t.Thinking != "" {
		head = append(head, chunk(object{"reasoning_content": t.Thinking}, nil))
	}
	for _, text := range t.Chunks {
		head = append(head, chunk(object{"content": text}, nil))
	}
	for i, c := range t.ToolCalls {
		first := object{"index": i, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		if id := c.id(); id != "" {
			first["id"] = id
		}
		head = append(head, chunk(object{"tool_calls": []any{first}}, nil))
		for _, piece := range pieces(c.Args) {
			head = append(head, chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil))
		}
	}
	if t.MidStreamError != "" {
		return head, []string{data(object{"error": object{"message": t.MidStreamError, "type": "server_error", "code": nil}})}
	}
	reason := map[string]string{"toolUse": "tool_calls"}[t.reason()]
	if reason == "" {
		reason = t.reason()
	}
	usage := data(object{
		"id": responseID, "object": "chat.completion.chunk", "created": 1, "model": responseModel, "choices": []any{},
		"usage": object{
			"prompt_tokens": t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite, "completion_tokens": t.Usage.Output,
			"total_tokens":              t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite + t.Usage.Output,
			"prompt_tokens_details":     object{"cached_tokens": t.Usage.CacheRead},
			"completion_tokens_details": object{"reasoning_tokens": t.Usage.Reasoning},
		},
	})
	return head, []string{chunk(object{}, reason), usage, "data: [DONE]\n\n"}
}

func anthropicEvents(t *Turn) (head, tail []string) {
	event := func(kind string, v object) {
		v["type"] = kind
		head = append(head, "event: "+kind+"\n"+data(v))
	}
	event("message_start", object{"message": object{
		"id": responseID, "type": "message", "role": "assistant", "model": responseModel, "content": []any{}, "stop_reason": nil,
		"usage": object{
			"input_tokens": t.Usage.Input, "output_tokens": 0,
			"cache_read_input_tokens": t.Usage.CacheRead, "cache_creation_input_tokens": t.Usage.CacheWrite,
		},
	}})
	index := 0
	block := func(start object, deltas ...object) {
		event("content_block_start", object{"index": index, "content_block": start})
		for _, d := range deltas {
			event("content_block_delta", object{"index": index, "delta": d})
		}
		event("content_block_stop", object{"index": index})
		index++
	}
	if t.Thinking != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": t.Thinking}, object{"type": "signature_delta", "signature": t.signature()})
	}
	if t.Redacted != "" {
		block(object{"type": "redacted_thinking", "data": t.Redacted})
	}
	head = append(head, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
	if len(t.Chunks) > 0 {
		var deltas []object
		for _, text := range t.Chunks {
			deltas = append(deltas, object{"type": "text_delta", "text": text})
		}
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range t.ToolCalls {
		var deltas []object
		for _, piece := range pieces(c.Args) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		block(object{"type": "tool_use", "id": c.id(), "name": c.Name, "input": object{}}, deltas...)
	}
	whole := head
	head = nil
	if t.MidStreamError != "" {
		event("error", object{"error": object{"type": "api_error", "message": t.MidStreamError}})
		return whole, head
	}
	reason := map[string]string{"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use"}[t.reason()]
	if reason == "" {
		reason = t.reason()
	}
	event("message_delta", object{
		"delta": object{"stop_reason": reason, "stop_sequence": nil},
		"usage": object{"output_tokens": t.Usage.Output, "output_tokens_details": object{"thinking_tokens": t.Usage.Reasoning}},
	})
	event("message_stop", object{})
	return whole, head
}

func geminiEvents(t *Turn) (head, tail []string) {
	usage := object{
		"promptTokenCount": t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite, "cachedContentTokenCount": t.Usage.CacheRead,
		"candidatesTokenCount": t.Usage.Output - t.Usage.Reasoning, "thoughtsTokenCount": t.Usage.Reasoning,
		"totalTokenCount": t.Usage.Input + t.Usage.CacheRead + t.Usage.CacheWrite + t.Usage.Output,
	}
	chunk := func(finish string, parts ...any) string {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if finish != "" {
			candidate["finishReason"] = finish
		}
		return data(object{
			"candidates": []any{candidate}, "usageMetadata": usage, "modelVersion": responseModel, "responseId": responseID,
		})
	}
	if t.Thinking != "" {
		head = append(head, chunk("", object{"text": t.Thinking, "thought": true, "thoughtSignature": t.signature()}))
	}
	for _, text := range t.Chunks {
		head = append(head, chunk("", object{"text": text}))
	}
	malformed := false
	for i, c := range t.ToolCalls {
		var args map[string]any
		if json.Unmarshal([]byte(c.Args), &args) != nil {
			malformed = true
			continue
		}
		part := object{"functionCall": object{"name": c.Name, "args": json.RawMessage(c.Args)}}
		if id := c.id(); id != "" {
			part["functionCall"].(object)["id"] = id
		}
		if s := t.signature(); s != "" && i == 0 {
			part["thoughtSignature"] = s
		}
		head = append(head, chunk("", part))
	}
	if t.MidStreamError != "" {
		return head, []string{data(object{"error": object{"code": 500, "message": t.MidStreamError, "status": "INTERNAL"}})}
	}
	reason := map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "toolUse": "STOP"}[t.reason()]
	if reason == "" {
		reason = t.reason()
	}
	if malformed {
		reason = "MALFORMED_FUNCTION_CALL"
	}
	return head, []string{chunk(reason, object{"text": ""})}
}

// errorBody renders an HTTP error in the shape of the wire format.
func errorBody(f Format, status int, message string) string {
	if message == "" {
		message = fmt.Sprintf("scripted error %d", status)
	}
	switch f {
	case Anthropic:
		kind := map[int]string{401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
			429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}[status]
		if kind == "" {
			kind = "invalid_request_error"
		}
		return encode(object{"type": "error", "error": object{"type": kind, "message": message}})
	case Gemini:
		kind := map[int]string{401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
			500: "INTERNAL", 503: "UNAVAILABLE"}[status]
		if kind == "" {
			kind = "INVALID_ARGUMENT"
		}
		return encode(object{"error": object{"code": status, "message": message, "status": kind}})
	default:
		return encode(object{"error": object{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}})
	}
}
