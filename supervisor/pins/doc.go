// Package pins remembers the definition of every tool that was offered: its name, title, description, schemas and
// annotations. It notices a server that changes one of them after a person has begun to rely on it.
//
// Start with Open, and give the store to supervisor.Config.Pins:
//
//	store, err := pins.Open(path)
//	for _, c := range store.Changes(key) { fmt.Println(c.Text()) }
//	approved, unseen, err := store.Approve(key, changes)
//
// # How it fits
//
// Package supervisor/internal/permissions calls Compare for each list of tools that a server gives, and holds back or marks the
// changed tools. The command approves with Show and Approve, possibly in another process. A Store owns its file, which it edits
// through package supervisor/discover.
//
// Guarantees:
//
//   - Trust on first use: the first definition of a tool is trusted, also of a new tool of a known server, because a new tool
//     is no changed one (Turnover reports it, and renamed tools). A tool that goes away and comes back changed is changed.
//   - The order of keys in a schema does not matter, nor white space, nor how a text is escaped or a number is written (1.0 is 1);
//     every other difference does. A hash is that of the canonical form of RFC 8785, which other programs compute too.
//   - A file of version 1 had other hashes. What was approved by them stays approved, and what was shown stays shown.
//   - Approve accepts the definitions that it is given, by their hashes, and no others: a definition that changed again is not
//     approved by a person who has seen another one.
//   - A definition that was approved once stays approved (the last 8 of a tool): a server that alternates between
//     two of them asks once for each.
//   - Compare reads and writes no file, and does not read a list again that it has compared. New pins are written in the
//     background, the file as a whole: a crash leaves the old file or the new one, with mode 0600.
//   - Several processes may use one file. Each change is made on what the file holds when it is written, under a lock, so that no
//     change is lost.
//   - A file that cannot be read, or is of a newer version, is never overwritten. Until it can be read no tool has a pin, and
//     every one stands in Findings.Unkept, so that a program that holds changed tools back holds these back too. So does a tool
//     that could not be written, or is beyond the bounds.
//   - Bounded: 1,024 servers (those of missing files are dropped first), 16,384 tools of each; of a definition of more than 64 KiB,
//     or beyond 16 MiB of one server, only the hash is kept.
//
// Not promised: that a definition which never changed is harmless, nor one that was changed before it was first seen.
package pins
