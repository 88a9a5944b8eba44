package inprocess

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
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

// DirectPeer is the Peer of a server that can answer a request by a function call. The Peer that [Transport] gives to a serve
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
	Answer(answer func(m transports.Message) (reply []byte))
	// Receive sets the function that gets every message that Read would have returned, one after the other, in the order in which
	// they came. The server calls it once, after Answer and before the first Read, which then waits for the end of the
	// connection. So the goroutine of serve has nothing to do while no message comes, and keeps the small stack that it began
	// with.
	//
	// receive runs on a goroutine that lives as long as there are messages. The order holds as it does for Read: a request that
	// comes while receive runs is queued for it as well. A panic in it, or the end of its goroutine, ends the connection, whose
	// end waits for receive.
	Receive(receive func(m transports.Message))
	// ReadMessage is Read for a server that wants to know whose the message is. Of the fields of the result, ID, Method, Name and
	// Version are set only if the client's session knows them.
	ReadMessage(ctx context.Context) (transports.Message, error)
}

// Transport is the transport to a server in the same program.
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
type Transport struct {
	// MaxMessage is the largest incoming message in bytes, 0 for 16 MiB. Set it before the first Dial.
	MaxMessage int64
	// Share is charged for the server's unasked messages, after which its writes pause; nil means no pauses. Set it before the
	// first Dial.
	Share *budget.Share

	serve func(ctx context.Context, peer Peer) error
}

var _ transports.Transport = (*Transport)(nil)

// New makes a transport to a server. serve must return soon after its context has ended, and may be called many times, also at
// once.
func New(serve func(ctx context.Context, peer Peer) error) *Transport {
	return &Transport{serve: serve}
}

// defaultMaxMessage is the limit of one message in bytes if MaxMessage is 0.
const defaultMaxMessage = 16 << 20

// serveGrace bounds the time for which the end of a connection waits for serve after its context has ended.
const serveGrace = 5 * time.Second

// Kind implements Transport.
func (t *Transport) Kind() messages.TransportKind { return messages.SDK }

// Dial implements Transport. It does not block, and returns before serve has read anything.
func (t *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if t.serve == nil {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "there is no in-process server to connect to"}
	}
	if ctx.Err() != nil {
		return nil, errs.ContextError(ctx, "connecting to the in-process server")
	}
	c := &connection{lifetime: lifetime.New(sink), limit: t.MaxMessage, share: t.Share, returned: make(chan struct{})}
	if c.limit <= 0 {
		c.limit = defaultMaxMessage
	}
	// Down does not wait for serve; only the release does.
	c.lifetime.AfterDown = c.awaitServe
	go c.runServe(t.serve)
	return c, nil
}

// connection is one connection: a queue in one direction and the sink in the other.
type connection struct {
	lifetime *lifetime.Lifetime
	limit    int64
	share    *budget.Share
	queue    messageQueue
	workers  workerPool
	returned chan struct{} // closed when serve has returned
}

var (
	_ transports.Conn = (*connection)(nil)
	_ DirectPeer      = (*connPeer)(nil)
)

// runServe runs serve and ends the connection with its result.
func (c *connection) runServe(serve func(context.Context, Peer) error) {
	defer close(c.returned)
	// This error holds if serve ends its goroutine without returning, as testing.T.FailNow does.
	end := &transports.Error{Class: messages.ClassExited, Text: "the in-process server ended its goroutine"}
	defer func() {
		if v := recover(); v != nil {
			end = errs.PanicError(v)
			end.Text = "the in-process server ended with a " + end.Text
		}
		c.lifetime.End(end)
	}()
	err := serve(c.lifetime.Ctx, (*connPeer)(c))
	end.Text, end.Err = "the in-process server returned", err
	if err != nil {
		end.Text = "the in-process server failed: " + errs.ShortSentence(err.Error())
	}
}

// awaitServe waits for serve and for the goroutines that answer, for serveGrace altogether.
func (c *connection) awaitServe(*transports.Error) {
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
func (c *connection) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending to the in-process server")
	}
	if !c.lifetime.Enter() {
		return transports.NotWritten, c.lifetime.EndError()
	}
	defer c.lifetime.Leave()
	if m.ID != 0 && c.queue.allHandled.Load() && c.workers.jobs != nil {
		// The body belongs to the caller again when Send returns, and the answer may take longer.
		m.Body = bytes.Clone(m.Body)
		c.workers.dispatchMessage(m)
		return transports.Written, nil
	}
	item := c.queue.putMessage(m)
	c.startReceiving()
	if item == nil {
		return transports.Written, nil
	}
	select {
	case <-item.accepted:
		return transports.Written, nil
	case <-ctx.Done():
	case <-c.lifetime.Ctx.Done():
	}
	if !c.queue.withdrawItem(item) {
		return transports.Written, nil // the server has taken it in the same moment
	}
	if ended := c.lifetime.EndError(); ended != nil {
		return transports.NotWritten, ended
	}
	return transports.NotWritten, errs.ContextError(ctx, "sending to the in-process server, which does not read,")
}

