// Package example holds the sample learning space: a few notes on memory and practice, in English and Chinese, for a learner who
// has no folder of their own yet and for trying the product.
//
// [Unpack] writes it into the state folder. Guarantees: the folder example appears whole or not at all, also after a crash, and
// what stands under that name is never changed. Concurrent calls, also of several processes, do not harm each other. The texts
// are in files; nothing else is in this package.
package example
