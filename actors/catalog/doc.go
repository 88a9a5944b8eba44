// Package catalog holds the set of tools that exist at one moment, as an immutable value, and the pure function that leads
// from one moment to the next:
//
//	Apply(Snapshot, Changes) (Snapshot, changed)
//
// Start with Empty. The owner applies the changes that servers announce and publishes each result; all other goroutines read
// the snapshot that they hold. Reading takes no lock and allocates nothing. A snapshot never changes after it was returned, so
// it may be kept and shared without limit.
//
// # How it fits
//
// The registry actor of package actors is the owner: it calls Apply for each burst of changes and publishes the result behind an
// atomic pointer. Calls and the facade read it. The package calls nothing but package messages.
//
// # Order
//
// Every change carries the (Epoch, Rev) of its server: Epoch is the connection attempt that it belongs to, Rev rises
// with every change that the server sends in that epoch. A change that is not newer than the last one applied for the
// same server is dropped. So changes may be repeated, and may overtake each other, and a late Announce cannot revive
// what was withdrawn. The supervisor, which speaks for a server whose actor has died and does not know its count, uses
// math.MaxUint64 as Rev: everything of that epoch is over. Two changes need no newer mark:
//
//   - Expire belongs to the Lose that has its Epoch, and comes with the Rev of that Lose or a later one. It drops what
//     is still lost by that Lose, and does nothing otherwise.
//   - Forget carries no mark. It drops the server and the memory of its changes.
//
// The memory is one mark (about 100 bytes) for each server that was ever mentioned and not forgotten, withdrawn ones
// included. After a server was removed from the configuration it must be forgotten, once no change of it can arrive any more:
// with actors, after the server's own actor has ended, since all its changes stand before the Forget in the mailbox. A
// forgotten server that is added again starts afresh.
//
// # Guarantees
//
// Snapshot.Check verifies the first six on one snapshot, the tests the others on each step. Numbers are stable.
//
//	C1  lookup by name, the list in order, and the lists of the servers hold the same entries
//	C2  the list ascends strictly by name, each server's list strictly by the tool's own name
//	C3  an entry's name is the naming's pure function of its server and tool: it depends on no order of events
//	C4  an entry stands in the list of the server that its tool names
//	C5  all entries of one server have the same state, and the same epoch and route; a lost entry has no route
//	C6  no entry is of a later epoch than the mark of its server
//	C7  the generation rises by exactly 1 when the content differs, and stays when it does not
//	C8  the mark of a server never falls, except that Forget removes it; a withdrawn server has no entries
//	C9  entries that a batch leaves as they were are the same pointers in both snapshots
//
// Less formally: one Apply copies once, whatever the number of changes; two servers with a tool of the same name have
// two entries; and unchanged entries are shared.
//
// # Not promised
//
// Two different tools have the same qualified name only if their hashes collide (see messages.Naming). Then the second one
// is left out and Refused names it; it is added with the next change of its server after the first has
// gone. The catalog does not know whether a live entry's connection still works: the connection's own admission gate does.
package catalog
