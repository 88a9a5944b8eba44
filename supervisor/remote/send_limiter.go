package remote

import "sync"

// sendLimiter counts what was given to the library for each address and not yet written, since the library's own queues have
// no bound. It is safe for concurrent use.
type sendLimiter struct {
	mu     sync.Mutex
	unread map[string]*unreadCount
	bytes  int
}

type unreadCount struct{ messages, bytes int }

func newSendLimiter() *sendLimiter { return &sendLimiter{unread: map[string]*unreadCount{}} }

// reserve takes room for one message; false if too much waits already. most bounds the messages that wait for the address:
// maxUnread, or fewer for events of a watch.
func (o *sendLimiter) reserve(address string, size, maxMessages int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.unread[address]
	if u == nil {
		u = &unreadCount{}
		o.unread[address] = u
	}
	if u.messages > 0 && (u.messages >= maxMessages || u.bytes+size > maxUnreadBytes || o.bytes+size > maxAllUnreadBytes) {
		return false
	}
	u.messages++
	u.bytes += size
	o.bytes += size
	return true
}

// release gives back the room of messages that were written.
func (o *sendLimiter) release(address string, messages, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.unread[address]
	if u == nil {
		return
	}
	bytes = min(bytes, u.bytes)
	u.messages, u.bytes, o.bytes = max(0, u.messages-messages), u.bytes-bytes, o.bytes-bytes
	if u.messages == 0 {
		o.bytes -= u.bytes
		delete(o.unread, address)
	}
}

// releaseAll is for an address whose connection ended, with what waited for it.
func (o *sendLimiter) releaseAll(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u := o.unread[address]; u != nil {
		o.bytes -= u.bytes
		delete(o.unread, address)
	}
}
