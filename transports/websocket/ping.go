package websocket

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// keepalive watches for signs of life. mu guards timer. The other fields belong to the timer's function, checkKeepalive, which
// never runs twice at once.
type keepalive struct {
	mu    sync.Mutex
	timer *time.Timer // nil without pings, and after stopKeepalive

	missedPings int   // pings since the last sign of life
	lastRead    int64 // lastRead of the stream at the last check
	lastMessage int64 // number of the message that was being written at the last check
	lastWritten int64 // bytes that the system had taken at the last check
}

// maxMissedPings bounds the pings in a row without a sign of life. Each has Config.Ping as its time.
const maxMissedPings = 2

// startKeepalive starts the checks, unless Ping is negative or the connection has ended already.
func (c *connection) startKeepalive() {
	if c.ping < 0 {
		return
	}
	c.keepalive.mu.Lock()
	defer c.keepalive.mu.Unlock()
	c.keepalive.timer = time.AfterFunc(c.ping, c.checkKeepalive)
	if c.lifetime.EndError() != nil {
		c.keepalive.timer.Stop()
		c.keepalive.timer = nil
	}
}

// stopKeepalive ends the checks. One that runs at that moment does not schedule another one.
func (c *connection) stopKeepalive() {
	c.keepalive.mu.Lock()
	defer c.keepalive.mu.Unlock()
	if c.keepalive.timer != nil {
		c.keepalive.timer.Stop()
		c.keepalive.timer = nil
	}
}

// scheduleCheck runs the next check after that time, unless stopKeepalive was called.
func (p *keepalive) scheduleCheck(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Reset(after)
	}
}

// checkKeepalive runs when the server may have been silent for long enough. It pings, waits on, or ends the connection. Being a
// timer's function it must not block: it only queues the ping.
func (c *connection) checkKeepalive() {
	if !c.lifetime.Enter() {
		return
	}
	defer c.lifetime.LeaveRecovering()
	p := &c.keepalive
	current, written := c.out.CurrentMessage(), c.stream.bytesWritten.Load()
	// A message whose writing spans two checks has filled every buffer on the way: if more bytes go out, the server takes them.
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
		c.lifetime.End(&transports.Error{Class: messages.ClassNetwork,
			Text: c.origin.Label + " has given no sign of life for " + silent.Round(time.Second).String(),
			Fix:  "check the network between here and there"})
	default:
		p.missedPings++
		c.queuePing()
		p.scheduleCheck(c.ping)
	}
}

// pongCost is the processor time that reading a ping and writing a pong costs, for which the server is charged.
const pongCost = 5 * time.Microsecond

// onPing queues the pong. The library calls it in the reader's goroutine. It returns false so that the library does not answer
// itself: that would hold up reading for as long as a message is being written, and end the connection after 5 s.
func (c *connection) onPing(_ context.Context, payload []byte) bool {
	c.queuePong(payload)
	c.origin.Share.Charge(pongCost, budget.Unknown, time.Now())
	incoming.TakePause(c.origin.Share, c.lifetime.Ctx.Done())
	return false
}

// The codes of the control frames that this client writes itself (RFC 6455, 5.5).
const (
	opPing = 0x9
	opPong = 0xa
)

// controlFrame returns a whole control frame; payload has at most 125 bytes. The caller must write it at once, and not within
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
