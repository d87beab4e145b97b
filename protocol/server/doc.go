// Package server is the listener of a backend: HTTP and WebSocket on 127.0.0.1, who may come in, and the opening of a connection.
//
// It owns the checks of Host, Origin and token, the routes, the handshake (`initialize`) and the strict reading of params and, in
// tests, of results. What the methods do is the Backend's. It stores nothing.
//
// # Order of checks
//
// Every request: Host is exactly ours (403) · Origin is absent or ours (403) · OPTIONS (204) · upgrade at /rpc, or any other upgrade
// (the socket is cut) · cross-site request (403) · token (401) · method (405) · path (404). No answer carries a CORS header, so no other page reads anything.
//
// The paths are /protocol.json, /spaces/<id>/resources/<64 hex> (GET, HEAD) and /spaces/<id>/resources (POST, with a host key: 401, or more than 64 MiB:
// 413). What the domain refuses is 400 with {code, message}, as version 1 has it, also for a space that is not open and bytes that are gone; a host that
// ended during its upload is 409.
//
// Every call: shape and notification (protocol/rpc) · initialised (-32001) · host detached (closed) · method exists (-32601) ·
// params (-32602) · the backend's own answer.
//
// # Guarantees
//
// A socket that has not sent initialize with the token within 5 s is closed with 4001; at most 32 such sockets are open at once. The
// token is compared in constant time and stands in no log and no answer. Calls of one connection reach its Conn in the order in which
// they came; Conn.Call must not block. Serve returns when Shutdown has ended every connection; Conn.Closed was then called for each.
//
// A resource goes out and comes in piece by piece, in constant memory. Its answer carries a strong ETag, may be kept for ever, is never anything that a page
// could run, and has one range at most; several ranges and wrong ones are 416. A download whose bytes cannot be read to their end is cut, so that nobody takes
// the beginning for the whole, and so is what makes no progress for a minute.
//
// Start reading at server.go, then handshake.go, socket.go and resources.go.
package server
