package check

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Verdict is what one finding says.
type Verdict string

const (
	// Pass: seen as it should be.
	Pass Verdict = "pass"
	// Warn: it works, and will cost somebody something.
	Warn Verdict = "warn"
	// Fail: it breaks clients, leaves something behind, or is against a MUST of the specification.
	Fail Verdict = "fail"
	// NotTried: nothing was seen; the text begins with the reason.
	NotTried Verdict = "not tried"
)

// Finding is one thing that was looked at.
type Finding struct {
	// ID is a word for programs: "start", "shutdown", "call read_file".
	ID string `json:"id"`
	// Title is the same for people.
	Title   string  `json:"title"`
	Verdict Verdict `json:"verdict"`
	// Text is one sentence, without a final full stop: what was seen. Fix is what to do about it, or empty.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Measured are the numbers of the text, by name with the unit at its end: "coldMs", "stderrBytes".
	Measured map[string]float64 `json:"measured,omitempty"`
}

// Server is what was found about one server.
type Server struct {
	Name      string                 `json:"name"`
	Transport messages.TransportKind `json:"transport,omitempty"`
	// Says is the server's own name and version.
	Says            string        `json:"says,omitempty"`
	Era             messages.Era  `json:"era,omitempty"`
	ProtocolVersion string        `json:"protocolVersion,omitempty"`
	Findings        []Finding     `json:"findings"`
	Took            time.Duration `json:"tookNs"`
}

// Report is what was found about all of them, in the order of their names.
type Report struct {
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"tookNs"`
	Servers []Server      `json:"servers"`
}

// Count is how many findings of a server have a verdict.
func (s Server) Count(v Verdict) (n int) {
	for _, f := range s.Findings {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

// Verdict is the worst of a server's findings, NotTried if nothing at all was seen.
func (s Server) Verdict() Verdict {
	for _, v := range []Verdict{Fail, Warn, Pass} {
		if s.Count(v) > 0 {
			return v
		}
	}
	return NotTried
}

// Verdict is Fail if a server fails, NotTried if nothing could be concluded about any server or about one that was asked
// for, else Pass: warnings are allowed.
func (r Report) Verdict() Verdict {
	verdict := NotTried
	for _, s := range r.Servers {
		switch s.Verdict() {
		case Fail:
			return Fail
		case Pass, Warn:
			verdict = Pass
		case NotTried:
		}
	}
	return verdict
}

// findingOrder is the order in which findings are told: that of the life of a connection.
var findingOrder = []string{
	"start", "protocol", "handshake", "probe", "noise", "stderr", "tools", "list", "pages", "ping", "unknown-method",
	"malformed", "second-initialize", "parallel", "big-message", "call", "call-parallel", "cancel", "restart",
	"list-restart", "session", "session-end", "stream", "origin", "content-type", "version-header", "tls", "shutdown",
	"signal", "children",
}

// sortFindings brings findings into that order; those of one kind stay as they were.
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
