// Package offline is the model that is always there: no network, no key, and no language model either. It searches the
// learner's files through the tools of the run, quotes the best passages with their places, and makes fill-in-the-blank
// questions of them. Every answer says that it is no language model, and how to connect one.
//
// Words. A step is one call of Stream: search, then read, then answer; the step follows from the request alone. A question is
// what the learner asked since the last finished answer. A hit is a line that search reported, a page the lines that read showed,
// a passage a paragraph, list item or table row of a page, a unit one sentence of a passage.
//
// Guarantees. The same request gives the same message. Nothing is said about the files but what search and read reported: each
// path:line in an answer stood in a result, and the text quoted for it begins on that line. Tool errors are told, not hidden.
// Tokens and cost are zero. Only tools that the request offers are called. A provider holds no state and is safe for
// concurrent use; importing the package does nothing at process start.
//
// What it does not do: it explains, summarises and judges nothing, changes no file and looks at no image. Start reading at
// offline.go, then step.go; answer.go and quiz.go write the two kinds of answers.
package offline
