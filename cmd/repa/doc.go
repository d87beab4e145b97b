// Command repa is the one binary: command line, line-mode front end and backend process. It reads flags, speaks the protocol and
// prints; it holds no rules of its own.
//
// Start reading at main.go; attach.go finds or starts the backend, serve.go is the backend process, turn.go follows one run.
package main
