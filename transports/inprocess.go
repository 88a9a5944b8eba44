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

// Peer is the server's end of an in-process connection. Its methods are safe for concurrent use, but one goroutine should Read.
type Peer interface {
	// Read returns the next whole JSON-RPC message, which belongs to the caller. It returns io.EOF when the connection has ended,
	// and the context's error if that ends first.
	Read(ctx context.Context) ([]byte, error)
	// Write sends one whole JSON-RPC message, which belongs to the connection from then on: the caller must not change it.
	// Messages that one goroutine writes arrive in that order. Write returns when the client's sink has the message, which may be
	// handled later, and returns io.ErrClosedPipe when the connection has ended.
	Write(ctx context.Context, msg []byte) error
}

// DirectPeer is the Peer of a server that can answer a request by a function call. The Peer that [InProcess] gives to a serve
// function implements it.
type DirectPeer interface {
	Peer
	// Answer sets the function that answers every request of the client from now on, without Read: a call then takes two switches
	// between goroutines, where reading, handling and writing take four. The server calls it once, before the first Read.
	//
	// answer runs on a goroutine of the connection, concurrently with Read and with answers to other requests; the message's body
	// belongs to it. Its result is sent to the client as by Write, unless it is empty. A panic in it ends the connection, and the
	// connection's end waits for it as for serve.
	//
	// The order of messages holds: a request that comes while an earlier message waits for Read, or is handled between two calls
	// of Read, is queued behind it for Read. So a server must read requests too.
	Answer(answer func(m Message) (reply []byte))
	// Receive sets the function that gets every message that Read would have returned, one after the other, in the order in which
	// they came. The server calls it once, after Answer and before the first Read, which then waits for the end of the
	// connection. So the goroutine of serve has nothing to do while no message comes, and keeps the small stack that it began
	// with.
	//
	// receive runs on a goroutine that lives as long as there are messages. The order holds as it does for Read: a request that
	// comes while receive runs is queued for it as well. A panic in it, or the end of its goroutine, ends the connection, whose
	// end waits for receive.
	Receive(receive func(msg []byte))
}

// InProcess is the transport to a server in the same program.
//
// Every Dial runs the serve function in a goroutine of its own, with a Peer and a context that both end with the connection. When
// serve returns, the connection is down: with ClassPanic if it panicked, otherwise with ClassExited. A panic in a goroutine that
// serve itself started ends the program; this package cannot prevent that.
//
// Messages to the server wait in an ordered queue for Read. 4 MiB of them may wait; a Send beyond that blocks until the server
// reads or its context ends. The goroutine that writes a message to the client runs the sink. Nothing is ever dropped, except a
// message over MaxMessage, which is reported.
//
// Close ends serve's context and waits for serve to return, for at most 5 s: code of the same program cannot be killed. A serve
// that goes on after that is left behind, and its writes fail.
type InProcess struct {
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. Set it before the first Dial.
	MaxMessage int64
	// Share is charged for the server's unasked messages, after which its writes pause; nil means no pauses. Set it before the
	// first Dial.
	Share *budget.Share

	serve func(ctx context.Context, peer Peer) error
}

var _ Transport = (*InProcess)(nil)

// NewInProcess makes a transport to a server. serve must return soon after its context has ended, and may be called many times,
// also at once.
func NewInProcess(serve func(ctx context.Context, peer Peer) error) *InProcess {
	return &InProcess{serve: serve}
}

// defaultMaxMessage is the limit of one message in bytes if MaxMessage is 0.
const defaultMaxMessage = 16 << 20

// serveGrace bounds the time for which the end of a connection waits for serve after its context has ended.
const serveGrace = 5 * time.Second

// Kind implements Transport.
func (t *InProcess) Kind() messages.TransportKind { return messages.SDK }

