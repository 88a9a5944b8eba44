package transports

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// stdioConn is the connection with one child. It has three goroutines while it lives (output, standard error, exit), and a fourth
// at its end, finishShutdown, which calls Down and releases everything. Senders write in their own goroutines if the pipe has
// room.
type stdioConn struct {
	p       *process
	sink    Sink
	grace   time.Duration
	fetches bool // StdioConfig.Fetches
	// gotMessage is set at the child's first message. earlyStdout has the lines before that one, without secrets.
	gotMessage  atomic.Bool
	earlyStdout outputTail
	out         writeQueue
	lines       lineSplitter
	stderrTail  outputTail
	redactor    *redactor
	noise       atomic.Int64
	exitText    atomic.Pointer[string]
	// releaseGuard tells the guard that the group is gone. It does nothing without a guard.
	releaseGuard func()

	// endOnce lets the first cause of the end count, downOnce keeps Down from being called twice.
	endOnce  sync.Once
	downOnce sync.Once
	stdout   pipeReader
	stderr   pipeReader
	// openReaders counts the readers of stdout and stderr; the one that takes it to 0 closes drained.
	openReaders atomic.Int32
	drained     chan struct{}
	share       *budget.Share
	skipOnce    sync.Once
	// skipPauses is closed when the rest of the pipes is to be read without the pauses of the share.
	skipPauses chan struct{}
	released   chan struct{}
}

var (
	_ AsyncSender = (*stdioConn)(nil)
	_ ProcessConn = (*stdioConn)(nil)
)

// newStdioConn makes the connection with a child that runs, and starts its three goroutines. If it fails, the child is gone.
func newStdioConn(cfg *StdioConfig, p *process, sink Sink) (Conn, error) {
	input, err := newPipeWriter(p.stdin)
	if err != nil {
		p.killAndRelease()
		return nil, startError(cfg.Command, err)
	}
	r := newChildRedactor(cfg.Secrets, cfg.Env)
	c := &stdioConn{
		p: p, sink: sink, grace: cfg.Grace, fetches: cfg.Fetches, redactor: r,
		releaseGuard: func() {},
		earlyStdout:  outputTail{size: min(printedSize, cfg.StderrTail)},
		stderrTail:   outputTail{size: cfg.StderrTail, overlap: r.cutOverlap()},
		stdout:       pipeReader{f: p.stdout},
		stderr:       pipeReader{f: p.stderr},
		drained:      make(chan struct{}),
		share:        cfg.Share,
		skipPauses:   make(chan struct{}),
		released:     make(chan struct{}),
	}
	if cfg.Guard != nil {
		c.releaseGuard = cfg.Guard.Watch(p.pid())
	}
	c.lines = lineSplitter{
		limit: cfg.MaxMessage, endlessSize: endlessLine, overlap: r.cutOverlap(),
		reservation: memoryReservation{share: cfg.Share, connEnded: c.skipPauses},
		onMessage:   c.onMessage, onOversized: func(over *oversizedMessage) { reportDiscarded(sink, over) }, onNoise: c.onNoise,
	}
	// The queue runs onBroken in a goroutine of its own, so that it may begin the end.
	c.out = writeQueue{pipe: input, onBroken: func() { c.beginShutdown(pipeClosed, closedPipeError("input")) }}
	c.openReaders.Store(2)
	go c.readOutput()
	go c.readErrors()
	go c.awaitChildEnd()
	return c, nil
}

// Send implements Conn. It returns when the pipe has taken the message, which the child may not have read yet.
func (c *stdioConn) Send(ctx context.Context, m Message) (Delivery, error) {
	return c.out.Send(ctx, m.Body)
}

// Post implements AsyncSender.
func (c *stdioConn) Post(m Message) (PendingPost, Delivery, error) { return c.out.Post(m.Body) }

// Negotiated implements Conn. It does nothing, because every version of the protocol writes its lines alike.
func (c *stdioConn) Negotiated(string) {}

