package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// need is what must happen while a fault lasts, or it has no effect.
type need int

const (
	nothing   need = iota
	aCall          // somebody calls a tool
	aCancel        // and gives up
	aStart         // the server is connected anew
	anEnd          // its connection is ended by the manager
	aList          // the tools are listed
	aQuestion      // it is asked which era it speaks: it is new to the manager
)

var needs = map[string]need{
	"answer-and-die": aCall, "bad-output": aCall, "big-result": aCall, "die-mid-call": aCall, "duplicate-response": aCall,
	"endless-progress": aCall, "forbidden": aCall, "half-line": aCall, "hang-call": aCall, "huge-line": aCall, "latency": aCall,
	"leak-canary": aCall, "slow-drip": aCall, "tool-error": aCall, "truncate": aCall, "unknown-response": aCall,
	"rotate-token": aCall, "redirect": aCall, "server-error": aCall, "wrong-content-type": aCall, "unauthorized": aCall,
	"lose-session": aCall, "stale-session-400": aCall, "black-hole": aCall, "half-open": aCall, "partition": aCall, "deaf": aCall,
	"ignore-cancel": aCancel, "late-response": aCancel,
	"exit-after-list": aStart, "hang-start": aStart, "stuck-dial": aStart, "slow-start": aStart, "throttle": aStart, "missing-binary": aStart,
	"exhausted": aStart, "refuse": aStart, "wrong-version": aStart,
	"ignore-eof": anEnd, "ignore-term": anEnd, "silent-delete": anEnd,
	"bad-schema": aList, "change-during-list": aList, "cursor-loop": aList, "duplicate-names": aList, "empty-cursor": aList,
	"long-names": aList, "quiet-change": aList,
	"silent-discover": aQuestion, "die-on-discover": aQuestion,
}

// company lets something happen while a fault lasts, most of the time: a fault that nobody meets finds nothing.
func (d *day) company(k faults.Kind, server string, at, last time.Duration) {
	if server == "" || d.likely(0.15) {
		return
	}
	soon := min(at+d.between(0, max(min(last, 2*time.Second), time.Millisecond)), d.length-time.Millisecond)
	switch needs[k.Name] {
	case nothing:
	case aCall, aCancel:
		l := scenario.Load{
			On: scenario.Selector{server}, Tool: pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool),
			Rate: float64(2 + d.IntN(4)), From: messages.Duration(at),
			For: messages.Duration(d.round(min(max(last, 2*time.Second), 8*time.Second))),
		}
		if needs[k.Name] == aCancel {
			l.Timeout = messages.Duration(pick(d, 50*time.Millisecond, 300*time.Millisecond))
		}
		d.s.Load = append(d.s.Load, l)
	case aStart:
		if d.likely(0.5) {
			d.order("reconnect", server, soon)
		} else {
			d.add("crash", server, soon, 0, nil)
		}
	case anEnd:
		d.order(pick(d, "reconnect", "reconnect", "respec", "disconnect"), server, soon)
	case aList:
		d.order(pick(d, "refresh", "refresh", "reconnect"), server, soon)
	case aQuestion:
		d.order("respec", server, soon)
	}
}
