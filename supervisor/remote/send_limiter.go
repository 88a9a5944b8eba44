package remote

import "sync"

// sendLimiter counts the messages that were given to the library for each address and not yet written, because the
// library's own queues have no bound. It holds no message itself. It is safe for concurrent use.
type sendLimiter struct {
	mu     sync.Mutex
	unread map[string]*unreadCount // by address; no entry if nothing waits
	bytes  int                     // sum of all addresses
}

// unreadCount counts the messages of one address that are not written yet.
type unreadCount struct{ messages, bytes int }

func newSendLimiter() *sendLimiter { return &sendLimiter{unread: map[string]*unreadCount{}} }

// reserve takes room for one message of size bytes; false if too much waits already. maxMessages bounds the messages
// that wait for the address: maxUnread, or fewer for the events of a watch. The first message for an address always
// finds room.
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

// release frees the room of messages that were written. More than was reserved is cut off, because a connection's end
// may have freed it already.
func (o *sendLimiter) release(address string, messages, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.unread[address]
	if u == nil {
		return
	}
	bytes = min(bytes, u.bytes)
	u.messages, u.bytes, o.bytes = max(0, u.messages-messages), u.bytes-bytes, o.bytes-bytes
	if u.messages == 0 { // nothing waits, so rounding must not be kept
		o.bytes -= u.bytes
		delete(o.unread, address)
	}
}

// releaseAll frees the room of an address whose connection ended: the library has dropped its queue.
func (o *sendLimiter) releaseAll(address string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if u := o.unread[address]; u != nil {
		o.bytes -= u.bytes
		delete(o.unread, address)
	}
}
