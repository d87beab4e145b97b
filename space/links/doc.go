// Package links finds and changes the destinations of links in Markdown texts, by the rules of CommonMark 0.31.2 and without extensions.
//
// Words: a use is a link, an image or an autolink of a text; a definition is a link reference definition, which a reference (full, collapsed or shortcut)
// takes its destination from; a destination is what a use leads to, with backslash escapes and entities resolved.
//
// Guarantees. All functions are pure and safe for concurrent use; time and memory grow with the length of the text, also for hostile ones. Every sequence of
// bytes is a text: line ends may be LF, CRLF and CR in any mixture, a byte order mark may begin it, bytes that are no UTF-8 are kept as they are, and NUL counts
// as U+FFFD. Rewrite changes the bytes of destinations only; whether the text around still means the same is not assumed but checked by reading the
// result again.
//
// Where the specification leaves room or its implementations differ: parentheses in a destination nest at most 32 deep; entities in autolinks are resolved,
// backslash escapes there are not; a link whose text holds an autolink stays a link, and both are uses, as are links in the description of an image.
//
// What it does not do: it makes no tree, no HTML, and looks at no address. A text is read in two passes, blocks (block.go) and then the text of each paragraph
// and heading (inline.go). Start reading at Find and Rewrite.
package links
