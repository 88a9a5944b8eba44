package generate

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// AtStart are the faults of a start, which need one to have an effect.
var AtStart = []string{"hang-start", "slow-start", "missing-binary", "refuse", "throttle", "wrong-version", "silent-discover", "die-on-discover"}

// notForClients are the faults that say nothing of a client in memory: those of the whole machine and of processes, and those that a
// caller from outside cannot cause.
var notForClients = []string{
	"stuck-dial", "starved", "exhausted", "sleep", "ignore-eof", "ignore-term", "grandchild", "stderr-flood", "endless-line", "leak-canary",
	"silent-delete", "list-error",
}

// ClientFaults returns the faults that a server of a kind and an era can have, and a client of it can meet in memory.
func ClientFaults(kind messages.TransportKind, era messages.Era) (names []string) {
	for _, k := range faults.Kinds() {
		if k.Where.Has(faults.Sim) && !k.WholeMachine && k.Applies(kind, era) && !slices.Contains(notForClients, k.Name) {
			names = append(names, k.Name)
		}
	}
	return names
}

// ClientCalls are the calls that a day makes of one server.
type ClientCalls struct {
	// Rate is in calls a second. Cancel is the share of them that their callers give up.
	Rate, Cancel float64
	Timeout      time.Duration
}

// Client returns the random day of a seed for any client: one server or up to four, a few faults near to each other, and on some days
// the client is closed and dialled anew (the command reconnect). calls are those of each server, in the order of the day's servers.
func Client(seed uint64, kind messages.TransportKind, era messages.Era) (s scenario.Scenario, calls []ClientCalls) {
	d := &scenarioBuilder{Rand: scenario.Rand(seed, "generate client"), o: Options{Servers: 4, Faults: 8, Only: ClientFaults(kind, era)}}
	d.length = time.Duration(15+d.IntN(45)) * time.Second
	d.s = scenario.Scenario{
		Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Tiers: []scenario.Tier{scenario.Sim}, Duration: messages.Duration(d.length),
	}
	for i := range pick(d, 1, 1, 2, 3, 4) {
		name := "server"
		if i > 0 {
			name = fmt.Sprintf("server-%d", i+1)
		}
		d.s.Servers = append(d.s.Servers, scenario.Group{
			Name: name, Kind: kind, Era: era, Tools: 3 + d.IntN(6), Pages: 1 + d.IntN(3),
			Start:   messages.Duration(pick(d, 5*time.Millisecond, 20*time.Millisecond, 2*time.Second)),
			Latency: messages.Duration(pick(d, time.Millisecond, 50*time.Millisecond, 400*time.Millisecond)),
		})
		calls = append(calls, ClientCalls{
			Rate: pick(d, 0.5, 1, 2, 5), Timeout: pick(d, 2*time.Second, 8*time.Second), Cancel: pick(d, 0, 0.1, 0.3),
		})
	}
	d.drawFaults()
	d.drawFrequentForClients()
	d.addStarts()
	d.limitBytes()
	d.s.Commands, d.s.Load = nil, nil
	for _, g := range d.s.Servers {
		if d.drawChance(0.2) {
			at := d.roundTime(d.drawBetween(5*time.Second, d.length))
			d.s.Commands = append(d.s.Commands, scenario.Command{Do: "reconnect", On: scenario.Selector{g.Name}, At: messages.Duration(at)})
		}
	}
	d.s.About = d.summaryText()
	return d.s, calls
}

// drawFrequentForClients adds what clients meet every day, and what needs a second event to be seen: the list changes, calls that take
// long, a server that is started again.
func (d *scenarioBuilder) drawFrequentForClients() {
	for _, often := range []struct {
		name   string
		chance float64
	}{{"list-changed", 0.3}, {"hang-call", 0.2}, {"crash", 0.3}, {"die-mid-call", 0.15}, {"lose-session", 0.15}, {"late-response", 0.1}, {"endless-progress", 0.1}} {
		if k, ok := faults.Lookup(often.name); ok && slices.Contains(d.o.Only, often.name) && d.drawChance(often.chance) {
			d.drawFault(k)
		}
	}
}

// addStarts ends servers whose start is to fail, so that there is a start.
func (d *scenarioBuilder) addStarts() {
	for _, f := range slices.Clone(d.s.Faults) {
		if slices.Contains(AtStart, f.Fault) && d.drawChance(0.8) {
			at := min(time.Duration(f.At)+d.drawBetween(0, time.Second), d.length-time.Millisecond)
			d.s.Faults = append(d.s.Faults, scenario.Fault{Fault: "crash", On: f.On, At: messages.Duration(at)})
		}
	}
}

// limitBytes leaves kilobytes of megabytes, which cost some clients seconds of a processor and show no more.
func (d *scenarioBuilder) limitBytes() {
	d.s.Faults = slices.DeleteFunc(d.s.Faults, func(f scenario.Fault) bool { return f.Fault == "huge-line" })
	for i := range d.s.Faults {
		if d.s.Faults[i].Fault == "big-result" {
			d.s.Faults[i].With = map[string]string{"size": "64KiB"}
		}
	}
}