// Released implements Conn.
func (c *stdioConn) Released() <-chan struct{} { return c.released }

// Info implements Conn. What standard output held before the first message stands before the tail of standard error.
func (c *stdioConn) Info() Info {
	info := Info{PID: c.p.pid(), StderrTail: c.earlyStdout.redactedText(c.redactor) + c.stderrTail.redactedText(c.redactor), Noise: c.noise.Load(),
		Isolation: c.p.enforcedParts()}
	if e := c.exitText.Load(); e != nil {
		// The child has been reaped: another process may have its number by now.
		info.PID, info.Exit = 0, *e
	}
	return info
}

// Work implements ProcessConn. exitText is set after the child was reaped, so that a number without exitText may just have become
// another process's; the session asks again later and sees the end then.
func (c *stdioConn) Work() (procinfo.Usage, error) {
	if c.exitText.Load() != nil {
		return procinfo.Usage{}, os.ErrProcessDone
	}
	return procinfo.UsageOf(c.p.pid())
}

// Close implements Conn. It begins the end unless that has begun, and waits for released.
func (c *stdioConn) Close(ctx context.Context) error {
	c.beginShutdown(weClosed, &Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	// A connection that is released already succeeds, also when ctx has ended.
	select {
	case <-c.released:
		return nil
	default:
	}
	select {
	case <-c.released:
		return nil
	case <-ctx.Done():
		return contextError(ctx, "ending the process")
	}
}

// readOutput feeds the splitter until the child's output ends. Lines that are dropped, and pauses, are charged to the server's
// share.
func (c *stdioConn) readOutput() {
	defer c.readerDone()
	// The callbacks of the splitter run the sink, which is the caller's code and may panic.
	defer c.recoverPanic()
	whole := true
	c.stdout.readUntilEnd(func(p []byte) bool {
		whole = c.lines.feed(p)
		if c.lines.isDropping() {
			c.share.Charge(readCost(len(p)), budget.Unknown, time.Now())
		}
		takePause(c.share, c.skipPauses)
		return whole
	})
	// The splitter has given up a line: the bytes after it cannot be separated into messages any more.
	if !whole {
		c.beginShutdown(connFault, &Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"})
		return
	}
	c.lines.endStream()
	c.beginShutdown(pipeClosed, closedPipeError("output"))
}

// readErrors keeps the tail of standard error. All of it is charged, because a server may write there without an end.
func (c *stdioConn) readErrors() {
	defer c.readerDone()
	defer c.recoverPanic()
	c.stderr.readUntilEnd(func(p []byte) bool {
		c.stderrTail.write(p)
		c.share.Charge(readCost(len(p)), budget.Unknown, time.Now())
		takePause(c.share, c.skipPauses)
		return true
	})
}

// startSkippingPauses lets the readers go on without a pause: the connection ends, and what is left in the pipes is bounded.
func (c *stdioConn) startSkippingPauses() { c.skipOnce.Do(func() { close(c.skipPauses) }) }

// awaitChildEnd waits until the child has ended, by itself or killed, and begins the end of the connection.
func (c *stdioConn) awaitChildEnd() {
	defer c.recoverPanic()
	c.p.awaitExit()
	c.beginShutdown(childEnded, nil)
}

// recoverPanic is deferred by every goroutine of the connection: a panic ends the connection and not the program.
func (c *stdioConn) recoverPanic() {
	if v := recover(); v != nil {
		c.beginShutdown(connFault, panicError(v))
	}
}

// readerDone notes that a reader has ended. The second one to do so lets drainOutput go on.
func (c *stdioConn) readerDone() {
	if c.openReaders.Add(-1) == 0 {
		close(c.drained)
	}
}

// closedPipeError is the error for a child that closed a pipe and did not exit: it has put itself into the background.
func closedPipeError(which string) *Error {
	return &Error{
		Class: messages.ClassProtocol,
		Text:  fmt.Sprintf("the server closed its standard %s and had not ended %v later", which, exitTime),
		Fix:   "a command that puts its server into the background cannot work",
	}
}
