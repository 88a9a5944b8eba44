package websocket

import (
	"context"
	"sync"

	"github.com/coder/websocket"
)

// controlFrames has the control frames that are due: at most one ping and one pong.
type controlFrames struct {
	// mu guards both fields.
	mu   sync.Mutex
	pong []byte // payload of the pong that is due, nil for none
	ping bool   // a ping is due
}

// queuePong makes a pong with that payload due; it replaces one that is still waiting.
//
// RFC 6455, 5.5.3: "If an endpoint receives a Ping frame and has not yet sent Pong frame(s) in response to previous
// Ping frame(s), the endpoint MAY elect to send a Pong frame for only the most recently processed Ping frame."
func (c *connection) queuePong(payload []byte) {
	c.frames.mu.Lock()
	c.frames.pong = append([]byte{}, payload...)
	c.frames.mu.Unlock()
	c.out.Wake()
}

// queuePing makes a ping due.
func (c *connection) queuePing() {
	c.frames.mu.Lock()
	c.frames.ping = true
	c.frames.mu.Unlock()
	c.out.Wake()
}

// takeFrame removes and returns the control frame to be written next, nil for none.
func (f *controlFrames) takeFrame() (frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.pong != nil:
		frame, f.pong = controlFrame(opPong, f.pong), nil
	case f.ping:
		frame, f.ping = controlFrame(opPing, nil), false
	}
	return frame
}

// urgentFrame returns the write of the control frame that is due, or nil. Control frames go before messages, because they are short
// and the peer waits for them.
func (c *connection) urgentFrame() (write func() error) {
	frame := c.frames.takeFrame()
	if frame == nil {
		return nil
	}
	return func() error { _, err := c.stream.Write(frame); return err }
}

// writeMessage writes one message as a text frame.
func (c *connection) writeMessage(body []byte) (begun bool, err error) {
	before := c.stream.writesBegun.Load()
	err = c.conn.Write(context.Background(), websocket.MessageText, body)
	return c.stream.writesBegun.Load() != before, err
}
