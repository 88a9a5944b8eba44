// Package lifecycle is the state machine of one server, as a pure function:
//
//	Step(State, Event) (State, []Effect)
//
// It has no clock, no randomness, no goroutine and no I/O. Begin with the zero State and Init; perform the effects in their
// order, and answer each as its comment says.
//
// # How it fits
//
// The server's actor (package actors) owns the State: it calls Step with each message, performs the effects, and publishes the
// result. The supervisor answers the effects Ask and Report with the events Granted and Scheduled. The harness of the tests feeds
// the function with whole histories and judges them. The package calls nothing but package messages.
//
//	                         ┌─ pending ──────────────────────────────────┐
//	┌──────────┐             │                                            │ Failed, Lost   ┌─ failed ────────┐
//	│ disabled │ ──Enable──▶ │ idle ──Wake──▶ queued ◀──Closed── closing  │ ─────────────▶ │ retry at a time │
//	│ cold     │ ◀──Disable─ │                 │ Granted                  │ ◀───────────── │ parked · none   │
//	└──────────┘             │                 ▼                          │ Granted,       └─────────────────┘
//	     ▲                   │              dialing ◀─Granted─ restarting │ Reconnect
//	     │ Lost,             │                 │ Dialed                   │
//	     │ Disable cold      │                 ▼                          │
//	     │                   │     handshaking, installing                │ Unauthorized   ┌─────────────────┐
//	┌──────────┐             │                 │ Greeted                  │ ─────────────▶ │ needs-auth      │
//	│ disabled │ ──Enable──▶ │                 ▼                          │ ◀───────────── │                 │
//	│ warm     │ (changed)   │              listing                       │ Reconnect      └─────────────────┘
//	└──────────┘             └────────────────────────────────────────────┘                         ▲
//	   ▲    │                                  │ Listed      ▲ Lost, IdleOut,                       │
//	   │    │                                  ▼             │ Reconnect                            │
//	   │    └──Enable──────▶ ┌────────────────────────────────────────────┐                         │
//	   └───────Disable────── │             connected                      │ ────────Unauthorized────┘
//	                         └────────────────────────────────────────────┘
//
// Two fields are kept apart: Wanted says what was commanded (is the server enabled?), Phase what is the case. A connection attempt
// begins with Granted, which brings its epoch, and ends with exactly one Closed of that epoch, when everything that it
// held has been released. Between the two, Conn says what exists of the connection. An event that carries another epoch than
// State.Epoch is stale and changes nothing; a grant that is not newer is declined.
//
// From every phase: Disable leads to disabled, Remove to the end, Respec to what the new spec says. These are all
// other edges (a test compares them with the relation; testdata/matrix.txt has every event in every state):
//
//	not begun   Init → disabled, idle, queued, failed, needs-auth
//	disabled    Enable → idle, queued, closing, failed, needs-auth
//	warm        Enable → listing, connected
//	            Lost, Closed → disabled
//	idle        Reconnect, Wake → queued, closing
//	queued      Granted → dialing
//	dialing     Dialed → handshaking
//	            ListFailed, Failed, Lost → failed, needs-auth
//	            Closed → failed
//	            Unauthorized → needs-auth
//	handshaking Installing → installing
//	            Greeted → listing
//	            ListFailed, Failed, Lost → failed, needs-auth
//	            Closed → failed
//	            Unauthorized → needs-auth
//	installing  Greeted → listing
//	            ListFailed, Failed, Lost → failed, needs-auth
//	            Closed → failed
//	            Unauthorized → needs-auth
//	listing     Reconnect → closing
//	            Listed → connected
//	            ListFailed, Failed → failed, needs-auth
//	            Lost → restarting, failed, needs-auth
//	            Closed → restarting, failed
//	            Unauthorized → needs-auth
//	restarting  Reconnect → queued, closing
//	            Granted → dialing
//	            Scheduled → failed
//	closing     Closed → queued
//	connected   Reconnect → closing
//	            ListFailed, Unauthorized → needs-auth
//	            Lost → restarting, needs-auth
//	            Closed → restarting
//	            IdleOut → idle
//	failed      Reconnect → queued, closing
//	            Granted → dialing
//	needs-auth  Reconnect → queued, closing
//
// Invariants, which State.Check verifies after every step (numbers are stable, reports name them). L7 and the statements
// marked * are about two steps: the tests of this package verify them.
//
//	L1  connected ⇒ wanted and Conn is Open
//	L2  disabled ⇔ not wanted; a server that is being removed is not wanted; a disabled server is warm ⇔ Conn is Open
//	L3  at most one epoch has a connection: a start is requested, and Dial performed*, only when Conn is None
//	L4  needs-auth requests no start; only a server that failed or restarts, and requests a start, has a next attempt
//	L5  a list is being fetched, or due, only while Conn is Opening or Open
//	L6  a start is requested only while the server is wanted
//	L7  Rev rises with every message to the registry*
//	L8  Answered never exceeds Ticket, and equals it once the server has settled
//	L9  Step is set ⇔ pending; step, connection and start request agree, so that an event will come that leads on
//	L10 a server that failed, restarts or needs credentials has a cause; a connected one has none
//
// Not decided here: when an attempt may begin (package restart), which tools exist (package catalog), how any effect is
// performed.
//
// Not promised: progress. The machine waits for ever for an answer that the actor never gives; each effect that is
// work must be answered, within a bound, also when it fails.
//
// Public for the harness, which judges histories by it: what it exports may change without notice.
package lifecycle
