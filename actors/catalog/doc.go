// Package catalog is the set of tools that exist at one moment, as an immutable value, and the pure function that leads
// from one moment to the next:
//
//	Apply(Snapshot, Changes) (Snapshot, changed)
//
// Start with Empty. One owner (the registry actor) applies the changes that servers announce and publishes each
// result; everybody else reads whatever snapshot they hold. Reading takes no lock and allocates nothing. A snapshot
// never changes after it was returned, so it may be kept and shared for as long as anybody likes.
//
// # Order
//
// Every change carries the (Epoch, Rev) of its server: Epoch is the connection attempt that it belongs to, Rev rises
// with every word that the server says in that epoch. A change that is not newer than the last one applied for the
// same server is dropped. So changes may be repeated, and may overtake each other, and a late Announce cannot revive
// what was withdrawn. Who speaks on behalf of a server whose own count is unknown (its actor died) uses math.MaxUint64
// as Rev: everything of that epoch is over. Two changes need no newer mark:
//
//   - Expire belongs to the Lose that has its Epoch, and comes with the Rev of that Lose or a later one. It drops what
//     is still lost by that Lose, and does nothing otherwise.
//   - Forget carries no mark. It drops the server and the memory of what it said.
//
// The memory is one mark (about 100 bytes) for each server that was ever mentioned and not forgotten, withdrawn ones
// included. Whoever removes a server from the configuration forgets it, once nothing of it can be on its way any more:
// with actors, after the server's own actor has ended, since all its words stand before the Forget in the mailbox. A
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
// two entries; and what nobody changed is shared.
//
// # Not promised
//
// Two different tools have the same qualified name only if their hashes meet (see messages.Naming). Then the one that
// came second is left out and Refused names it; it comes in with the next change of its server after the first has
// gone. Whether a live entry's connection still works is not known here: the connection's own admission gate knows.
package catalog
