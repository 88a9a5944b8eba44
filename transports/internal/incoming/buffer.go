package incoming

import (
	"bytes"
	"io"
	"sync"
)

// Buffer collects a message whose size is not known beforehand. Beyond its first piece it does so in a pooled buffer, so that a
// message below 128 KiB costs one allocation of its size: growing by steps costs four times the message, and at 64 KiB the
// garbage of that cost more than the call. The zero value is empty. One goroutine uses it.
type Buffer struct {
	Bytes []byte
	// pooled is the buffer that b is in, nil if b is an array of its own.
	pooled *[]byte

	// Reservation counts the arrays that are too large for the pool.
	Reservation Reservation
}

// pooledBufferSize is the capacity of a pooled buffer.
const pooledBufferSize = 128 << 10

// messageBuffers has the pooled buffers. They never grow, because larger messages get arrays of their own.
var messageBuffers = sync.Pool{New: func() any { b := make([]byte, 0, pooledBufferSize); return &b }}

// pieceBuffers has the buffers into which the first piece of a message is read, of 4 KiB each.
var pieceBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}

// reserveBytes makes room for need bytes altogether. An array that is too large for the pool at least doubles, but does not grow
// beyond limit for that. It reports false if the server's share of the memory has no room; the bytes collected so far stay.
func (g *Buffer) reserveBytes(need, limit int) bool {
	if need <= cap(g.Bytes) {
		return true
	}
	if g.pooled == nil {
		shared := messageBuffers.Get().(*[]byte)
		if need <= cap(*shared) {
			g.Bytes, g.pooled = append((*shared)[:0], g.Bytes...), shared
			return true
		}
		messageBuffers.Put(shared)
	}
	// The old array is counted until the copy is made, because both exist at that moment.
	room := max(need, min(2*cap(g.Bytes), limit))
	before := g.Reservation.reserved
	if !g.Reservation.ReserveMore(int64(room)) {
		return false
	}
	bigger := make([]byte, len(g.Bytes), room)
	copy(bigger, g.Bytes)
	if g.pooled != nil {
		messageBuffers.Put(g.pooled)
	}
	g.Bytes, g.pooled = bigger, nil
	g.Reservation.releaseBytes(before)
	return true
}

// MakeRoom makes room for p behind the collected bytes. The first piece is most often the only one; append gives it an array of
// its size, without a pooled buffer.
func (g *Buffer) MakeRoom(p []byte, limit int) bool {
	return len(g.Bytes) == 0 || g.reserveBytes(len(g.Bytes)+len(p), limit)
}

// readFirstPiece reads the first piece of src, up to 4 KiB, and stores it. It returns the error with which src ended meanwhile,
// io.EOF among them, and nil if there is more.
func (g *Buffer) readFirstPiece(src io.Reader) (err error) {
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
	g.Bytes = append(g.Bytes, (*first)[:n]...)
	return err
}

// TakeMessage returns the collected message, which belongs to the caller, and empties g. A pooled buffer goes back to its pool,
// so that the message is copied out of it.
func (g *Buffer) TakeMessage() []byte {
	b := g.Bytes
	if g.pooled != nil {
		b = bytes.Clone(b)
	}
	g.ReleaseBuffer()
	return b
}

// ReleaseBuffer empties g, and gives its buffer and its reserved memory back.
func (g *Buffer) ReleaseBuffer() {
	if g.pooled != nil {
		messageBuffers.Put(g.pooled)
	}
	g.Bytes, g.pooled = nil, nil
	g.Reservation.ReleaseAll()
}
