// Package invariant judges the history of a run: each invariant is a function that answers true, false or inconclusive.
package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Answer is what a check found.
type Answer string

const (
	Holds    Answer = "holds"
	Violated Answer = "violated"
	// Inconclusive: what the invariant is about did not happen in this run.
	Inconclusive Answer = "inconclusive"
)

// Verdict is the answer of one check on one history.
type Verdict struct {
	// ID is "I1" …, or the name of a coverage ("sometimes …").
	ID     string `json:"id"`
	Title  string `json:"title"`
	Answer Answer `json:"answer"`
	// Why is one or two sentences: what was expected and what was seen, or why nothing can be said.
	Why string `json:"why,omitempty"`
	// Before is what happened to the server before it was violated: what broke, what its owner asked for, what the manager said.
	Before string `json:"before,omitempty"`
	// Server, At and Evidence say where, if it is violated: Evidence are indices into History.Events, the last one is the
	// event that shows it.
	Server   string        `json:"server,omitempty"`
	At       time.Duration `json:"at,omitempty"`
	Evidence []int         `json:"evidence,omitempty"`
	// Looked counts the cases that were judged.
	Looked int `json:"looked"`
}

// Check is one invariant.
type Check struct {
	ID string
	// Title is a few words, Text the invariant's sentence.
	Title, Text string
	Judge       func(h *history.History) Verdict
}
