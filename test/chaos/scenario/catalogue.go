package scenario

import (
	"slices"
	"strings"
)

// faultKind is what a plan needs to know of a fault.
type faultKind struct {
	name             string
	instant, machine bool
}

const catalogue = `crash! crash-loop exit-after-list hang-start slow-start silent-discover die-on-discover noise stderr-flood huge-line
endless-line half-line duplicate-response unknown-response late-response ignore-eof ignore-term grandchild missing-binary stop deaf
exhausted hang-call ignore-cancel endless-progress cursor-loop empty-cursor list-changed! list-storm change-during-list quiet-change
duplicate-names long-names bad-schema bad-output tool-error die-mid-call answer-and-die modern-breach era-flip wrong-version latency
big-result lose-session! cut-stream half-open refuse reset! black-hole throttle unauthorized rotate-token! forbidden redirect
silent-delete server-error wrong-content-type slow-drip truncate stale-session-400 rug-pull! control-characters leak-canary sleep
partition`

func faultNames() []string {
	names := strings.Fields(catalogue)
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], "!")
	}
	return names
}

func faultNamed(name string) (faultKind, bool) {
	i := slices.Index(faultNames(), name)
	if i < 0 {
		return faultKind{}, false
	}
	return faultKind{name, strings.HasSuffix(strings.Fields(catalogue)[i], "!"), name == "sleep"}, true
}

// refuses says why the fault cannot happen to a server.
func (faultKind) refuses(Fault, Server, Tier) error { return nil }

// with are the parameters of one occurrence.
func (faultKind) with(given map[string]string) map[string]string { return clone(given) }
