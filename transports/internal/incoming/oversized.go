// Package incoming bounds what a server can make this process hold and do: the memory of a message that is being received
// ([Reservation], [Buffer], [ReadBody]), what is kept of a message that is not ([Oversized]), and the pauses of a server that
// causes unasked work ([TakePause]).
//
// # How it fits
//
//	bytes of a server ──> lines, eventstream or ReadBody ── Reservation ──> the server's share (package budget)
//	                          └── a whole message, or the ends of one that is not kept ──> Sink
//
// # Guarantees
//
// A message that is handed on belongs to its receiver and lies in no pooled buffer; the memory that was reserved for it is given
// back at that moment. What does not fit is measured and its ends are kept, so that the request that it answers can still be found.
// A wait for memory lasts 2 s at most, and is over earlier when the connection ends.
//
// # Not promised
//
// Small messages are not counted: what fits into the pooled buffers (128 KiB) belongs to the process and not to a server.
package incoming

// Oversized measures a message that was not kept, and keeps its first and last bytes: the id of a JSON-RPC message stands in one
// of them.
type Oversized struct {
	// Head and Tail have at most KeptEndSize bytes each, and overlap for a short message.
	Head, Tail []byte
	Size       int64
	// OverBudget is true if the message was not over the limit, but the server's share of the memory had no room for it.
	OverBudget bool
}

// KeptEndSize is the number of bytes kept of each end of an oversized message: 4 KiB hold the envelope around any result.
const KeptEndSize = 4 << 10

// AddBytes measures the next bytes, fills head, and moves tail on so that it always has the last bytes.
func (o *Oversized) AddBytes(p []byte) {
	o.Size += int64(len(p))
	if room := KeptEndSize - len(o.Head); room > 0 {
		o.Head = append(o.Head, p[:min(len(p), room)]...)
	}
	if len(p) >= KeptEndSize {
		o.Tail = append(o.Tail[:0], p[len(p)-KeptEndSize:]...)
		return
	}
	if over := len(o.Tail) + len(p) - KeptEndSize; over > 0 {
		o.Tail = o.Tail[:copy(o.Tail, o.Tail[over:])]
	}
	o.Tail = append(o.Tail, p...)
}

// SkipBound returns how many bytes of one oversized message are read before its connection is given up: 16 limits, and at least
// 64 MiB. Dropping them costs time and traffic, and a body without an end never ends by itself.
func SkipBound(limit int64) int64 { return max(16*limit, 64<<20) }
