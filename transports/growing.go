package transports

import (
	"bytes"
	"io"
	"sync"
)

// growing collects a message whose size is not known beforehand. Beyond its first piece it does so in a buffer that is used
// again, so that a message below 128 KiB costs one allocation of its size: growing by steps costs four times the
// message, and at 64 KiB the garbage of that cost more than the call. The zero value is empty.
type growing struct {
	b    []byte
	from *[]byte // the buffer that b is in, nil if b is an array of its own

	holding holding // arrays of its own beyond the first piece
}

// sharedRoom is the size of a shared buffer.
const sharedRoom = 128 << 10

var roomy = sync.Pool{New: func() any { b := make([]byte, 0, sharedRoom); return &b }}

// reserve makes room for need bytes altogether. What does not fit into a shared buffer is doubled, up to most if that is
// enough. It reports false if the server's share of the memory has no room for that.
func (g *growing) reserve(need, most int) bool {
	if need <= cap(g.b) {
		return true
	}
	if g.from == nil {
		shared := roomy.Get().(*[]byte)
		if need <= cap(*shared) {
			g.b, g.from = append((*shared)[:0], g.b...), shared
			return true
		}
		roomy.Put(shared)
	}
	room := max(need, min(2*cap(g.b), most))
	before := g.holding.n
	if !g.holding.more(int64(room)) {
		return false
	}
	bigger := make([]byte, len(g.b), room)
	copy(bigger, g.b)
	if g.from != nil {
		roomy.Put(g.from)
	}
	g.b, g.from = bigger, nil
	g.holding.less(before)
	return true
}

// room makes room for p behind what is there. The first piece is most often the only one, and gets an array of its size.
func (g *growing) room(p []byte, most int) bool {
	return len(g.b) == 0 || g.reserve(len(g.b)+len(p), most)
}

// begin reads the first piece of src, up to 4 KiB. It gives the error with which src ended meanwhile, io.EOF among them.
func (g *growing) begin(src io.Reader) (err error) {
	first := eventBuffers.Get().(*[]byte)
	defer eventBuffers.Put(first)
	n := 0
	for n < len(*first) && err == nil {
		var more int
		more, err = src.Read((*first)[n:])
		n += more
	}
	if err == nil { // there is more
		g.reserve(n+1, n+1) // it fits into a shared buffer
	}
	g.b = append(g.b, (*first)[:n]...)
	return err
}

// take gives what was collected, which belongs to the caller, and empties g.
func (g *growing) take() []byte {
	b := g.b
	if g.from != nil {
		b = bytes.Clone(b)
	}
	g.drop()
	return b
}

// drop empties g.
func (g *growing) drop() {
	if g.from != nil {
		roomy.Put(g.from)
	}
	g.b, g.from = nil, nil
	g.holding.drop()
}
