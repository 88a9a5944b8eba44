package generate

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// eventfulShare is the share of days with a server that has no quiet minute.
const eventfulShare = 0.3

// drawEventful adds a server to which something happens all day: a few events close to each other, then a pause in which what they left must show,
// and again. Its owner's commands, the changes of its list and its failures meet in every order, which a recipe for one meeting does not bring.
// It has a source of chance of its own.
func (d *scenarioBuilder) drawEventful(seed uint64) {
	if len(d.o.Only) > 0 || d.length < 3*time.Minute {
		return
	}
	before := d.Rand
	defer func() { d.Rand = before }()
	d.Rand = scenario.Rand(seed, "generate eventful")
	if !d.drawChance(eventfulShare) {
		return
	}
	g := d.ownServer(messages.Stdio, messages.Stdio, messages.HTTP, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK)
	if g == nil {
		return
	}
	g.Offers, g.Trusted = d.drawChance(0.5), d.drawChance(0.5)
	if d.drawChance(0.3) {
		g.Connect, g.IdleTimeout = messages.Lazy, messages.Duration(pick(d, time.Second, 3*time.Second, 8*time.Second))
	}
	if d.drawChance(0.4) {
		g.MaxInFlight, g.MaxQueued = 1+d.IntN(2), pick(d, 0, 3, 20)
		g.Latency = messages.Duration(pick(d, 50*time.Millisecond, 300*time.Millisecond))
	}
	if d.drawChance(0.3) {
		g.CallTimeout = messages.Duration(pick(d, time.Second, 3*time.Second))
	}
	// Calls wait for their server for longer than its tools are shown.
	if m := &d.s.Manager; d.drawChance(0.4) {
		m.CallWait, m.WithdrawAfter = messages.Duration(pick(d, 3*time.Second, 10*time.Second)), messages.Duration(pick(d, 300*time.Millisecond, time.Second))
	}
	name := g.Name
	for at := d.roundTime(d.drawBetween(5*time.Second, 15*time.Second)); at < d.length-40*time.Second; {
		at = d.drawEpisode(name, at)
	}
}

// drawEpisode adds up to five events, mostly with calls and reads beside them, and returns when the next episode begins.
func (d *scenarioBuilder) drawEpisode(name string, at time.Duration) time.Duration {
	if d.drawChance(0.7) {
		l := d.addBurst(name, pick(d, scenario.ReadTool, scenario.PutTool, scenario.WriteTool), pick(d, 1.0, 2, 4), at-d.drawBetween(0, time.Second), 3*time.Second)
		l.Callers = 1 + d.IntN(3)
		if d.drawChance(0.3) {
			l.Cancel = 0.5
		}
	}
	if d.groupOf(name).Offers && d.drawChance(0.4) {
		d.addBurst(name, "", 2, at, 2*time.Second).Read = pick(d, scenario.Reads...)
	}
	for range 1 + d.IntN(5) {
		d.drawEvent(name, at)
		at += pick(d, nearDistances[:9]...)
	}
	// It is wanted again when the pause begins.
	d.addCommand(pick(d, "enable", "add"), name, at)
	return at + d.roundTime(d.drawBetween(6*time.Second, 20*time.Second))
}

// drawEvent adds one event: a command of the owner, a change of the list, or a failure that the server can have.
func (d *scenarioBuilder) drawEvent(name string, at time.Duration) {
	if d.drawChance(0.5) {
		// Words that stand twice are drawn twice as often.
		switch do := pick(d, "disable", "disable", "enable", "enable", "reconnect", "refresh", "refresh", "respec", "disconnect", "remove", "add",
			"adjust", "adjust", "permit", "wake"); do {
		case "adjust":
			d.addAdjust(name, at, pick(d, "callTimeout=2s", "callTimeout=20s", "connect=lazy", "connect=eager", "idleTimeout=2s", "maxInFlight=1", "maxInFlight=0",
				"deny=put", "deny=read,put,write", "deny="))
		case "permit":
			d.addPermit(name, at, pick(d, "", "", "write", scenario.WholeServer))
		case "wake":
			d.addCommand(do, "", at)
		default:
			d.addCommand(do, name, at)
		}
		return
	}
	g := d.groupOf(name)
	// A fault that this kind of server cannot have is drawn again.
	for range 8 {
		k := faultKind(pick(d, "list-changed", "list-changed", "list-changed", "crash", "crash", "reset", "lose-session", "stale-session-400", "list-error", "hang-call",
			"truncate", "die-mid-call", "change-during-list", "quiet-change", "unauthorized", "hang-start", "slow-start", "refuse", "black-hole"))
		if !k.Applies(g.Kind, g.Era) {
			continue
		}
		switch k.Name {
		case "list-changed":
			d.addFault(k.Name, name, at, 0, map[string]string{"what": pick(d, "swap", "add", "describe", "meta")})
		case "crash", "reset":
			d.addFault(k.Name, name, at, 0, nil)
		default:
			d.addFault(k.Name, name, at, d.roundTime(d.drawBetween(200*time.Millisecond, 4*time.Second)), nil)
		}
		return
	}
}
