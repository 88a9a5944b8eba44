package transports

// oversizedMessage measures a message that was not kept, and keeps its first and last bytes: the id of a JSON-RPC message stands
// in one of them.
type oversizedMessage struct {
	// head and tail have at most keptEndSize bytes each, and overlap for a short message.
	head, tail []byte
	size       int64
	// overBudget is true if the message was not over the limit, but the server's share of the memory had no room for it.
	overBudget bool
}

// keptEndSize is the number of bytes kept of each end of an oversized message: 4 KiB hold the envelope around any result.
const keptEndSize = 4 << 10

// addBytes measures the next bytes, fills head, and moves tail on so that it always has the last bytes.
func (o *oversizedMessage) addBytes(p []byte) {
	o.size += int64(len(p))
	if room := keptEndSize - len(o.head); room > 0 {
		o.head = append(o.head, p[:min(len(p), room)]...)
	}
	if len(p) >= keptEndSize {
		o.tail = append(o.tail[:0], p[len(p)-keptEndSize:]...)
		return
	}
	if over := len(o.tail) + len(p) - keptEndSize; over > 0 {
		o.tail = o.tail[:copy(o.tail, o.tail[over:])]
	}
	o.tail = append(o.tail, p...)
}

// skipBound returns how many bytes of one oversized message are read before its connection is given up: 16 limits, and at least
// 64 MiB. Dropping them costs time and traffic, and a body without an end never ends by itself.
func skipBound(limit int64) int64 { return max(16*limit, 64<<20) }
