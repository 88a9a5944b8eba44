// Package budget bounds what many servers together may cost one manager: bytes of memory, and processor time.
//
//	b := budget.New(512 << 20)
//	share := b.Open("github")       // one for each server, for as long as it is configured
//	if err := share.Take(n); err != nil { … }  // before n bytes are kept
//	share.Give(n)                   // when they are let go
//
// Memory. Half of the budget is divided equally: with N servers, each may always hold a fair share of limit/(2N), whatever
// the others hold. The other half is common. Of it a server may hold as much as stays free when it has it, and no more: so
// the greediest is refused first, and there is always something left for a server that holds less. The server that asks is refused; nothing is
// taken away from who has it. Who may wait asks again when something was given back (Freed): everybody who waits holds
// less than what he asks for, so that giving up after a bounded time ends every deadlock.
//
// Processor time. What a server makes the manager do unasked (notifications, requests, answers that no call waits for,
// standard error) is charged at fixed prices, and a sixteenth of a processor pays for it; each request that the server is
// working on pays as much again. A server that has used up Burst is left unread for a while (Pause), so that it feels its
// flood itself, by a pipe or a connection that is full. Answers to requests are not charged.
//
// Guarantees: the sum of all shares is the total; it is at most the limit while no server is added; it is 0 when all shares
// are closed. Decisions depend on counters and times that are passed in. A nil Share takes everything and charges nothing.
//
// Not promised: servers that are added while older ones hold nearly everything get their fair share all the same, and the
// total is above the limit by it until the older ones let go. Bytes are those of the messages, not those of Go's heap.
package budget
