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
	"silent-delete",
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

// Client returns the random day of a seed for any client of one server: a few faults, near to each other. There are no
// commands, because from outside a client is only asked for tools and for calls; rate is that of calls a second, timeout theirs.
func Client(seed uint64, kind messages.TransportKind, era messages.Era) (s scenario.Scenario, rate float64, timeout time.Duration) {
	d := &scenarioBuilder{Rand: scenario.Rand(seed, "generate client"), o: Options{Servers: 1, Faults: 6, Only: ClientFaults(kind, era)}}
	d.length = time.Duration(20+d.IntN(100)) * time.Second
	d.s = scenario.Scenario{
		Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Tiers: []scenario.Tier{scenario.Sim}, Duration: messages.Duration(d.length),
		Servers: []scenario.Group{{
			Name: "server", Kind: kind, Era: era, Tools: 3 + d.IntN(6), Pages: 1 + d.IntN(3),
			Start: messages.Duration(pick(d, 5*time.Millisecond, 20*time.Millisecond, 2*time.Second)), Latency: messages.Duration(pick(d, time.Millisecond, 50*time.Millisecond)),
		}},
	}
	d.drawFaults()
	// A start that fails needs a start.
	for _, f := range slices.Clone(d.s.Faults) {
		if slices.Contains(AtStart, f.Fault) && d.drawChance(0.8) {
			at := min(time.Duration(f.At)+d.drawBetween(0, time.Second), d.length-time.Millisecond)
			d.s.Faults = append(d.s.Faults, scenario.Fault{Fault: "crash", On: scenario.Selector{"server"}, At: messages.Duration(at)})
		}
	}
	// Megabytes cost some clients seconds of a processor, and show no more than kilobytes.
	d.s.Faults = slices.DeleteFunc(d.s.Faults, func(f scenario.Fault) bool { return f.Fault == "huge-line" })
	for i := range d.s.Faults {
		if d.s.Faults[i].Fault == "big-result" {
			d.s.Faults[i].With = map[string]string{"size": "64KiB"}
		}
	}
	d.s.Commands, d.s.Load = nil, nil
	rate, timeout = float64(1+d.IntN(4)), pick(d, 2*time.Second, 8*time.Second)
	d.s.About = d.summaryText()
	return d.s, rate, timeout
}
