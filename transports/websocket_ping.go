package transports

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// wsPulse watches for signs of life. Its fields but the timer belong to the timer's function, which never runs twice at
// once.
type wsPulse struct {
	mu    sync.Mutex
	timer *time.Timer // nil when it is not wanted, or not any more

	missed int   // pings without any sign of life since
	heard  int64 // when the last byte had come, when we looked last
	turn   int64 // the message that was being written when we looked last
	moved  int64 // the bytes that had been taken then
}

// pingsMissed is how many pings in a row may bring no sign of life, each given WebSocketConfig.Ping.
const pingsMissed = 2

func (c *wsConn) startPulse() {
	if c.ping < 0 {
		return
	}
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	c.pulse.timer = time.AfterFunc(c.ping, c.feel)
	if c.life.ended() != nil {
		c.pulse.timer.Stop()
		c.pulse.timer = nil
	}
}

func (c *wsConn) stopPulse() {
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	if c.pulse.timer != nil {
		c.pulse.timer.Stop()
		c.pulse.timer = nil
	}
}

// again looks after that time again.
func (p *wsPulse) again(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(after)
	}
}

// feel is called when the server may have been silent for long enough.
func (c *wsConn) feel() {
	if !c.life.enter() {
		return
	}
	defer c.life.guard()
	p := &c.pulse
	turn, moved := c.out.turn(), c.stream.moved.Load()
	// A message that is longer on its way than this has filled every buffer: what still moves is taken by the server.
	moving := turn != 0 && turn == p.turn && moved > p.moved
	heard, silent := c.stream.heard.Load(), c.stream.silence()
	if moving || heard != p.heard {
		p.missed = 0
	}
	p.heard, p.turn, p.moved = heard, turn, moved
	switch {
	case silent < c.ping:
		p.again(c.ping - silent)
	case moving:
		p.again(c.ping)
	case p.missed == pingsMissed:
		c.life.end(&Error{Class: messages.ClassNetwork,
			Text: c.origin.label + " has given no sign of life for " + silent.Round(time.Second).String(),
			Fix:  "check the network between here and there"})
	default:
		p.missed++
		c.out.owePing()
		p.again(c.ping)
	}
}

// pongPrice is the processor time that reading a ping and writing a pong costs.
const pongPrice = 5 * time.Microsecond

// onPing is called by the library in the reader's goroutine. It never lets the library answer: that would hold up
// reading for as long as a message is being written, and end the connection if that takes more than 5 s.
func (c *wsConn) onPing(_ context.Context, payload []byte) bool {
	c.out.owePong(payload)
	c.origin.share.Charge(pongPrice, budget.Unknown, time.Now())
	takePause(c.origin.share, c.life.ctx.Done())
	return false
}

// The control frames that we write (RFC 6455, 5.5).
const (
	opPing = 0x9
	opPong = 0xa
)

// controlFrame is a whole control frame of at most 125 bytes of payload. It must be written at once, and not within
// another frame.
//
// RFC 6455, 5.3: "A masked frame MUST have the field frame-masked set to 1 … The masking key needs to be
// unpredictable".
func controlFrame(op byte, payload []byte) []byte {
	const final, masked = 0x80, 0x80
	var mask [4]byte
	_, _ = rand.Read(mask[:]) // never fails
	frame := append([]byte{final | op, masked | byte(len(payload))}, mask[:]...)
	for i, b := range payload {
		frame = append(frame, b^mask[i%len(mask)])
	}
	return frame
}
