package transports

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// wsKeepalive watches for signs of life. Its fields but the timer belong to the timer's function, which never runs twice at
// once.
type wsKeepalive struct {
	mu    sync.Mutex
	timer *time.Timer // nil when it is not wanted, or not any more

	missedPings int   // pings without any sign of life since
	lastRead    int64 // when the last byte had come, when we looked last
	lastMessage int64 // the message that was being written when we looked last
	lastWritten int64 // the bytes that had been taken then
}

// maxMissedPings is how many pings in a row may bring no sign of life, each given WebSocketConfig.Ping.
const maxMissedPings = 2

func (c *wsConn) startKeepalive() {
	if c.ping < 0 {
		return
	}
	c.keepalive.mu.Lock()
	defer c.keepalive.mu.Unlock()
	c.keepalive.timer = time.AfterFunc(c.ping, c.checkKeepalive)
	if c.lifetime.endError() != nil {
		c.keepalive.timer.Stop()
		c.keepalive.timer = nil
	}
}

func (c *wsConn) stopKeepalive() {
	c.keepalive.mu.Lock()
	defer c.keepalive.mu.Unlock()
	if c.keepalive.timer != nil {
		c.keepalive.timer.Stop()
		c.keepalive.timer = nil
	}
}

// scheduleCheck looks after that time again.
func (p *wsKeepalive) scheduleCheck(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(after)
	}
}

// checkKeepalive is called when the server may have been silent for long enough.
func (c *wsConn) checkKeepalive() {
	if !c.lifetime.enter() {
		return
	}
	defer c.lifetime.leaveRecovering()
	p := &c.keepalive
	current, written := c.out.currentMessage(), c.stream.bytesWritten.Load()
	// A message that is longer on its way than this has filled every buffer: what still moves is taken by the server.
	progressing := current != 0 && current == p.lastMessage && written > p.lastWritten
	heard, silent := c.stream.lastRead.Load(), c.stream.silentFor()
	if progressing || heard != p.lastRead {
		p.missedPings = 0
	}
	p.lastRead, p.lastMessage, p.lastWritten = heard, current, written
	switch {
	case silent < c.ping:
		p.scheduleCheck(c.ping - silent)
	case progressing:
		p.scheduleCheck(c.ping)
	case p.missedPings == maxMissedPings:
		c.lifetime.endConn(&Error{Class: messages.ClassNetwork,
			Text: c.origin.label + " has given no sign of life for " + silent.Round(time.Second).String(),
			Fix:  "check the network between here and there"})
	default:
		p.missedPings++
		c.out.queuePing()
		p.scheduleCheck(c.ping)
	}
}

// pongCost is the processor time that reading a ping and writing a pong costs.
const pongCost = 5 * time.Microsecond

// onPing is called by the library in the reader's goroutine. It never lets the library answer: that would hold up
// reading for as long as a message is being written, and end the connection if that takes more than 5 s.
func (c *wsConn) onPing(_ context.Context, payload []byte) bool {
	c.out.queuePong(payload)
	c.origin.share.Charge(pongCost, budget.Unknown, time.Now())
	takePause(c.origin.share, c.lifetime.ctx.Done())
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
