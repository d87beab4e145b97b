// Package google speaks the Gemini API (generateContent, streamed).
//
// [New] returns a provider for one endpoint. It uses the official SDK for the types, the request and the stream; the SDK's
// automatic continuation is off, and it gets address, key and backend explicitly, so that nothing of the environment is used. (It still looks:
// with both GOOGLE_API_KEY and GEMINI_API_KEY set it prints a line to stderr, once for each provider made.) Messages carry the API
// name "google-generative-ai". The key travels in the x-goog-api-key header.
//
// Thought signatures are kept in the block they came with and sent back to the same model. Function calls get an id when
// the server gives none. Arguments pass through the SDK as JSON numbers of double precision: integers above 2^53 are rounded.
// request.go builds the request, google.go reads the answer.
package google
