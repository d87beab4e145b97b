// Package modelserver is a scripted model server for tests. It speaks three wire formats over real HTTP: OpenAI's Chat
// Completions, Anthropic's Messages and Gemini's streamGenerateContent; one script serves all of them.
//
// A Turn is the answer to one request: text, thinking, tool calls, or a way to fail. [New] starts a server on loopback that
// plays turns in the order of arrival and answers "ok" when they are used up; [NewFunc] asks a function for each turn. A
// [Handler] is the same without the server, for a process of its own.
//
// The server records each request with its exact bytes before it answers. It is safe for concurrent use. Nothing in it
// depends on time unless a turn has a Delay: a turn with a Hold stands still until [Handler.Release], and [Handler.Started]
// tells when it got there.
package modelserver
