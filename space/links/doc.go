// Package links finds and changes the references that Markdown texts make to registered contents, repa:document/<id> and repa:material/<id>. It touches
// no disk; everything is safe for concurrent use.
package links
