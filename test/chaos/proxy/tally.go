package proxy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// ruleCounts counts what each rule did; names are in the order of their first effect.
type ruleCounts struct {
	mu sync.Mutex
	// names are the keys of count, each a rule and its fault, as in "r1 latency".
	names []string
	count map[string]int
}

// Hit counts a fault that was done. The caller lets the control Watch it.
func (t *Tally) Hit(h fault.Hit) {
	t.faults.Add(1)
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	key := h.Rule + " " + h.Fault
	if t.rules.count == nil {
		t.rules.count = map[string]int{}
	}
	if t.rules.count[key] == 0 {
		t.rules.names = append(t.rules.names, key)
	}
	t.rules.count[key]++
}

// Faults returns the number of faults that were done.
func (t *Tally) Faults() int { return int(t.faults.Load()) }

// Summary writes in a few lines what passed and what was done, at most 15 rules. It names the rules in force that did nothing.
func (t *Tally) Summary(w io.Writer, inForce []fault.Status) {
	fmt.Fprintf(w, "chaos proxy: %s to the server, %d to the agent, %s done\n",
		countText(t.toServer.Load(), "message"), t.toClient.Load(), countText(t.faults.Load(), "fault"))
	t.rules.mu.Lock()
	defer t.rules.mu.Unlock()
	var idle []string
	for _, s := range inForce {
		key := s.Rule.Name + " " + s.Rule.Fault
		if !slices.Contains(t.rules.names, key) {
			idle = append(idle, fmt.Sprintf("%s (messages looked at: %d)", key, s.Matched))
		}
	}
	const most = 15
	for i, name := range t.rules.names {
		if i == most {
			fmt.Fprintf(w, "  … and %d rules more\n", len(t.rules.names)-most)
			break
		}
		fmt.Fprintf(w, "  %-28s %s\n", name, countText(int64(t.rules.count[name]), "time"))
	}
	if len(idle) > 0 {
		fmt.Fprintf(w, "  never happened: %s\n", strings.Join(idle[:min(len(idle), most)], ", "))
	}
}

// countText writes a number with its noun, whose plural ends in s.
func countText(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
