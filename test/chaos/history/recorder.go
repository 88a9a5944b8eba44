package history

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// chunkSize is how many events are kept together: a record of millions is never copied because it grows.
const chunkSize = 4096

// Recorder takes down what happens. It is safe for concurrent use, blocks on nothing and costs some 100 ns per event.
type Recorder struct {
	plan scenario.Plan
	now  func() time.Duration

	mu       sync.Mutex
	returned []Event // what History has returned: it is only appended to
	chunks   [][]Event
	count    int
}

// NewRecorder makes an empty record of a run of plan. now says how long the run has lasted; nil if every event brings its
// own time.
func NewRecorder(plan scenario.Plan, now func() time.Duration) *Recorder {
	return &Recorder{plan: plan, now: now}
}

// Add records e. An event without a time gets that of the recorder's clock, read in the order in which events are recorded, so
// that an event never has a time before those that were recorded earlier by the same clock.
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

// Len is how many events have been recorded.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// History is what has been recorded so far. Whoever holds it is not disturbed by what is recorded later.
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
