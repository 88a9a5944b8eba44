package remote

import "sync"

// outbox counts what was given to the library for each address and not yet written, since the library's own queues have
// no bound. It is safe for concurrent use.
type outbox struct {
	mu      sync.Mutex
	waiting map[string]*unread
	bytes   int
}

type unread struct{ messages, bytes int }

func newOutbox() *outbox { return &outbox{waiting: map[string]*unread{}} }

// reserve takes room for one message; false if too much waits already. most bounds the messages that wait for the address:
// maxUnread, or fewer for events of a watch.
func (o *outbox) reserve(address string, size, most int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.waiting[address]
	if u == nil {
		u = &unread{}
		o.waiting[address] = u
	}
	if u.messages > 0 && (u.messages >= most || u.bytes+size > maxUnreadBytes || o.bytes+size > maxAllUnreadBytes) {
		return false
	}
	u.messages++
	u.bytes += size
	o.bytes += size
	return true
}

// sent gives back the room of messages that were written.
func (o *outbox) sent(address string, messages, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.waiting[address]
	if u == nil {
		return
	}
	bytes = min(bytes, u.bytes)
	u.messages, u.bytes, o.bytes = max(0, u.messages-messages), u.bytes-bytes, o.bytes-bytes
	if u.messages == 0 {
		o.bytes -= u.bytes
		delete(o.waiting, address)
	}
}

// drop is for an address whose connection ended, with what waited for it.
func (o *outbox) drop(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u := o.waiting[address]; u != nil {
		o.bytes -= u.bytes
		delete(o.waiting, address)
	}
}
