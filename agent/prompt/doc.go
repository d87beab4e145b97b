// Package prompt assembles the system prompt of a run from named sections.
//
// Words. A section is one part of the prompt with an id; a [Source] records which section was on and what it said, so that a
// request can show later what its model was told. The ids are base, append, environment and toolDefinitions.
//
// Guarantees. Assemble is pure: the same sections give the same bytes, so a provider's prompt cache keeps working. Time enters
// only through the date that the caller gives. A base that is explicitly empty stays empty.
//
// What it does not do: it reads no files and no settings, and sends nothing. Start reading at Assemble; the default text is in
// base.go.
package prompt
