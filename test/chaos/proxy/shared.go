package proxy

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Shared is what both proxies need. The zero value of everything but Control is usable.
type Shared struct {
	// Control holds the rules. It must be At the place of the proxy.
	Control *fault.Control
	// Log is told of everything that passes; nil logs nothing.
	Log *Log
	// Tally counts; nil counts nothing.
	Tally *Tally
	// Track reads messages also while there is no rule, so that a rule that comes later knows the requests that wait for
	// their answers, and the tally their methods.
	Track bool
}

const (
	toServer = true
	toClient = false

	// holdLimit is the longest line or event that rules are asked about.
	holdLimit = 64 << 20
	// pollEvery is how often something is looked at that ends by a rule.
	pollEvery = 20 * time.Millisecond
)

func (s *Shared) readsMessages() bool { return s.Track || s.Log != nil || s.Tally != nil }

// notePassed reads a message that passed untouched while nobody was asked about it, and notes it for rules that come later.
func (s *Shared) notePassed(flow *fault.Flow, to bool, scope string, body []byte) {
	if s.readsMessages() {
		s.recordPassed(to, flow.Inspect(to, scope, body, true), body)
	}
}

// recordPassed counts and logs what passed untouched.
func (s *Shared) recordPassed(to bool, seen []fault.MessageInfo, body []byte) {
	if len(seen) == 0 {
		if len(bytes.TrimSpace(body)) == 0 {
			return // an empty line is nothing
		}
		seen = []fault.MessageInfo{{}}
	}
	for _, m := range seen {
		s.Tally.countMessage(to)
		s.Log.logMessage(to, m, body, nil)
	}
}

// recordHit notes a message that was hit.
func (s *Shared) recordHit(to bool, seen []fault.MessageInfo, body []byte, f fault.Disposition) {
	s.Tally.countMessage(to)
	m := fault.MessageInfo{}
	if len(seen) > 0 {
		m = seen[0]
	}
	s.Log.logMessage(to, m, body, f.Hits)
}

// Tally counts what passed, and what was done by which rule. The zero value is ready; it is safe for concurrent use.
type Tally struct {
	toServer, toClient, faults atomic.Int64
	rules                      ruleCounts
}

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
