package proxy

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Shared holds what both proxies need. Only Control must be set.
type Shared struct {
	// Control holds the rules. It must be At the place of the proxy (fault.Stdio or fault.HTTP).
	Control *fault.Control
	// Log gets everything that passes; nil logs nothing.
	Log *Log
	// Tally counts what passes; nil counts nothing.
	Tally *Tally
	// Track makes the proxy read messages also while there is no rule, so that a rule added later knows the requests under way.
	Track bool
}

const (
	toServer = true
	toClient = false

	// holdLimit is the length in bytes up to which rules see a line or event.
	holdLimit = 64 << 20
	// pollEvery is the interval at which the proxy checks whether a rule that holds something is still in force.
	pollEvery = 20 * time.Millisecond
)

// readsMessages reports whether messages that pass without rules are read at all.
func (s *Shared) readsMessages() bool { return s.Track || s.Log != nil || s.Tally != nil }

// notePassed reads a message that passed while there were no rules, so that rules added later know of it.
func (s *Shared) notePassed(flow *fault.Flow, to bool, scope string, body []byte) {
	if s.readsMessages() {
		s.recordPassed(to, flow.Inspect(to, scope, body, true), body)
	}
}

// recordPassed counts and logs a message that passed unchanged.
func (s *Shared) recordPassed(to bool, seen []fault.MessageInfo, body []byte) {
	if len(seen) == 0 {
		if len(bytes.TrimSpace(body)) == 0 {
			// An empty line is no message.
			return
		}
		seen = []fault.MessageInfo{{}}
	}
	for _, m := range seen {
		s.Tally.countMessage(to)
		s.Log.logMessage(to, m, body, nil)
	}
}

// recordHit counts and logs a message on which rules acted.
func (s *Shared) recordHit(to bool, seen []fault.MessageInfo, body []byte, f fault.Disposition) {
	s.Tally.countMessage(to)
	m := fault.MessageInfo{}
	if len(seen) > 0 {
		m = seen[0]
	}
	s.Log.logMessage(to, m, body, f.Hits)
}

// Tally counts what passed, and what each rule did. The zero value is ready; it is safe for concurrent use.
type Tally struct {
	toServer, toClient, faults atomic.Int64
	rules                      ruleCounts
}

// countMessage counts one message. A nil Tally counts nothing.
func (t *Tally) countMessage(to bool) {
	if t == nil {
		return
	}
	if to {
		t.toServer.Add(1)
	} else {
		t.toClient.Add(1)
	}
}
