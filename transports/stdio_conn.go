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

// stdioConn is one child. It has three goroutines while it lives (output, standard error, exit), and one more at its
// end: finish, which calls Down.
type stdioConn struct {
	p            *process
	sink         Sink
	grace        time.Duration
	fetches      bool        // StdioConfig.Fetches
	gotMessage   atomic.Bool // a message has come
	earlyStdout  outputTail  // what it wrote to standard output before that, whole lines without secrets
	out          writeQueue
	lines        lineSplitter
	stderrTail   outputTail
	redactor     *redactor
	noise        atomic.Int64
	exitText     atomic.Pointer[string]
	releaseGuard func() // tells the guard that the group is gone

	endOnce     sync.Once
	downOnce    sync.Once
	stdout      pipeReader
	stderr      pipeReader
	openReaders atomic.Int32  // how many of them are being read
	drained     chan struct{} // closed when none is
	share       *budget.Share
	skipOnce    sync.Once
	skipPauses  chan struct{} // closed when what is left in the pipes is to be read without a pause
	released    chan struct{}
}

var (
	_ AsyncSender = (*stdioConn)(nil)
	_ ProcessConn = (*stdioConn)(nil)
)

func newStdioConn(cfg *StdioConfig, p *process, sink Sink) (Conn, error) {
	pipe, err := newPipeWriter(p.stdin)
	if err != nil {
		p.killAndRelease()
		return nil, startError(cfg, err)
	}
	r := newRedactor(cfg)
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
		c.releaseGuard = cfg.Guard.Watch(p.cmd.Process.Pid)
	}
	c.lines = lineSplitter{
		limit: cfg.MaxMessage, endlessSize: endlessLine, overlap: r.cutOverlap(),
		reservation: memoryReservation{share: cfg.Share, connEnded: c.skipPauses},
		onMessage:   c.onMessage, onOversized: func(over *oversizedMessage) { reportDiscarded(sink, over) }, onNoise: c.onNoise,
	}
	c.out = writeQueue{pipe: pipe, onBroken: func() { c.beginShutdown(pipeClosed, closedPipeError("input")) }}
	c.openReaders.Store(2)
	go c.readOutput()
	go c.readErrors()
	go c.awaitChildEnd()
	return c, nil
}

// Send implements Conn. It returns when the pipe has taken the message.
func (c *stdioConn) Send(ctx context.Context, m Message) (Delivery, error) {
	return c.out.Send(ctx, m.Body)
}

// Post implements Poster.
func (c *stdioConn) Post(m Message) (PendingPost, Delivery, error) { return c.out.Post(m.Body) }

// Negotiated implements Conn. Every version of the protocol writes its lines alike.
func (c *stdioConn) Negotiated(string) {}

// Released implements Conn.
func (c *stdioConn) Released() <-chan struct{} { return c.released }

// Info implements Conn.
func (c *stdioConn) Info() Info {
	info := Info{PID: c.p.cmd.Process.Pid, StderrTail: c.earlyStdout.redactedText(c.redactor) + c.stderrTail.redactedText(c.redactor), Noise: c.noise.Load(),
		Isolation: c.p.isolation.enforcedParts()}
	if e := c.exitText.Load(); e != nil {
		info.PID, info.Exit = 0, *e // another process may have the number by now
	}
	return info
}

// Work implements Worker. The child is reaped after its exit is known, so that its number is not another's.
func (c *stdioConn) Work() (procinfo.Usage, error) {
	if c.exitText.Load() != nil {
		return procinfo.Usage{}, os.ErrProcessDone
	}
	return procinfo.UsageOf(c.p.cmd.Process.Pid)
}

// Close implements Conn.
func (c *stdioConn) Close(ctx context.Context) error {
	c.beginShutdown(weClosed, &Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
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

func (c *stdioConn) readOutput() {
	defer c.readerDone()
	defer c.recoverPanic() // the sink is code of the caller
	whole := true
	c.stdout.readUntilEnd(func(p []byte) bool {
		whole = c.lines.feed(p)
		if c.lines.isDropping() {
			c.share.Charge(readCost(len(p)), budget.Unknown, time.Now())
		}
		takePause(c.share, c.skipPauses)
		return whole
	})
	if !whole {
		c.beginShutdown(connFault, &Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"})
		return
	}
	c.lines.endStream()
	c.beginShutdown(pipeClosed, closedPipeError("output"))
}

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

// startSkippingPauses has what is left read without a pause.
func (c *stdioConn) startSkippingPauses() { c.skipOnce.Do(func() { close(c.skipPauses) }) }

// awaitChildEnd waits for the child's end.
func (c *stdioConn) awaitChildEnd() {
	defer c.recoverPanic()
	c.p.awaitExit()
	c.beginShutdown(childEnded, nil)
}

// recoverPanic is deferred by every goroutine of the connection: a panic costs the connection, not the program.
func (c *stdioConn) recoverPanic() {
	if v := recover(); v != nil {
		c.beginShutdown(connFault, panicError(v))
	}
}

// readerDone notes that one of the two has been read to its end.
func (c *stdioConn) readerDone() {
	if c.openReaders.Add(-1) == 0 {
		close(c.drained)
	}
}

func closedPipeError(which string) *Error {
	return &Error{
		Class: messages.ClassProtocol,
		Text:  fmt.Sprintf("the server closed its standard %s and had not ended %v later", which, exitTime),
		Fix:   "a command that puts its server into the background cannot work",
	}
}
