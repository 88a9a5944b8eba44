// Package budget bounds the resources that many servers together may cost one manager: bytes of memory, and processor time.
//
//	b := budget.New(512 << 20)
//	share := b.Open("github")       // one for each server, for as long as it is configured
//	if err := share.Take(n); err != nil { … }  // before n bytes are kept
//	share.Give(n)                   // when they are released
//
// # How it fits
//
// Package supervisor makes one [Budget], and its supervisor actor opens a [Share] for each server. The transports take bytes for
// messages that are being received, the session for lists and queued messages; both charge unasked work and pause the reading by
// it. A Share owns two counters and nothing else: no goroutine, no memory.
//
// # Rules
//
// Memory. Half of the budget is divided equally: with N servers, each may always hold a fair share of limit/(2N), whatever the
// others hold. The other half is common. Of it a server may hold at most as much as stays free beside it: so the greediest is
// refused first, and there is always room for a server that holds less. The server that asks is refused; nothing is taken away
// from another one. A caller that can wait asks again when bytes were given back (Freed). Each of several callers that wait holds
// some bytes and wants more, so that a bounded wait is needed to end their deadlock.
//
// Processor time. Work that a server causes unasked (notifications, requests, answers that no call waits for, standard error) is
// charged at fixed prices, and a sixteenth of a processor pays for it; each request that the server is working on pays as much
// again. A server that has used up [Burst] is not read for a while (Pause), so that its own pipe or connection fills up and holds
// it up. Answers to requests are not charged.
//
// Guarantees: the sum of all shares is the total; it is at most the limit while no server is added; it is 0 when all shares are
// closed. Decisions depend only on counters and on times that are passed in. A nil Share takes everything and charges nothing.
//
// Not promised: servers that are added while older ones hold nearly everything get their fair share all the same, and the total
// exceeds the limit by it until the older ones release bytes. Bytes are those of the messages, not those of Go's heap.
//
// Public for the actors: what it exports may change without notice.
package budget
