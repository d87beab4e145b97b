// Package text works on the text of documents: encodings, lines, exact edits, three-way merges. It touches no disk and knows no space.
// All of it is safe for concurrent use.
package text
