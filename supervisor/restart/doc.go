// Package restart decides when a server may start: Policy chooses the time after a failure, Gate bounds how many servers
// begin at once. Both are pure: the time and the randomness are arguments.
//
//	record, decision := policy.Down(record, restart.Down{…}, now, rand.Float64)   // a connection or an attempt ended
//	gate.Enqueue(now, restart.Request{Server: id, NotBefore: decision.At, …})     // the server shall start again
//	granted, wake := gate.Next(now)                                               // these begin now; call again at wake
//	gate.Waited(now, id, ran, waited)                                             // the processes' use of the processors
//	silent := gate.Displace(now)                                                  // the attempts of these are to be ended
//
// # How it fits
//
// The supervisor actor (package supervisor/internal/core) owns one Policy, one Gate, a Record per server, and the timer for wake.
// It calls Down when a server's actor reports a failure, and sends the actor a grant when Next names it. The package calls only
// package messages and the arithmetic of cenkalti/backoff.
//
// # When a server that is down is tried again
//
//   - The delay is drawn evenly between a floor of 200 ms and the current interval (full jitter). The interval begins
//     at 0.5 s (network, in-process) or 1 s (stdio), doubles with each consecutive failure, and ends at 60 s.
//   - A drop after at least 60 s of health is no failure: the restart follows within 500 ms.
//   - The count of failures returns to zero only then. Resetting on connect would make a server that connects and drops
//     loop at the first delay for ever.
//   - If the server asked for a time (Retry-After), that time wins over the interval. Nothing begins before it; the
//     jitter, up to a tenth of it, only adds.
//   - 6 consecutive failures (stdio) or 10 (all others) park the server: one half-open probe every 5 min ± 10 %, for
//     ever. A probe that fails schedules the next one, a probe that holds for 60 s ends it. A person or a changed spec
//     clears it.
//   - Where only a person can help there is no timer: see Retries.
//
// # What this amounts to
//
// A stdio server that dies at once, each time. Starts number 1 to 6 are separated by at most 1, 2, 4, 8 and 16 s, on
// average 0.6, 1.1, 2.1, 4.1 and 8.1 s: parked after 16 s on average, 31 s at most. From then on one start every 270
// to 330 s. So it makes 6 starts in the first minute, 16 to 19 in the first hour, and 267 to 326 in a day, 294 on
// average (12.2 an hour); left to the first delay alone it would make 144,000. A network server makes 10 attempts,
// separated by at most 0.5, 1, 2, 4, 8, 16, 32, 60 and 60 s: parked after 93 s on average, 184 s at most; then the
// same probes.
//
// A server that lives for 61 s and dies, each time, is restarted within 500 ms, 1,410 times a day: it was healthy for
// most of the day, and its users want it back. One that lives for 59 s is parked after six lives.
//
// A manager of 1,000 such stdio servers on 2 cores (8 slots): in the first minute 6,000 starts are requested, and as
// none holds a slot for long the gate only orders them. Parked, they make 3.3 starts a second, all together.
//
// # The gate
//
// A process start occupies one of 4×GOMAXPROCS slots, a dial one of 64 and one of the 16 of its origin, an in-process
// server one of 64. Measured with 60 Node servers on 2 cores: 8 at a time are all up in 14 s, the median
// in 1.8 s; all at once take 26 s, the median 25 s. A slot is held until the handshake is answered, or the connection
// is closed, or for 2 s: a silent server waits on without a slot, so that a few of them do not starve the rest.
// A second limit bounds the silent ones: 8 processes for each slot that have neither answered nor closed.
//
// Where that limit is reached, Displace names those that have been silent for longest, and their places go to servers
// that have not been tried, that were connected before, or that a person asks for: as many as there are slots free, and
// none before its 2 s are over. A server that was displaced is not at fault and nothing is counted against it
// (ClassExhausted): it is queued again in the lowest class, its next attempt lasts as long as its connect timeout allows, and
// it displaces nothing. So a slow first start that takes 54 s is interrupted at most every second time, and only on a
// machine with that many silent servers; and silent servers do not displace each other in circles, because a server that has
// failed ever since it was configured waits for a place like before.
//
// A process that waits for a processor is not silent. Waited reports how long a start's processes did, and its slot is held for so
// much longer, up to 20 s. If they waited for 7 times as long as they ran, the machine is starved, as by 8 starts on half a core,
// and the gate is narrowed to half, though never to less than 2; starts that ran for as long as they waited, and answers within
// 2 s, widen it by one each. Only starts that began since the gate was narrowed last count. A server that is slow by its nature,
// or silent, narrows nothing, and where the system reports nothing about processes the gate is as wide as its limit.
//
// A process that fetches the program it runs (npx with an empty cache) is recognised after a few seconds: Installing. Its slot is
// then free, it is not displaced, since that could break its cache for good, and it is counted apart, up to the same limit:
// sixty-four installations on 2 cores leave sixty-four places to others.
//
// Order: requested by a person, then healthy before, then never connected, then parked probes. Every 10 s of waiting
// raise a request by one class. Within a class the request that has been waiting longest is first; waiting begins at
// NotBefore. Requests that have risen to the highest class and requests of persons take turns there: a person does not wait
// behind a stampede, and many persons do not stop it.
//
// Worked example: 1,000 stdio servers on 2 cores, each answering after 1.8 s, 20 of them never: 8 slots pass 4.4
// servers a second, so the last one is up after 226 s; a server that a person asks for in the middle of it starts
// within 2 s.
//
// Worked example: 100 stdio servers that never answer, and a healthy one behind them, on 2 cores: 8 slots of 2 s each pass
// 64 of them in 16 s, which is the second limit. From then on each 2 s displace 8 of them for the next 8, and the healthy
// one starts after 24 s. It would be 38 s if it waited for the connect timeouts of 30 s. One that was connected before, or
// that a person requests, starts within 2 s and the time that the end of one process takes.
//
// The invariants of the gate. Gate.Check verifies G1, G2 and the bookkeeping behind the others; the tests compare each
// step with a model that knows no heap. Numbers are stable.
//
//	G1  slots held never exceed Processes, Network, PerOrigin and InProcess
//	G2  processes that have neither answered nor closed never exceed UnansweredFactor × Processes, besides as many at most
//	    that install
//	G3  nothing is granted before its NotBefore
//	G4  a request is granted at most once, and never after Cancel or a later Enqueue of the same server
//	G5  a server is not granted while an earlier grant of it has neither answered nor closed
//	G6  of the requests that could be granted, the granted one has the highest class after waiting, then the oldest begin
//	    of waiting, then the earlier Enqueue; except that in the highest class a risen one and a person's follow each other
//	G7  after Next, nothing is left that could be granted at that time
//	G8  wake is later than now and not later than the moment at which time alone lets something be granted or displaced
//	G9  no starvation: of requests that have waited for 3×Age and whose origin has a slot, the one that has waited
//	    longest gets at least every second grant of its pool
//	G10 a grant is displaced at most once, not before its Hold is over, never if its request was spared or it installs, and only while
//	    the limit of G2 is reached and no more than there are free slots and due requests that displace; those that have
//	    been silent for longest come first
//	G11 processes are granted only while fewer slots are held than the gate is wide; it is never wider than Processes nor
//	    narrower than 2 (or Processes, if that is less), and as wide as Processes until Waited says that a start is starved
//
// # Not promised
//
// A slot that was given up after Hold is not taken back: more than Processes servers may be starting at once, up to
// the limit of G2. A place that Displace passes on is free when its process has ended, which may take as long as
// stopping a process takes. Silent servers still cost those behind them their 2 s of a slot. A grant is permission, not success.
// Times before the last call's time are taken as that time: a clock that goes back delays nothing and grants nothing early.
package restart
