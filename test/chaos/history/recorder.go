package history

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// chunkSize is the number of events that are stored together, so that a record of millions of events is never copied while it
// grows.
const chunkSize = 4096

// Recorder records events. It is safe for concurrent use, and adding an event takes about 100 ns.
type Recorder struct {
	plan scenario.Plan
	now  func() time.Duration

	// mu guards everything below.
	mu sync.Mutex
	// returned holds the events that History has returned; it is only appended to.
	returned []Event
	chunks   [][]Event
	count    int
}

// NewRecorder makes an empty record of a run of plan. now returns the time since the start of the run; nil means that every
// event brings its own time.
func NewRecorder(plan scenario.Plan, now func() time.Duration) *Recorder {
	return &Recorder{plan: plan, now: now}
}

// Add records e. An event without a time gets that of the recorder's clock, read under the lock, so that its time is never
// before that of an event recorded earlier by the same clock.
func (r *Recorder) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.T == 0 && r.now != nil {
		e.T = r.now()
	}
	r.count++
	e.Order = r.count
	if n := len(r.chunks); n == 0 || len(r.chunks[n-1]) == chunkSize {
		r.chunks = append(r.chunks, make([]Event, 0, chunkSize))
	}
	last := &r.chunks[len(r.chunks)-1]
	*last = append(*last, e)
}

// Len returns the number of events recorded so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// History returns what has been recorded so far. Events that are added later do not change what it returned.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.chunks) > 0 {
		all := make([]Event, 0, r.count)
		all = append(all, r.returned...)
		for i, c := range r.chunks {
			all = append(all, c...)
			r.chunks[i] = nil
		}
		r.returned, r.chunks = all, nil
	}
	return &History{Plan: r.plan, Events: r.returned[:len(r.returned):len(r.returned)]}
}
