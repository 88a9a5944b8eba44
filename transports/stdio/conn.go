package stdio

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lines"
	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/pipe"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/process"
)

// connection is the connection with one child. It has three goroutines while it lives (output, standard error, exit), and a fourth
// at its end, finishShutdown, which calls Down and releases everything. Senders write in their own goroutines if the pipe has
// room.
type connection struct {
	p       *process.Process
	sink    transports.Sink
	grace   time.Duration
	fetches bool // Config.Fetches
	// gotMessage is set at the child's first message. earlyStdout has the lines before that one, without secrets.
	gotMessage  atomic.Bool
	earlyStdout outputTail
	out         pipe.Queue
	lines       lines.Splitter
	stderrTail  outputTail
	redactor    *redact.Redactor
	noise       atomic.Int64
	exitText    atomic.Pointer[string]
	// watched is the group as the guard knows it.
	watched *watchedGroup

	// endOnce lets the first cause of the end count, downOnce keeps Down from being called twice.
	endOnce  sync.Once
	downOnce sync.Once
	stdout   pipe.Reader
	stderr   pipe.Reader
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
	_ transports.AsyncSender = (*connection)(nil)
	_ transports.ProcessConn = (*connection)(nil)
)

// newConnection makes the connection with a child that runs, and starts its three goroutines. If it fails, the child is gone. ctx bounds
// the question to the guard.
func newConnection(ctx context.Context, cfg *Config, p *process.Process, sink transports.Sink) (transports.Conn, error) {
	input, err := pipe.NewWriter(p.Stdin)
	if err != nil {
		p.KillAndRelease()
		return nil, process.StartError(cfg.Command, err)
	}
	watched, failed := askGuard(ctx, cfg.Guard, p.PID())
	if failed != nil {
		p.KillAndRelease()
		return nil, failed
	}
	r := redact.NewForChild(cfg.Secrets, cfg.Env)
	c := &connection{
		p: p, sink: sink, grace: cfg.Grace, fetches: cfg.Fetches, redactor: r, watched: watched,
		earlyStdout: outputTail{size: min(printedSize, cfg.StderrTail)},
		stderrTail:  outputTail{size: cfg.StderrTail, overlap: r.CutOverlap()},
		stdout:      pipe.Reader{File: p.Stdout},
		stderr:      pipe.Reader{File: p.Stderr},
		drained:     make(chan struct{}),
		share:       cfg.Share,
		skipPauses:  make(chan struct{}),
		released:    make(chan struct{}),
	}
	c.lines = lines.Splitter{
		Limit: cfg.MaxMessage, EndlessSize: lines.EndlessLine(cfg.MaxMessage), Overlap: r.CutOverlap(),
		Reservation: incoming.Reservation{Share: cfg.Share, ConnEnded: c.skipPauses},
		OnMessage:   c.onMessage, OnOversized: func(over *incoming.Oversized) { incoming.ReportDiscarded(sink, over) }, OnNoise: c.onNoise,
	}
	// The queue runs OnBroken in a goroutine of its own, so that it may begin the end.
	c.out = pipe.Queue{Writer: input, OnBroken: func() { c.beginShutdown(pipeClosed, closedPipeError("input")) }}
	c.openReaders.Store(2)
	go c.readOutput()
	go c.readErrors()
	go c.awaitChildEnd()
	return c, nil
}

// Send implements Conn. It returns when the pipe has taken the message, which the child may not have read yet.
func (c *connection) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	return c.out.Send(ctx, m.Body)
}

// Post implements AsyncSender.
func (c *connection) Post(m transports.Message) (transports.PendingPost, transports.Delivery, error) {
	return c.out.Post(m.Body)
}

// Negotiated implements Conn. It does nothing, because every version of the protocol writes its lines alike.
func (c *connection) Negotiated(string) {}

// Released implements Conn.
func (c *connection) Released() <-chan struct{} { return c.released }

