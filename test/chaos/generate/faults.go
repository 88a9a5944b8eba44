package generate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// frequentFaults are drawn more often than the others, because they happen most in practice and the others meet them.
var frequentFaults = []string{"crash", "crash", "crash", "crash-loop", "reset", "hang-start", "slow-start", "list-changed", "refuse", "stop"}

// costlyLimits bounds the faults that act many times a second, or produce much data, to seconds; otherwise they would take most
// of the time of a run.
var costlyLimits = map[string]time.Duration{
	"noise": 10 * time.Second, "list-storm": 3 * time.Second, "huge-line": 5 * time.Second, "big-result": 20 * time.Second,
	"slow-drip": 10 * time.Second, "endless-progress": 30 * time.Second, "modern-breach": 30 * time.Second,
}

// drawFaults draws the faults of the day, from those that the simulation has and that Options.Only allows. It leaves starved out,
// which says little of one server alone: drawStarved draws it.
func (d *scenarioBuilder) drawFaults() {
	var names []string
	for _, k := range faults.Kinds() {
		if k.Where.Has(faults.Sim) && (len(d.o.Only) == 0 && k.Name != "starved" && k.Name != "list-error" || slices.Contains(d.o.Only, k.Name)) {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	// Few faults on three days of ten: a fault alone shows what it does, many show what they do to each other.
	n := 1 + d.IntN(min(3, d.o.Faults))
	if d.drawChance(0.7) {
		n = 1 + d.IntN(d.o.Faults)
	}
	for range n {
		name := pick(d, names...)
		if len(d.o.Only) == 0 && d.drawChance(0.3) {
			name = pick(d, frequentFaults...)
		}
		k, _ := faults.Lookup(name)
		d.drawFault(k)
	}
}

// drawFault draws one fault of a kind: its servers, its time, its length and sometimes its repetition.
func (d *scenarioBuilder) drawFault(k faults.Kind) {
	f := scenario.Fault{Fault: k.Name, With: d.drawParameters(k)}
	server := ""
	// "sleep" stops the machine and names no server.
	if k.Name != "sleep" {
		if server = d.serverForFault(k, nil); server == "" {
			return // no server is of that kind, and the options allow no further one
		}
		f.On = d.faultTargets(k, server)
	}
	at := d.drawTime(server)
	f.At = messages.Duration(at)
	d.addMoment(at, server)
	if len(f.On) != 1 || f.On[0] != server {
		if d.drawChance(0.4) { // else it meets all servers in one instant
			f.Spread = messages.Duration(pick(d, 10*time.Millisecond, time.Second, 10*time.Second))
		}
	}
	if !k.Instant.Has(faults.Sim) {
		last := d.drawLength(at)
		if most, limited := costlyLimits[k.Name]; limited {
			last = min(last, most)
		}
		if k.Name == "sleep" {
			last = min(last, time.Minute)
		}
		f.For = messages.Duration(last)
		d.addMoment(at+last, server)
	}
	// A repeated fault rests at least as long as it lasts.
	if d.drawChance(0.15) && (k.Instant.Has(faults.Sim) || time.Duration(f.For) < 20*time.Second) {
		f.Every = messages.Duration(max(d.roundTime(d.drawBetween(time.Second, time.Minute)), 2*time.Duration(f.For)))
		f.Times = 2 + d.IntN(5)
	}
	d.s.Faults = append(d.s.Faults, f)
	met := server
	if len(f.On) != 1 || f.On[0] != server && f.On[0] != "*" {
		met = "" // which servers it meets is decided only by the plan
	}
	d.addTrigger(k, met, at, time.Duration(f.For))
}

// faultTargets draws the selector of a fault: one server (65 %), some, or all.
func (d *scenarioBuilder) faultTargets(k faults.Kind, server string) scenario.Selector {
	// can counts the servers that the fault applies to: "any:N" of more than there are cannot be planned.
	can := 0
	for _, g := range d.s.Servers {
		if k.Applies(g.Kind, g.Era) {
			can += max(g.Count, 1)
		}
	}
	switch p := d.Float64(); {
	case p < 0.65 || can < 2:
		return scenario.Selector{server}
	case p < 0.8:
		return scenario.Selector{fmt.Sprintf("any:%d", 1+d.IntN(can))}
	}
	return scenario.Selector{"*"}
}

// drawParameters draws the parameters of a fault, each on half of the days: otherwise the default holds, which is the most
// telling value.
func (d *scenarioBuilder) drawParameters(k faults.Kind) map[string]string {
	with := map[string]string{}
	for _, p := range k.ParamsAt(faults.Sim) {
		if d.drawChance(0.5) {
			continue
		}
		value := ""
		switch p.Type {
		case "duration":
			value = pick(d, "0s", "1ms", "50ms", "300ms", "1s", "5s", "20s")
			if p.Name == "every" {
				value = pick(d, "200ms", "1s", "5s", "20s")
			}
		case "chance", "jitter":
			value = pick(d, "0.1", "0.5", "0.9")
		case "truth":
			value = pick(d, "true", "false")
		case "word", "status":
			value = p.Words[d.IntN(len(p.Words))]
		case "rate":
			value = pick(d, "1", "20", "100")
		case "size":
			if k.Name == "huge-line" {
				continue // a shorter line would not be too long, and a longer one only costs time
			}
			value = pick(d, "1", "64", "4KiB", "100KiB")
		case "count", "code":
			value = d.drawNumber(p)
		// A text names a tool or a scope, for which no random word makes sense.
		case "text":
			continue
		}
		if value != "" {
			with[p.Name] = value
		}
	}
	if len(with) == 0 {
		return nil
	}
	return with
}

// drawNumber draws a count, whose meaning depends on the parameter. An unknown parameter keeps its default.
func (d *scenarioBuilder) drawNumber(p faults.Param) string {
	switch p.Name {
	case "code":
		return pick(d, "0", "1", "137")
	case "length":
		return pick(d, "60", "65", "128", "129", "900")
	case "times", "count":
		return strconv.Itoa(1 + d.IntN(5))
	}
	return ""
}
