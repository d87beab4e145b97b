// Package anthropic speaks Anthropic's Messages API.
//
// [New] returns a provider for one endpoint. It uses the official SDK for the types, the request and the stream; the SDK's
// retries and traces are off and it reads nothing from the environment. Messages carry the API name "anthropic-messages".
//
// Thinking keeps its signature, redacted thinking its data, and both are sent back verbatim to the same model. The system text, the last
// tool and the last user block are marked for the prompt cache. request.go builds the request, anthropic.go reads the answer.
package anthropic
