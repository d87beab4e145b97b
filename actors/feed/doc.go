// Package feed publishes what happens to those who watch: it keeps the state that front ends see, numbers the changes, and gives
// each subscriber a snapshot followed by every change of its scope, exactly once and in order.
//
// Words: a change is what protocol version 1 calls so. A ring is the recent changes of one scope, kept so that a subscriber that
// lost its connection can go on where it was. A cursor is the server's id and the number of the last change seen.
//
// Guarantees. A subscription begins with a snapshot, or with the changes since its cursor when the rings still hold them; both
// join the following changes without gap or overlap, because state and subscribers change under one lock. Numbers rise over the
// whole backend; each subscriber's deliveries chain over the changes that it received. Text deltas that a subscriber has not
// fetched yet are merged, so a slow reader gets fewer and larger ones; when more than 4 MiB of other changes wait for it, it gets
// a fresh snapshot instead of them. Nothing is lost or doubled otherwise. Publishing never waits for a reader.
//
// Safe for concurrent use. The lock is held for memory operations only.
package feed
