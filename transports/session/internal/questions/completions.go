package questions

import "sync"

// Completions are the URL elicitations that requests wait for, by the server's id of the elicitation. All methods are safe for
// concurrent use; no other lock is taken under mu.
type Completions struct {
	mu   sync.Mutex
	byID map[string]*completion
}

// A completion is shared by the requests that wait for the same elicitation. completions.mu guards it.
type completion struct {
	waiting int  // number of requests that wait; the entry goes at 0
	closed  bool // done is closed
	done    chan struct{}
}

// Watch returns a channel for each elicitation, which is closed when the server announces that the person is done. The caller
// must call forget when it does not wait any more, or the entries stay for the life of the session.
func (c *Completions) Watch(elicitations []URLElicitation) (done []<-chan struct{}, forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = make(map[string]*completion)
	}
	// Several requests may wait for one elicitation: they share the channel.
	for _, p := range elicitations {
		v := c.byID[p.ID]
		if v == nil {
			v = &completion{done: make(chan struct{})}
			c.byID[p.ID] = v
		}
		v.waiting++
		done = append(done, v.done)
	}
	return done, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range elicitations {
			if v := c.byID[p.ID]; v != nil {
				// The last one that leaves removes the entry; a later notification then finds none and is ignored.
				if v.waiting--; v.waiting == 0 {
					delete(c.byID, p.ID)
				}
			}
		}
	}
}

// Complete wakes the requests that wait for an elicitation.
//
// 2025-11-25: "Clients MUST ignore notifications referencing unknown or already-completed IDs".
func (c *Completions) Complete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.byID[id]; v != nil && !v.closed {
		v.closed = true
		close(v.done)
	}
}
