package transports

import (
	"bytes"
	"io"
	"sync"
)

// messageBuffer collects a message whose size is not known beforehand. Beyond its first piece it does so in a pooled buffer, so
// that a message below 128 KiB costs one allocation of its size: growing by steps costs four times the message, and at 64 KiB the
// garbage of that cost more than the call. The zero value is empty. One goroutine uses it.
type messageBuffer struct {
	b []byte
	// pooled is the buffer that b is in, nil if b is an array of its own.
	pooled *[]byte

	// reservation counts the arrays that are too large for the pool.
	reservation memoryReservation
}

// pooledBufferSize is the capacity of a pooled buffer.
const pooledBufferSize = 128 << 10

// messageBuffers has the pooled buffers. They never grow, because larger messages get arrays of their own.
var messageBuffers = sync.Pool{New: func() any { b := make([]byte, 0, pooledBufferSize); return &b }}

// pieceBuffers has the buffers into which the first piece of a message is read, of 4 KiB each.
var pieceBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}

// reserveBytes makes room for need bytes altogether. An array that is too large for the pool at least doubles, but does not grow
// beyond limit for that. It reports false if the server's share of the memory has no room; the bytes collected so far stay.
func (g *messageBuffer) reserveBytes(need, limit int) bool {
	if need <= cap(g.b) {
		return true
	}
	if g.pooled == nil {
		shared := messageBuffers.Get().(*[]byte)
		if need <= cap(*shared) {
			g.b, g.pooled = append((*shared)[:0], g.b...), shared
			return true
		}
		messageBuffers.Put(shared)
	}
	// The old array is counted until the copy is made, because both exist at that moment.
	room := max(need, min(2*cap(g.b), limit))
	before := g.reservation.reserved
	if !g.reservation.reserveMore(int64(room)) {
		return false
	}
	bigger := make([]byte, len(g.b), room)
	copy(bigger, g.b)
	if g.pooled != nil {
		messageBuffers.Put(g.pooled)
	}
	g.b, g.pooled = bigger, nil
	g.reservation.releaseBytes(before)
	return true
}

// makeRoom makes room for p behind the collected bytes. The first piece is most often the only one; append gives it an array of
// its size, without a pooled buffer.
func (g *messageBuffer) makeRoom(p []byte, limit int) bool {
	return len(g.b) == 0 || g.reserveBytes(len(g.b)+len(p), limit)
}

// readFirstPiece reads the first piece of src, up to 4 KiB, and stores it. It returns the error with which src ended meanwhile,
// io.EOF among them, and nil if there is more.
func (g *messageBuffer) readFirstPiece(src io.Reader) (err error) {
	first := pieceBuffers.Get().(*[]byte)
	defer pieceBuffers.Put(first)
	n := 0
	for n < len(*first) && err == nil {
		var more int
		more, err = src.Read((*first)[n:])
		n += more
	}
	if err == nil { // there is more
		// This takes a pooled buffer, which always has the room, so that the result need not be checked.
		g.reserveBytes(n+1, n+1)
	}
	g.b = append(g.b, (*first)[:n]...)
	return err
}

// takeMessage returns the collected message, which belongs to the caller, and empties g. A pooled buffer goes back to its pool,
// so that the message is copied out of it.
func (g *messageBuffer) takeMessage() []byte {
	b := g.b
	if g.pooled != nil {
		b = bytes.Clone(b)
	}
	g.releaseBuffer()
	return b
}

// releaseBuffer empties g, and gives its buffer and its reserved memory back.
func (g *messageBuffer) releaseBuffer() {
	if g.pooled != nil {
		messageBuffers.Put(g.pooled)
	}
	g.b, g.pooled = nil, nil
	g.reservation.releaseAll()
}
