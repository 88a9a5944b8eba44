package transports

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Peer is the server's end of an in-process connection. Its methods are safe for concurrent use.
type Peer interface {
	// Read returns the next whole JSON-RPC message. The message belongs to the caller. It returns io.EOF when the
	// connection has ended, and the context's error if that ends first.
	Read(ctx context.Context) ([]byte, error)
	// Write sends one whole JSON-RPC message, which belongs to the connection from then on: it must not be changed.
	// Messages that one goroutine writes arrive in that order. Write does not wait for the message to be handled; it
	// returns io.ErrClosedPipe when the connection has ended.
	Write(ctx context.Context, msg []byte) error
}

// DirectPeer is the Peer of a server that can answer a request by a function call. The Peer that InProcess gives to a serve
// function is one.
type DirectPeer interface {
	Peer
	// Answer has every request of the client answered by answer from now on, without Read: two switches between goroutines
	// for a call, where reading, handling and writing need four. It is called once, before the first Read.
	//
	// answer runs on a goroutine of the connection, beside Read and beside answer for other requests; the message's body
	// belongs to it. What it returns is sent to the client as by Write; nothing is, if it is empty. A panic of it ends the
	// connection. When the connection ends, it waits for answer as it does for serve.
	//
	// Order holds: a request that comes while an earlier message waits for Read, or is dealt with between two calls of Read,
	// waits behind it and is given to Read. So a server reads requests too.
	Answer(answer func(m Message) (reply []byte))
	// Receive has everything that Read would have returned given to receive, one message after the other, in the order in
	// which they came. It is called once, after Answer and before the first Read, which waits for the end of the connection
	// then. So the goroutine of serve has nothing to do while nothing comes, and keeps the small stack that it began with.
	//
	// receive runs on a goroutine that lasts as long as there are messages. The order holds as it does for Read: a request
	// that comes while receive is at work is given to it as well. A panic of it, or the end of its goroutine, ends the
	// connection, which waits for it at its end.
	Receive(receive func(msg []byte))
}

// InProcess is the transport to a server in the same program.
//
// Every Dial runs the serve function in a goroutine of its own, with a Peer and a context that both end with the
// connection. When serve returns, the connection is down: with ClassPanic if it panicked, otherwise with ClassExited.
// A panic in a goroutine that serve itself started ends the program; nothing can prevent that.
//
// Messages to the server wait in an ordered queue for Read. 4 MiB of them may wait; a Send beyond that blocks until the
// server reads or its context ends. Messages to the client are handed to the sink by the goroutine that writes them.
// Nothing is ever dropped, except a message over MaxMessage, which is reported.
//
// Close ends serve's context and waits for serve to return, for at most 5 s: code of the same program cannot be killed.
// A serve that goes on after that is left behind, and whatever it writes fails.
type InProcess struct {
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. Set it before the first Dial.
	MaxMessage int64
	// Share charges the server for its floods; nil lets it flood. Set it before the first Dial.
	Share *budget.Share

	serve func(ctx context.Context, peer Peer) error
}

var _ Transport = (*InProcess)(nil)

// NewInProcess makes a transport to a server. serve must return soon after its context has ended.
func NewInProcess(serve func(ctx context.Context, peer Peer) error) *InProcess {
	return &InProcess{serve: serve}
}

// serveGrace is how long a serve function may go on after its context has ended.
const serveGrace = 5 * time.Second

// Kind implements Transport.
func (t *InProcess) Kind() messages.TransportKind { return messages.SDK }

// Dial implements Transport. It does not block.
func (t *InProcess) Dial(ctx context.Context, sink Sink) (Conn, error) {
	if t.serve == nil {
		return nil, &Error{Class: messages.ClassConfig, Text: "there is no in-process server to connect to"}
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx, "connecting to the in-process server")
	}
	c := &inProcessConn{lifetime: newLifetime(sink), limit: t.MaxMessage, share: t.Share, returned: make(chan struct{})}
	if c.limit <= 0 {
		c.limit = defaultMaxBody
	}
	c.lifetime.afterDown = c.awaitServe
	go c.runServe(t.serve)
	return c, nil
}

// inProcessConn is one connection: a queue in one direction and the sink in the other.
type inProcessConn struct {
	lifetime *lifetime
	limit    int64
	share    *budget.Share
	queue    inProcessQueue
	workers  workerPool
	returned chan struct{} // closed when serve has returned
}

var (
	_ Conn       = (*inProcessConn)(nil)
	_ DirectPeer = (*inProcessPeer)(nil)
)

// runServe is the goroutine of serve.
func (c *inProcessConn) runServe(serve func(context.Context, Peer) error) {
	defer close(c.returned)
	// What holds if serve ends its goroutine without returning, as testing.T.FailNow does.
	end := &Error{Class: messages.ClassExited, Text: "the in-process server ended its goroutine"}
	defer func() {
		if v := recover(); v != nil {
			end = panicError(v)
			end.Text = "the in-process server ended with a " + end.Text
		}
		c.lifetime.endConn(end)
	}()
	err := serve(c.lifetime.ctx, (*inProcessPeer)(c))
	end.Text, end.Err = "the in-process server returned", err
	if err != nil {
		end.Text = "the in-process server failed: " + shortSentence(err.Error())
	}
}

