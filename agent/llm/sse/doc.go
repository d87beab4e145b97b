// Package sse reads server-sent events as model servers really send them.
//
// It owns the parser alone; who sends what, and what an event means, is decided above. An Event is one name with its data.
//
// Beyond the standard (line feed, carriage return or both; comments; a byte order mark; a missing space after the colon) it takes a last event
// without its blank line, and a bare JSON object on a line of its own as data, which some servers send for errors. Memory is
// bounded: a line or an event larger than [MaxEvent] ends the stream with [ErrTooLong]. It never blocks for more bytes than
// it needs to complete an event. A Decoder belongs to one goroutine.
package sse
