// Package protocol is the public contract between a backend and its front ends: JSON-RPC protocol version 1.
//
// It owns the wire types, the table of methods, the table of error codes, the JSON Schema that is published and the reducer that
// folds changes into a snapshot. It does not own a socket: framing is in protocol/rpc, the listener in protocol/server, the
// client in protocol/client. It knows nothing of how a backend works.
//
// # Words
//
// A scope is what a subscriber watches: the application, a space or a session. A change is one thing that happened; a snapshot is the
// state that a scope sees; a delivery is either of them with its cursor. A union is a struct whose Kind, Type, Status
// or set of members says which variant it is; a choice is a struct of which exactly one pointer is set.
//
// # Guarantees
//
// Decode refuses what the contract refuses: unknown, missing and duplicate members, another letter case, wrong types, patterns and
// limits, invalid UTF-8. Its answer equals that of the JSON Schema of version 1 (a test proves it), except that whole numbers
// beyond 2^53 are refused. Encode never writes null for a required array and fails on a union with members of another
// variant. Encoding what was decoded gives semantically equal JSON, so a recorded submission is the submission that came; only the params about
// content, operations and resources may lose an optional member that is an empty text, false or zero and says the same as none.
//
// Values are plain data without locks; whoever changes one owns it. Tables and schemas are read-only and safe for concurrent use.
//
// Extensions are methods and codes beside version 1; its own types stay closed. testdata/extensions.json is their contract.
//
// Start reading at methods.go, then state.go and request.go. The struct tags are explained in protocol/internal/shape.
package protocol