// awaitServe gives serve and what answers for it their time to end.
func (c *inProcessConn) awaitServe(*Error) {
	workersDone := c.workers.close()
	t := time.NewTimer(serveGrace)
	defer t.Stop()
	for _, ended := range [2]<-chan struct{}{c.returned, workersDone} {
		select {
		case <-ended:
		case <-t.C:
			return
		}
	}
}

// Send implements Conn.
func (c *inProcessConn) Send(ctx context.Context, m Message) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to the in-process server")
	}
	if !c.lifetime.enter() {
		return NotWritten, c.lifetime.endError()
	}
	defer c.lifetime.leave()
	if m.ID != 0 && c.queue.allHandled.Load() && c.workers.jobs != nil {
		m.Body = bytes.Clone(m.Body)
		c.workers.dispatchMessage(m)
		return Written, nil
	}
	item := c.queue.putMessage(m.Body)
	c.startReceiving()
	if item == nil {
		return Written, nil
	}
	select {
	case <-item.accepted:
		return Written, nil
	case <-ctx.Done():
	case <-c.lifetime.ctx.Done():
	}
	if !c.queue.withdrawItem(item) {
		return Written, nil // accepted in the same moment
	}
	if ended := c.lifetime.endError(); ended != nil {
		return NotWritten, ended
	}
	return NotWritten, contextError(ctx, "sending to the in-process server, which does not read,")
}

// Negotiated implements Conn. The frame does not depend on the version.
func (c *inProcessConn) Negotiated(string) {}

// Close implements Conn.
func (c *inProcessConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *inProcessConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn.
func (c *inProcessConn) Info() Info { return Info{} }

// inProcessPeer is the other end of the same connection.
type inProcessPeer inProcessConn

func (p *inProcessPeer) Read(ctx context.Context) ([]byte, error) {
	for {
		if p.lifetime.ctx.Err() != nil {
			return nil, io.EOF
		}
		msg, more := p.queue.takeMessage() // nothing and nil, if another goroutine receives
		if msg != nil {
			return msg, nil
		}
		select {
		case <-more:
		case <-p.lifetime.ctx.Done():
			return nil, io.EOF
		case <-ctx.Done():
			if p.lifetime.ctx.Err() != nil { // serve's own context is a child of it, and may be seen to end first
				return nil, io.EOF
			}
			return nil, ctx.Err()
		}
	}
}

func (p *inProcessPeer) Write(ctx context.Context, msg []byte) error {
	if err := ctx.Err(); err != nil && p.lifetime.ctx.Err() == nil {
		return err
	}
	if len(msg) == 0 {
		return fmt.Errorf("transports: an empty message")
	}
	if !(*inProcessConn)(p).deliverMessage(msg) {
		return io.ErrClosedPipe
	}
	return nil
}

// deliverMessage hands a message to the client, and reports false if the connection has ended.
func (c *inProcessConn) deliverMessage(msg []byte) bool {
	if !c.lifetime.enter() {
		return false
	}
	defer c.lifetime.leaveRecovering() // a sink that panics must not end the goroutine of the server's program
	if int64(len(msg)) > c.limit {
		big := &oversizedMessage{}
		big.addBytes(msg)
		c.lifetime.sink.Oversized(big.head, big.tail, big.size)
	} else {
		c.lifetime.sink.Message(msg)
	}
	takePause(c.share, c.lifetime.ctx.Done())
	return true
}

// Answer implements Direct.
func (p *inProcessPeer) Answer(answer func(Message) []byte) {
	c := (*inProcessConn)(p)
	c.workers.startAnswering(func(m Message) {
		defer func() {
			if v := recover(); v != nil {
				c.lifetime.endConn(panicError(v))
			}
		}()
		if reply := answer(m); len(reply) > 0 {
			c.deliverMessage(reply)
		}
	})
}

// Receive implements Direct.
func (p *inProcessPeer) Receive(receive func([]byte)) {
	p.queue.setReceiver(receive)
	(*inProcessConn)(p).startReceiving()
}

// startReceiving hands the queue to the function that receives it, if there is one and the queue is not empty.
func (c *inProcessConn) startReceiving() {
	receive := c.queue.claimReceiver()
	if receive == nil {
		return
	}
	c.workers.goTracked(func() {
		done := false
		defer func() {
			if v := recover(); v != nil {
				c.lifetime.endConn(panicError(v))
			} else if !done {
				c.lifetime.endConn(&Error{Class: messages.ClassExited, Text: "the in-process server ended its goroutine"})
			}
		}()
		for msg := c.queue.nextClaimed(); msg != nil && c.lifetime.ctx.Err() == nil; msg = c.queue.nextClaimed() {
			receive(msg)
		}
		done = true
	})
}
