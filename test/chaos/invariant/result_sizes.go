package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// resultSizes are the sizes at most that the gateway expects of the results of a server's tools, by what it got before: a larger one counts at once,
// smaller ones by and by, an eighth of the difference each.
type resultSizes struct {
	c      *checker
	server string
	known  map[string]int
}

// expectedOf returns the size that the gateway expects of a result of a tool.
func (s *resultSizes) expectedOf(tool string) int {
	if size, ok := s.known[tool]; ok {
		return max(size, leastResult)
	}
	return unknownResult
}

// noteCall takes note of a call that begins, or ends: with it the gateway knows the size of its result, if it has one. A result that a fault may have
// padded counts from the begin of its call.
func (s *resultSizes) noteCall(call *history.CallRecord, begins bool) {
	if len(call.Ends) == 0 || s.c.x.Event(call.Ends[0]).Outcome != messages.OutcomeResult {
		return
	}
	begin, end := s.c.x.Event(call.Begin), s.c.x.Event(call.Ends[0])
	size := s.paddedTo(begin.T, end.T)
	known, ok := s.known[begin.Tool]
	switch {
	case size > 0:
		s.known[begin.Tool] = max(known, size)
	case begins:
	case ok:
		s.known[begin.Tool] = known - (known-leastResult)/8
	default:
		s.known[begin.Tool] = leastResult
	}
}

// paddedTo returns the largest size to which a fault may have padded the result of a call, 0 without such a fault.
func (s *resultSizes) paddedTo(from, to time.Duration) (size int) {
	for _, f := range s.c.plan.Faults {
		if f.Server != s.server || f.Begin > to || f.End < from || f.Fault != "big-result" && f.Fault != "huge-line" {
			continue
		}
		if kind, ok := fault.Lookup(f.Fault); ok {
			size = max(size, kind.With(fault.Sim, f.With).Int("size")+leastResult)
		}
	}
	return size
}
