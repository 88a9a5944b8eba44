package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// An effectNeed is the event that a fault needs while it lasts to have an effect.
type effectNeed int

const (
	needNothing  effectNeed = iota
	needCall                // a caller calls a tool
	needCancel              // a caller calls a tool and gives up
	needStart               // the server is connected anew
	needEnd                 // its connection is ended by the manager
	needList                // the tools are listed
	needEraProbe            // the manager asks for the server's era, which it does only for a new server
)

// effectNeeds holds the need of each fault; a fault that is not in it acts by itself.
var effectNeeds = map[string]effectNeed{
	"answer-and-die": needCall, "bad-output": needCall, "big-result": needCall, "die-mid-call": needCall, "duplicate-response": needCall,
	"endless-progress": needCall, "forbidden": needCall, "half-line": needCall, "hang-call": needCall, "huge-line": needCall, "latency": needCall,
	"leak-canary": needCall, "slow-drip": needCall, "tool-error": needCall, "truncate": needCall, "unknown-response": needCall,
	"rotate-token": needCall, "redirect": needCall, "server-error": needCall, "wrong-content-type": needCall, "unauthorized": needCall,
	"lose-session": needCall, "stale-session-400": needCall, "black-hole": needCall, "half-open": needCall, "partition": needCall, "deaf": needCall,
	"ignore-cancel": needCancel, "late-response": needCancel,
	"exit-after-list": needStart, "hang-start": needStart, "stuck-dial": needStart, "slow-start": needStart, "throttle": needStart, "missing-binary": needStart,
	"exhausted": needStart, "refuse": needStart, "wrong-version": needStart,
	"ignore-eof": needEnd, "ignore-term": needEnd, "silent-delete": needEnd,
	"bad-schema": needList, "change-during-list": needList, "cursor-loop": needList, "duplicate-names": needList, "empty-cursor": needList,
	"long-names": needList, "quiet-change": needList,
	"silent-discover": needEraProbe, "die-on-discover": needEraProbe,
}

// addTrigger adds the event that a fault needs, on 85 % of the days: without it most faults would have no effect. The remaining
// days show that a fault without an effect does no harm.
func (d *scenarioBuilder) addTrigger(k faults.Kind, server string, at, last time.Duration) {
	if server == "" || d.drawChance(0.15) {
		return
	}
	// The event comes early, so that it meets short faults too.
	soon := min(at+d.drawBetween(0, max(min(last, 2*time.Second), time.Millisecond)), d.length-time.Millisecond)
	// A kind that the table does not name has the zero need: it acts by itself.
	switch effectNeeds[k.Name] {
	case needNothing:
	case needCall, needCancel:
		l := scenario.Load{
			On: scenario.Selector{server}, Tool: pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool),
			Rate: float64(1 + d.IntN(3)), From: messages.Duration(at),
			For: messages.Duration(d.roundTime(min(max(last, 2*time.Second), 8*time.Second))),
		}
		// A caller gives up by its timeout.
		if effectNeeds[k.Name] == needCancel {
			l.Timeout = messages.Duration(pick(d, 50*time.Millisecond, 300*time.Millisecond))
		}
		d.s.Load = append(d.s.Load, l)
	case needStart:
		if d.drawChance(0.5) {
			d.addCommand("reconnect", server, soon)
		} else {
			d.addFault("crash", server, soon, 0, nil)
		}
	case needEnd:
		d.addCommand(pick(d, "reconnect", "reconnect", "respec", "disconnect"), server, soon)
	case needList:
		d.addCommand(pick(d, "refresh", "refresh", "reconnect"), server, soon)
	// respec makes the server a new one to the manager.
	case needEraProbe:
		d.addCommand("respec", server, soon)
	}
}