// Info implements Conn. What standard output held before the first message stands before the tail of standard error.
func (c *connection) Info() transports.Info {
	info := transports.Info{PID: c.p.PID(), StderrTail: c.earlyStdout.redactedText(c.redactor) + c.stderrTail.redactedText(c.redactor), Noise: c.noise.Load(),
		Isolation: c.p.EnforcedParts()}
	if e := c.exitText.Load(); e != nil {
		// The child has been reaped: another process may have its number by now.
		info.PID, info.Exit = 0, *e
	}
	return info
}

// Work implements ProcessConn. exitText is set after the child was reaped, so that a number without exitText may just have become
// another process's; the session asks again later and sees the end then.
func (c *connection) Work() (procinfo.Usage, error) {
	if c.exitText.Load() != nil {
		return procinfo.Usage{}, os.ErrProcessDone
	}
	return procinfo.UsageOf(c.p.PID())
}

// Close implements Conn. It begins the end unless that has begun, and waits for released.
func (c *connection) Close(ctx context.Context) error {
	c.beginShutdown(weClosed, &transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
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
		return errs.ContextError(ctx, "ending the process")
	}
}

// readOutput feeds the splitter until the child's output ends. Lines that are dropped, and pauses, are charged to the server's
// share.
func (c *connection) readOutput() {
	defer c.readerDone()
	// The callbacks of the splitter run the sink, which is the caller's code and may panic.
	defer c.recoverPanic()
	whole := true
	c.stdout.ReadUntilEnd(func(p []byte) bool {
		whole = c.lines.Feed(p)
		if c.lines.IsDropping() {
			c.share.Charge(incoming.ReadCost(len(p)), budget.Unknown, time.Now())
		}
		incoming.TakePause(c.share, c.skipPauses)
		return whole
	})
	// The splitter has given up a line: the bytes after it cannot be separated into messages any more.
	if !whole {
		c.beginShutdown(connFault, &transports.Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"})
		return
	}
	c.lines.EndStream()
	c.beginShutdown(pipeClosed, closedPipeError("output"))
}

// onMessage gives the sink a line that begins as a message does.
func (c *connection) onMessage(body []byte) {
	if !c.gotMessage.Load() {
		c.notePrinted(body)
	}
	c.sink.Message(body)
}

// readErrors keeps the tail of standard error. All of it is charged, because a server may write there without an end.
func (c *connection) readErrors() {
	defer c.readerDone()
	defer c.recoverPanic()
	c.stderr.ReadUntilEnd(func(p []byte) bool {
		c.stderrTail.write(p)
		c.share.Charge(incoming.ReadCost(len(p)), budget.Unknown, time.Now())
		incoming.TakePause(c.share, c.skipPauses)
		return true
	})
}

// startSkippingPauses lets the readers go on without a pause: the connection ends, and what is left in the pipes is bounded.
func (c *connection) startSkippingPauses() { c.skipOnce.Do(func() { close(c.skipPauses) }) }

// awaitChildEnd waits until the child has ended, by itself or killed, and begins the end of the connection.
func (c *connection) awaitChildEnd() {
	defer c.recoverPanic()
	c.p.AwaitExit()
	c.beginShutdown(childEnded, nil)
}

// recoverPanic is deferred by every goroutine of the connection: a panic ends the connection and not the program.
func (c *connection) recoverPanic() {
	if v := recover(); v != nil {
		c.beginShutdown(connFault, errs.PanicError(v))
	}
}

// readerDone notes that a reader has ended. The second one to do so lets drainOutput go on.
func (c *connection) readerDone() {
	if c.openReaders.Add(-1) == 0 {
		close(c.drained)
	}
}

// closedPipeError is the error for a child that closed a pipe and did not exit: it has put itself into the background.
func closedPipeError(which string) *transports.Error {
	return &transports.Error{
		Class: messages.ClassProtocol,
		Text:  fmt.Sprintf("the server closed its standard %s and had not ended %v later", which, exitTime),
		Fix:   "a command that puts its server into the background cannot work",
	}
}
