package load

import (
	"math"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A Moment is the point of a call at which its caller gives it up.
type Moment uint8

const (
	// Stays: the caller waits for the end.
	Stays Moment = iota
	// Later: when some time has passed since it began.
	Later
	// WhenReceived: when its server has received it.
	WhenReceived
	// WhenAnswered: when its server answers it. The answer and the giving up race, so that either may be the end.
	WhenAnswered
)

// GivenUp returns the moment at which the caller gives the call up, by the seed of the run, and for Later the time since its planned
// start: from 0 to 20 s, as often below a tenth of a second, when a call may wait to be sent, as above it.
func (c Call) GivenUp(seed uint64) (Moment, time.Duration) {
	if !(c.Stream.Cancel > 0) || c.Stream.Read != "" {
		return Stays, 0
	}
	r := scenario.Rand(seed, "give up "+c.ID)
	if r.Float64() >= c.Stream.Cancel {
		return Stays, 0
	}
	switch p := r.Float64(); {
	case p < 0.2:
		return WhenReceived, 0
	case p < 0.35:
		return WhenAnswered, 0
	case p < 0.4:
		return Later, 0
	}
	return Later, time.Duration(float64(time.Millisecond) * math.Pow(20_000, r.Float64()))
}
