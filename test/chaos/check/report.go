package check

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Verdict is the result of one finding.
type Verdict string

const (
	// Pass means that the server does what it should.
	Pass Verdict = "pass"
	// Warn means that it works, and costs its users something.
	Warn Verdict = "warn"
	// Fail means that it breaks clients, leaves something behind, or violates a MUST of the specification.
	Fail Verdict = "fail"
	// NotTried means that nothing was checked; the text begins with the reason.
	NotTried Verdict = "not tried"
)

// Finding is the result of one check.
type Finding struct {
	// ID identifies the finding for programs: "start", "shutdown", "call read_file".
	ID string `json:"id"`
	// Title names the check for people.
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	// Text is one sentence without a final full stop that says what was seen. Fix says what to do about it, empty if nothing is
	// needed.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Measured holds the numbers of the text, by a name that ends in the unit: "coldMs", "stderrBytes".
	Measured map[string]float64 `json:"measured,omitempty"`
}

// Server holds the findings about one server.
type Server struct {
	Name      string                 `json:"name"`
	Transport messages.TransportKind `json:"transport,omitempty"`
	// Says is the name and version that the server gives of itself.
	Says            string        `json:"says,omitempty"`
	Era             messages.Era  `json:"era,omitempty"`
	ProtocolVersion string        `json:"protocolVersion,omitempty"`
	Findings        []Finding     `json:"findings"`
	Took            time.Duration `json:"tookNs"`
}

// Report holds the findings about all servers, in the order of their names.
type Report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNs"`
	Servers []Server      `json:"servers"`
}

// Count returns the number of findings with a verdict.
func (s Server) Count(v Verdict) (n int) {
	for _, f := range s.Findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// Verdict returns the worst of the findings, NotTried if nothing was checked.
func (s Server) Verdict() Verdict {
	for _, v := range []Verdict{Fail, Warn, Pass} {
		if s.Count(v) > 0 {
			return v
		}
	}
	return NotTried
}

// Verdict returns Fail if any server fails, Pass if at least one was checked and none fails (warnings are allowed), and
// NotTried if none could be checked.
func (r Report) Verdict() Verdict {
	verdict := NotTried
	for _, s := range r.Servers {
		switch s.Verdict() {
		case Fail:
			return Fail
		// A server that was not tried leaves the verdict to the others.
		case Pass, Warn:
			verdict = Pass
		case NotTried:
		}
	}
	return verdict
}

// findingOrder is the order in which findings are printed: that of the life of a connection.
var findingOrder = []string{
	"start", "protocol", "handshake", "probe", "noise", "stderr", "tools", "list", "pages", "ping", "unknown-method",
	"malformed", "second-initialize", "parallel", "big-message", "call", "call-parallel", "cancel", "restart",
	"list-restart", "session", "session-end", "stream", "origin", "content-type", "version-header", "tls", "shutdown",
	"signal", "children",
}

// sortFindings sorts findings by findingOrder; findings of one kind keep their order.
func sortFindings(all []Finding) []Finding {
	rank := func(f Finding) int {
		kind, _, _ := strings.Cut(f.ID, " ")
		if i := slices.Index(findingOrder, kind); i >= 0 {
			return i
		}
		return len(findingOrder)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return rank(a) - rank(b) })
	return all
}
