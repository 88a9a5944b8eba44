package transports

import (
	"bytes"
	"io"
	"sync"
)

// messageBuffer collects a message whose size is not known beforehand. Beyond its first piece it does so in a buffer that is used
// again, so that a message below 128 KiB costs one allocation of its size: growing by steps costs four times the
// message, and at 64 KiB the garbage of that cost more than the call. The zero value is empty.
type messageBuffer struct {
	b      []byte
	pooled *[]byte // the buffer that b is in, nil if b is an array of its own

	reservation memoryReservation // arrays of its own beyond the first piece
}

// pooledBufferSize is the size of a shared buffer.
const pooledBufferSize = 128 << 10

var messageBuffers = sync.Pool{New: func() any { b := make([]byte, 0, pooledBufferSize); return &b }}

// reserveBytes makes room for need bytes altogether. What does not fit into a shared buffer is doubled, up to most if that is
// enough. It reports false if the server's share of the memory has no room for that.
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

// makeRoom makes room for p behind what is there. The first piece is most often the only one, and gets an array of its size.
func (g *messageBuffer) makeRoom(p []byte, limit int) bool {
	return len(g.b) == 0 || g.reserveBytes(len(g.b)+len(p), limit)
}

// readFirstPiece reads the first piece of src, up to 4 KiB. It gives the error with which src ended meanwhile, io.EOF among them.
func (g *messageBuffer) readFirstPiece(src io.Reader) (err error) {
	first := eventBuffers.Get().(*[]byte)
	defer eventBuffers.Put(first)
	n := 0
	for n < len(*first) && err == nil {
		var more int
		more, err = src.Read((*first)[n:])
		n += more
	}
	if err == nil { // there is more
		g.reserveBytes(n+1, n+1) // it fits into a shared buffer
	}
	g.b = append(g.b, (*first)[:n]...)
	return err
}

// takeMessage gives what was collected, which belongs to the caller, and empties g.
func (g *messageBuffer) takeMessage() []byte {
	b := g.b
	if g.pooled != nil {
		b = bytes.Clone(b)
	}
	g.releaseBuffer()
	return b
}

// releaseBuffer empties g.
func (g *messageBuffer) releaseBuffer() {
	if g.pooled != nil {
		messageBuffers.Put(g.pooled)
	}
	g.b, g.pooled = nil, nil
	g.reservation.releaseAll()
}
