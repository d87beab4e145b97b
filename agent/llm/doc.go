// Package llm is the provider-neutral model interface: one request in, one streamed assistant message out.
//
// It owns the message shape that the whole product shares. A [Message] is exactly a message of the Pi session format,
// version 3, so what a provider returns is what the session file stores; fields that a provider needs again on the next
// request (thinking signatures, thought signatures) are kept verbatim in their blocks.
//
// Words: a Provider speaks one wire format to one endpoint. A Request is the complete input of one model call. An Event is
// one step of the answer while it streams. The final Message is authoritative: concatenating the deltas gives its text.
//
// Guarantees: Stream always returns a Message, also on failure and on abort; then StopReason is error or aborted and the
// message holds whatever arrived. Errors are [*Error] and name URL, status and the provider's own words. Retry belongs to
// [Retry], which repeats a call only while nothing has been shown; SDK-internal retries are off.
//
// What it does not do: it executes no tools, keeps no history and knows neither spaces nor sessions. The wire families are
// in the folders below: openai (Chat Completions), anthropic (Messages), google (Gemini), offline (no model at all).
package llm
