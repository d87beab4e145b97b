// Package tool defines what a model may call, and the tools over the learner's files: read, search, write and edit.
//
// Words. A [Tool] is a declaration that the model sees and the code behind it. A [Result] is what the model is told; its
// Details are for programs. The files are reached through the small interfaces [Reader], [Searcher] and [Editor], which the
// caller fills. A [Keeper] keeps whole what a result shows a part of. A [Set] holds the tools of one session together with the
// revisions that the session has observed.
//
// Guarantees. A failure that the model can act on is a Result with IsError and, in Details, the domain code: not an error. An
// existing file is overwritten only when this session has seen its current revision: the write carries the seen one as its
// base, and the Editor refuses any other. Observed revisions come from the receipts of reads and changes. Tools that change
// files are Sequential. Results are bounded, in whole lines: at most 2000 lines or 50 KiB of text, and a note; what was cut is kept
// whole before the result names it. A Set and its tools are safe for concurrent use.
//
// What it does not do: it checks no permissions, touches no disk and runs no loop. A [Schema] checks arguments; the loop calls it.
//
// Start reading at tool.go, then set.go and keep.go; each tool is one file with the text that the model reads about it.
package tool
