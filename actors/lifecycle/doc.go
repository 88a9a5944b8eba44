// Package lifecycle is the state machine of one server, as a pure function:
//
//	Step(State, Event) (State, []Effect)
//
// It has no clock, no randomness, no goroutine and no I/O. The server actor feeds it events and performs its effects; the
// harness feeds it histories and judges them.
//
//	             Enable / Wake / Reconnect                     Granted
//	┌──────────┐ ─────────────────────────▶ ┌───────────────┐ ─────────▶ ┌────────────────────────────────┐
//	│ disabled │                            │ pending       │            │ pending                        │
//	│ cold     │ ◀───────────────────────── │ queued · idle │            │ dialing → handshaking → listing│
//	└──────────┘          Disable           └───────────────┘            └────────────────────────────────┘
//	  ▲      ▲                                ▲      ▲                       │ Listed        │ Failed
//	  │      │ Lost                           │      │ Scheduled…Granted     ▼               ▼
//	  │    ┌──────────┐ Disable     ┌───────────┐    │ Lost           ┌────────────┐   ┌──────────────────────┐
//	  │    │ disabled │ ◀────────── │ connected │ ───┼──────────────▶ │ pending    │   │ failed               │
//	  │    │ warm     │ ──────────▶ │           │    │                │ restarting │   │ retry · parked · none│
//	  │    └──────────┘   Enable    └───────────┘    │                └────────────┘   └──────────────────────┘
//	  │ Disable                        │ Unauthorized└──────────────────────┴───────────────────┘
//	  │                                ▼
//	  │                        ┌────────────┐  Reconnect
//	  └─────────────────────── │ needs-auth │ ───────────▶ pending
//	                           └────────────┘
//
// From every phase: Disable leads to disabled, Remove to the end, Respec to what the new spec says.
//
// Two fields are kept apart: Wanted is the wish (is the server enabled?), Phase is the fact. A connection attempt begins
// with Granted, which brings its epoch, and ends with exactly one Closed of that epoch, when everything that it held has
// been released. Between the two, Conn says what there is. An event that carries another epoch than State.Epoch is stale
// and changes nothing.
//
// Invariants, which State.Check verifies after every step (numbers are stable, reports name them):
//
//	L1  connected ⇒ wanted and Conn is Open
//	L2  disabled ⇔ not wanted (or being removed); it is warm ⇔ Conn is Open
//	L3  at most one epoch has a connection: Open is performed only when Conn is None
//	L4  needs-auth asks for no start and has no next attempt
//	L5  a list is in flight only while Conn is Opening or Open
//	L6  a start is asked for only while the server is wanted and nothing is opening or open
//	L7  Rev rises with every word to the registry
//	L8  Answered never exceeds Ticket, and equals it once the server has settled
//
// Not decided here: when an attempt may begin (package restart), which tools exist (package catalog), how anything is done.
package lifecycle
