// Package openai speaks Chat Completions, the wire format of OpenAI and of most other servers, local ones included.
//
// [New] returns a provider for one endpoint. It uses the official SDK for the types, the request and the stream; the SDK's
// retries are off and it reads nothing from the environment. Messages carry the API name "openai-completions".
//
// Reasoning text that compatible servers send beside the content becomes thinking blocks whose signature is the name of the
// field it came in; the same model gets it back in that field. Fields that only OpenAI itself knows (max_completion_tokens,
// prompt_cache_key) are sent to its own host alone. request.go builds the request, openai.go reads the answer.
package openai
