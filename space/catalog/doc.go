// Package catalog holds the registered items of a space: which documents and materials there are, where they lie, what they consist of.
// It touches no disk; the journal of the space makes its changes durable.
//
// Words: an item is a document or a material with an id that it keeps when it moves. Its revision is structural: it says nothing of the
// body. A delta is the change of some items, each from one record to another; records are never erased, they become deleted or detached.
//
// A Catalog is not safe for concurrent use; the records in it are immutable and may be kept.
package catalog
