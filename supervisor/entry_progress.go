package supervisor

import (
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// progressEvery is the least time between two CallProgress messages of one call: a server may report thousands a second.
const progressEvery = 100 * time.Millisecond

// progressSender sends an actor the progress of a call, at most once in progressEvery. Reports in between are replaced by the
// newest one, which is always sent.
type progressSender struct {
	// post sends to the caller's actor. It is called with mu held and must not wait.
	post func(*messages.CallProgress)
	// id is the call id that the caller chose.
	id string

	// mu guards the fields below.
	mu sync.Mutex
	// lastSent is the time of the newest message; zero before the first.
	lastSent time.Time
	// next is the newest report that waits for timer; nil if none does. ended is set when the call has: nothing is sent after it.
	next  *messages.CallProgress
	timer *time.Timer
	ended bool
}

// addProgress runs on the connection's goroutine: it sends at once or leaves the report for the timer, and never waits.
func (p *progressSender) addProgress(v messages.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A newer report replaces one that still waits.
	p.next = &messages.CallProgress{CallId: p.id, Progress: v.Progress, Total: v.Total, Message: v.Message}
	if p.ended || p.timer != nil {
		return
	}
	// The first report is sent at once; later ones keep their distance.
	if wait := progressEvery - time.Since(p.lastSent); !p.lastSent.IsZero() && wait > 0 {
		p.timer = time.AfterFunc(wait, p.flushDue)
		return
	}
	p.sendLatest()
}

// flushDue runs in the timer's goroutine when the distance to the last message is kept. It may meet the end of the call.
func (p *progressSender) flushDue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.ended {
		p.sendLatest()
	}
}

// sendLatest sends the report that waits. The caller holds mu.
func (p *progressSender) sendLatest() {
	if p.next != nil {
		p.post(p.next)
		p.next, p.lastSent = nil, time.Now()
	}
}

// endProgress sends the report that still waits, and stops all that would come after it.
func (p *progressSender) endProgress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.sendLatest()
	p.ended = true
}