// Dial implements Transport. It does not block, and returns before serve has read anything.
func (t *InProcess) Dial(ctx context.Context, sink Sink) (Conn, error) {
	if t.serve == nil {
		return nil, &Error{Class: messages.ClassConfig, Text: "there is no in-process server to connect to"}
	}
	if ctx.Err() != nil {
		return nil, contextError(ctx, "connecting to the in-process server")
	}
	c := &inProcessConn{lifetime: newLifetime(sink), limit: t.MaxMessage, share: t.Share, returned: make(chan struct{})}
	if c.limit <= 0 {
		c.limit = defaultMaxMessage
	}
	// Down does not wait for serve; only the release does.
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

// runServe runs serve and ends the connection with its result.
func (c *inProcessConn) runServe(serve func(context.Context, Peer) error) {
	defer close(c.returned)
	// This error holds if serve ends its goroutine without returning, as testing.T.FailNow does.
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

// awaitServe waits for serve and for the goroutines that answer, for serveGrace altogether.
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

// Send implements Conn. A request is answered directly if the server has set an answer function and has handled every earlier
// message, so that the order holds; any other message is queued.
func (c *inProcessConn) Send(ctx context.Context, m Message) (Delivery, error) {
	if ctx.Err() != nil {
		return NotWritten, contextError(ctx, "sending to the in-process server")
	}
	if !c.lifetime.enter() {
		return NotWritten, c.lifetime.endError()
	}
	defer c.lifetime.leave()
	if m.ID != 0 && c.queue.allHandled.Load() && c.workers.jobs != nil {
		// The body belongs to the caller again when Send returns, and the answer may take longer.
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
		return Written, nil // the server has taken it in the same moment
	}
	if ended := c.lifetime.endError(); ended != nil {
		return NotWritten, ended
	}
	return NotWritten, contextError(ctx, "sending to the in-process server, which does not read,")
}

// Negotiated implements Conn. It does nothing, because the version changes nothing here.
func (c *inProcessConn) Negotiated(string) {}

// Close implements Conn.
func (c *inProcessConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *inProcessConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn. There is no process and no session to describe.
func (c *inProcessConn) Info() Info { return Info{} }

// inProcessPeer is the server's end of the same connection, with the methods of the other side.
type inProcessPeer inProcessConn

// Read implements Peer.
func (p *inProcessPeer) Read(ctx context.Context) ([]byte, error) {
	for {
		if p.lifetime.ctx.Err() != nil {
			return nil, io.EOF
		}
		msg, more := p.queue.takeMessage() // both are nil if a Receive function gets the messages
		if msg != nil {
			return msg, nil
		}
		select {
		case <-more:
		case <-p.lifetime.ctx.Done():
			return nil, io.EOF
		case <-ctx.Done():
			// serve's own context is a child of the connection's, and may be seen to end first.
			if p.lifetime.ctx.Err() != nil {
				return nil, io.EOF
			}
			return nil, ctx.Err()
		}
	}
}

// Write implements Peer.
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

// deliverMessage gives a message to the client's sink, and reports false if the connection has ended. Then it pauses the server
// that has written more than its share allows.
func (c *inProcessConn) deliverMessage(msg []byte) bool {
	if !c.lifetime.enter() {
		return false
	}
	// A sink that panics must not end the goroutine of the server's program.
	defer c.lifetime.leaveRecovering()
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

// Answer implements DirectPeer.
func (p *inProcessPeer) Answer(answer func(Message) []byte) {
	c := (*inProcessConn)(p)
	c.workers.startAnswering(func(m Message) {
		// The worker must live on for other answers.
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

// Receive implements DirectPeer.
func (p *inProcessPeer) Receive(receive func([]byte)) {
	p.queue.setReceiver(receive)
	(*inProcessConn)(p).startReceiving()
}

// startReceiving starts a goroutine that gives the queue to the Receive function, if there is one, the queue is not empty, and no
// other goroutine does.
func (c *inProcessConn) startReceiving() {
	receive := c.queue.claimReceiver()
	if receive == nil {
		return
	}
	c.workers.goTracked(func() {
		// done tells a receive that has returned from one that has ended its goroutine (runtime.Goexit).
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
