// Package invariant judges the history of a run: each check is a function of the history and answers holds, violated or
// inconclusive.
//
//	for _, v := range invariant.Judge(h) { fmt.Println(v.ID, v.Answer, v.Why) }
//
// # How it fits
//
// Packages campaign, live's callers and the command "mcpvisor chaos" call [Judge] after a run; reports print the verdicts. The
// checks read the history through history.Index, and compute from the plan and from what the servers and callers saw what the
// manager must have done. They never ask the manager's own arithmetic, so that a mistake there cannot hide itself.
//
//	history.History -> checker (index, spans, attempts, tolerance) -> 23 invariants, occasions, effects of faults -> []Verdict
//
// Each invariant stands in a file i01_*.go, i02_*.go and so on with its sentence; the other files compute what several
// share: attempts and their ends, phase and catalog spans, what the owner wants, the windows of faults. A checker belongs
// to one check and one goroutine; only the index is shared.
//
// # Guarantees
//
// A verdict follows from the history alone: the same history gives the same verdicts, in the process that ran the day or in another
// one. A check without an occasion is inconclusive and never a success.
//
// # Not promised
//
// That a violation names its cause. It names the events that cannot stand beside each other, and where in the history they are.
package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Answer is the result of a check.
type Answer string

const (
	Holds    Answer = "holds"
	Violated Answer = "violated"
	// Inconclusive means that this run holds no case to judge.
	Inconclusive Answer = "inconclusive"
)

// Verdict is the answer of one check on one history.
type Verdict struct {
	// ID is "I1" to "I22", "sometimes …" for an occasion or the effect of a fault, or "hung".
	ID     string `json:"id"`
	Title  string `json:"title"`
	Answer Answer `json:"answer"`
	// Why is one or two sentences: what was expected and what happened, or why nothing can be concluded.
	Why string `json:"why,omitempty"`
	// Before lists what happened to the server before the violation: faults, the owner's commands, the end of its last
	// connection, the manager's phase.
	Before string `json:"before,omitempty"`
	// Server, At and Evidence locate a violation. Evidence holds indices into History.Events; the last one is the event that
	// shows it.
	Server   string        `json:"server,omitempty"`
	At       time.Duration `json:"at,omitempty"`
	Evidence []int         `json:"evidence,omitempty"`
	// Looked counts the cases that were judged.
	Looked int `json:"looked"`
}

// Check is one invariant.
type Check struct {
	ID string
	// Title is a few words, Text the sentence of the invariant.
	Title, Text string
	// Judge reads the history and changes nothing but its index.
	Judge func(h *history.History) Verdict
}
