package proxy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// ruleCounts are the faults that were done, in the order of their first time.
type ruleCounts struct {
	mu    sync.Mutex
	names []string // "r1 latency"
	count map[string]int
}

// Hit counts a fault. Let a control Watch it.
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

// Faults is how many were done.
func (t *Tally) Faults() int { return int(t.faults.Load()) }

// Summary writes what passed and what was done, in a few lines. Rules that are in force and did nothing are named.
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

func countText(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