// Negotiated implements Conn. It does nothing, because the version changes nothing here.
func (c *connection) Negotiated(string) {}

// Close implements Conn.
func (c *connection) Close(ctx context.Context) error { return c.lifetime.Close(ctx) }

// Released implements Conn.
func (c *connection) Released() <-chan struct{} { return c.lifetime.Released }

// Info implements Conn. There is no process and no session to describe.
func (c *connection) Info() transports.Info { return transports.Info{} }

// connPeer is the server's end of the same connection, with the methods of the other side.
type connPeer connection

// Read implements Peer.
func (p *connPeer) Read(ctx context.Context) ([]byte, error) {
	m, err := p.ReadMessage(ctx)
	return m.Body, err
}

// ReadMessage implements DirectPeer.
func (p *connPeer) ReadMessage(ctx context.Context) (transports.Message, error) {
	for {
		if p.lifetime.Ctx.Err() != nil {
			return transports.Message{}, io.EOF
		}
		m, more := p.queue.takeMessage() // both are empty if a Receive function gets the messages
		if m.Body != nil {
			return m, nil
		}
		select {
		case <-more:
		case <-p.lifetime.Ctx.Done():
			return transports.Message{}, io.EOF
		case <-ctx.Done():
			// serve's own context is a child of the connection's, and may be seen to end first.
			if p.lifetime.Ctx.Err() != nil {
				return transports.Message{}, io.EOF
			}
			return transports.Message{}, ctx.Err()
		}
	}
}

// Write implements Peer.
func (p *connPeer) Write(ctx context.Context, msg []byte) error {
	if err := ctx.Err(); err != nil && p.lifetime.Ctx.Err() == nil {
		return err
	}
	if len(msg) == 0 {
		return fmt.Errorf("transports: an empty message")
	}
	if !(*connection)(p).deliverMessage(msg) {
		return io.ErrClosedPipe
	}
	return nil
}

// deliverMessage gives a message to the client's sink, and reports false if the connection has ended. Then it pauses the server
// that has written more than its share allows.
func (c *connection) deliverMessage(msg []byte) bool {
	if !c.lifetime.Enter() {
		return false
	}
	// A sink that panics must not end the goroutine of the server's program.
	defer c.lifetime.LeaveRecovering()
	if int64(len(msg)) > c.limit {
		big := &incoming.Oversized{}
		big.AddBytes(msg)
		c.lifetime.Sink.Oversized(big.Head, big.Tail, big.Size)
	} else {
		c.lifetime.Sink.Message(msg)
	}
	incoming.TakePause(c.share, c.lifetime.Ctx.Done())
	return true
}

// Answer implements DirectPeer.
func (p *connPeer) Answer(answer func(transports.Message) []byte) {
	c := (*connection)(p)
	c.workers.startAnswering(func(m transports.Message) {
		// The worker must live on for other answers.
		defer func() {
			if v := recover(); v != nil {
				c.lifetime.End(errs.PanicError(v))
			}
		}()
		if reply := answer(m); len(reply) > 0 {
			c.deliverMessage(reply)
		}
	})
}

// Receive implements DirectPeer.
func (p *connPeer) Receive(receive func(transports.Message)) {
	p.queue.setReceiver(receive)
	(*connection)(p).startReceiving()
}

// startReceiving starts a goroutine that gives the queue to the Receive function, if there is one, the queue is not empty, and no
// other goroutine does.
func (c *connection) startReceiving() {
	receive := c.queue.claimReceiver()
	if receive == nil {
		return
	}
	c.workers.goTracked(func() {
		// done tells a receive that has returned from one that has ended its goroutine (runtime.Goexit).
		done := false
		defer func() {
			if v := recover(); v != nil {
				c.lifetime.End(errs.PanicError(v))
			} else if !done {
				c.lifetime.End(&transports.Error{Class: messages.ClassExited, Text: "the in-process server ended its goroutine"})
			}
		}()
		for m := c.queue.nextClaimed(); m.Body != nil && c.lifetime.Ctx.Err() == nil; m = c.queue.nextClaimed() {
			receive(m)
		}
		done = true
	})
}
