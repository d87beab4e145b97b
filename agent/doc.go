// Package agent runs the agent loop: it turns a history and an input into new messages by calling a model and its tools in turn.
//
// Words. A run is one call of [Run]. A turn is one assistant message with the results of its tool calls. Steering is input that
// joins a run after the current turn; a follow-up starts its next piece of work when it would end. The [Inbox] holds both, the
// [Recorder] writes history, the [Sink] sees what happens.
//
// Order. The loop is Pi's (1.x). Input is recorded before the model sees it. An assistant message is recorded before its tools
// execute; all results of a batch are recorded together, in the order of their calls. An event that names an entry comes after
// the entry is durable. Steering is taken at the start of the run, after each turn, and again before the next turn if nothing was
// waiting; follow-ups only when the run would end. Nothing is taken once the run was stopped.
//
// Guarantees. Every accepted call gets exactly one result in history, also when the run is stopped or a limit ends it. What the
// Inbox gave and history did not take is returned in [Result.Undelivered]. A run that is stopped keeps what the model had said.
// All events come from one goroutine at a time, in order. A panic in a tool is an error result; any other panic is the caller's.
//
// Ends. Every wait ends with the context, with two bounds: a tool that changes content is waited for once it started, and other
// tools get a moment to stop; one that ignores it is reported in [Result.Abandoned].
//
// What it does not do: it keeps no queue, retries no model call (llm.Retry wraps the provider), compacts nothing, and converts no
// history between models (providers do). Start reading at run.go; batch.go executes tools.
package agent
