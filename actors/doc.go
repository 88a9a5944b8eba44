// Package actors has the actors of a manager and what they share with callers: the server actor, the registry actor, the path of a
// tool call, and the events of watchers. The decisions are made by the pure packages lifecycle, catalog, queue and opening; this
// package performs them.
//
//	Server    one per configured server: feeds lifecycle.Step with events and performs the effects that it returns
//	Registry  sole writer of the catalog: folds the changes of a burst into one snapshot
//	attempt   owns everything that one epoch holds, from the dial to the release
//	Calls     the links of a request that know the servers: find → watch → explain → repeat → queue, and Send; no mailbox on them
//	callQueue where calls wait if only so many may be in flight at a server: before the gate, callers in turn
//	Hub       events to watchers, in order, each with a bounded queue and an announced gap
//
// # How it fits
//
// The supervisor actor (package supervisor/internal/core) starts these actors and is their parent; they are not useful alone. A
// server's actor calls package transports/session through its attempt, and sends to three places:
//
//	            Ask, Report, Up … (FromServer)
//	Server ───────────────────────────────────▶ supervisor ── Granted, Scheduled ──▶ Server
//	  │  ├── catalog.Change ──▶ Registry ──▶ Catalog (atomic pointer) ◀── Calls
//	  │  └── View ──▶ Cell (atomic pointer) ◀── Status, Wait, Calls
//	  └── attempt ──▶ session.Dial, Handshake, ListTools; posts dialDone, handshakeDone, listDone, connClosed
//
// Guarantees:
//
//   - Only a server's own actor writes that server's state; only the registry writes the catalog.
//   - Nothing blocks in Receive. Work that may block runs in a goroutine that ends by posting a message which carries its
//     epoch; a stale one is dropped by comparison.
//   - Every epoch that was dialled is released exactly once, also when the actor that asked for it has panicked.
//   - A View, a Status and a snapshot are immutable and are read without a message to any actor.
//
// Not promised: that a View is newer than the last message that a caller has sent. Cell.Wait waits for that.
//
// Public for the facade and the harness: what it exports may change without notice.
package actors
