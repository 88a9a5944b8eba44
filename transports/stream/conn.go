package stream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/lines"
	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
	"github.com/mcpvisor/mcpvisor/transports/internal/writequeue"
)

const (
	defaultMaxMessage = 16 << 20
	defaultGrace      = 2 * time.Second
	readSize          = 32 << 10
	// maxEmptyReads bounds the reads in a row that return neither bytes nor an error, as package bufio does.
	maxEmptyReads = 100
	// drainTime bounds the reading when nothing can be written any more: the server's last messages may still be on their way.
	drainTime = time.Second
)

// connection is one open stream.
type connection struct {
	lifetime *lifetime.Lifetime
	redactor *redact.Redactor
	share    *budget.Share
	grace    time.Duration
	stream   io.ReadWriteCloser
	out      writequeue.Queue
	lines    lines.Splitter // only the reader uses it
	noise    atomic.Int64
	// readEnded is closed when the reader has returned.
	readEnded chan struct{}
}

var _ transports.Conn = (*connection)(nil)

func newConnection(t *Transport, sink transports.Sink) *connection {
	c := &connection{lifetime: lifetime.New(sink), redactor: redact.New(t.Secrets), share: t.Share, grace: t.Grace,
		readEnded: make(chan struct{})}
	if c.grace <= 0 {
		c.grace = defaultGrace
	}
	limit := t.MaxMessage
	if limit <= 0 {
		limit = defaultMaxMessage
	}
	c.lines = lines.Splitter{
		Limit: limit, EndlessSize: lines.EndlessLine(limit), Overlap: c.redactor.CutOverlap(),
		Reservation: incoming.Reservation{Share: t.Share, ConnEnded: c.lifetime.Ctx.Done()},
		OnMessage:   sink.Message, OnNoise: c.onNoise,
		OnOversized: func(over *incoming.Oversized) { incoming.ReportDiscarded(sink, over) },
	}
	return c
}

// startLoops starts the reader, and the end of the stream with the lifetime.
func (c *connection) startLoops(rwc io.ReadWriteCloser) {
	c.stream = rwc
	c.out = writequeue.Queue{Lifetime: c.lifetime, Write: c.writeLine, OnBroken: c.handleWriteError}
	c.lifetime.Enter() // for closeStream, so that Down waits for it
	go c.readLoop()
	context.AfterFunc(c.lifetime.Ctx, c.closeStream)
}

// Send implements Conn. It returns when the stream has taken the message, which the server may not have read yet.
func (c *connection) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if ctx.Err() != nil {
		return transports.NotWritten, errs.ContextError(ctx, "sending")
	}
	if len(m.Body) == 0 {
		return transports.NotWritten, &transports.Error{Class: messages.ClassInvalid, Text: "the message is empty"}
	}
	if !c.lifetime.Enter() {
		return transports.NotWritten, c.lifetime.EndError()
	}
	defer c.lifetime.Leave()
	d, err := c.out.Send(ctx, m.Body)
	if err == nil && d != transports.Written {
		err = errs.ContextError(ctx, "sending to the server, which does not read,")
	}
	return d, err
}

// Negotiated implements Conn. It does nothing, because every version of the protocol writes its lines alike.
func (c *connection) Negotiated(string) {}

// Close implements Conn.
func (c *connection) Close(ctx context.Context) error { return c.lifetime.Close(ctx) }

// Released implements Conn.
func (c *connection) Released() <-chan struct{} { return c.lifetime.Released }

// Info implements Conn.
func (c *connection) Info() transports.Info { return transports.Info{Noise: c.noise.Load()} }

// readLoop feeds the splitter until the stream ends. It is inside the lifetime only while it feeds: a Read that does not return,
// although the stream is closed, does not hold up the end of the connection.
func (c *connection) readLoop() {
	defer close(c.readEnded)
	returned := false
	defer func() {
		if v := recover(); v != nil {
			c.lifetime.End(panicError("its Read", v))
		} else if !returned {
			c.lifetime.End(goexitError("its Read"))
		}
	}()
	c.readLines()
	returned = true
}

// readLines reads until the stream or the connection has ended.
func (c *connection) readLines() {
	buf := make([]byte, readSize)
	for empty := 0; ; {
		n, err := c.stream.Read(buf)
		if n < 0 || n > len(buf) {
			c.lifetime.End(&transports.Error{Class: messages.ClassProtocol, Text: "the stream returned an impossible number of bytes"})
			return
		}
		if n == 0 && err == nil {
			if empty++; empty == maxEmptyReads {
				err = io.ErrNoProgress
			}
		} else {
			empty = 0
		}
		if (n > 0 || err != nil) && !c.feedLines(buf[:n], err) {
			return
		}
	}
}

// feedLines gives the splitter what was read, and ends the connection if that was the last. It reports whether to read on.
func (c *connection) feedLines(p []byte, err error) bool {
	if !c.lifetime.Enter() {
		return false
	}
	defer c.lifetime.Leave()
	if !c.lines.Feed(p) {
		c.lifetime.End(&transports.Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"})
		return false
	}
	if c.lines.IsDropping() {
		c.share.Charge(incoming.ReadCost(len(p)), budget.Unknown, time.Now())
	}
	if err == nil {
		incoming.TakePause(c.share, c.lifetime.Ctx.Done())
		return true
	}
	c.lines.EndStream()
	e := &transports.Error{Class: messages.ClassNetwork, Text: "the server closed the stream"}
	if !errors.Is(err, io.EOF) {
		e.Text = "the stream broke: " + c.describe(err)
	}
	c.lifetime.End(e)
	return false
}

// onNoise reports a line that is no message.
func (c *connection) onNoise(line []byte) {
	c.noise.Add(1)
	// The conversion copies, because line is a part of the reader's buffer.
	c.lifetime.Sink.Noise([]byte(c.redactor.RedactStart(string(line), incoming.NoiseSize)))
}

// panicError is the error of a panic in a function of the program's stream, which it names.
func panicError(function string, v any) *transports.Error {
	e := errs.PanicError(v)
	e.Text = "the program's stream: " + function + ": " + e.Text
	return e
}

// goexitError is the error of a function of the program's stream that ended its goroutine, as t.Fatal in a test does.
func goexitError(function string) *transports.Error {
	return &transports.Error{Class: messages.ClassPanic, Text: "the program's stream: " + function + " ended its goroutine (runtime.Goexit)"}
}

// writeLine writes one message and its newline. The stream's Write runs in a goroutine of its own, with bytes of its own: one that
// does not return although the stream was closed is left behind.
func (c *connection) writeLine(body []byte) (begun bool, err error) {
	line := append(append(make([]byte, 0, len(body)+1), body...), '\n')
	done := make(chan error, 1)
	go func() {
		var err error = goexitError("its Write") // it stays where Write does not return
		defer func() {
			if v := recover(); v != nil {
				err = panicError("its Write", v)
			}
			done <- err
		}()
		var n int
		if n, err = c.stream.Write(line); err == nil && n < len(line) {
			err = io.ErrShortWrite
		}
	}()
	select {
	case err = <-done:
		return true, err
	case <-c.lifetime.Ctx.Done():
	}
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case err = <-done:
	case <-timer.C:
		err = errors.New("the write did not return")
	}
	return true, err
}

// handleWriteError ends the connection drainTime after a write has failed, unless the reader finds the reason before. The queue
// calls it with its lock held, so that it must not block.
func (c *connection) handleWriteError(err error) {
	cause := &transports.Error{Class: messages.ClassNetwork, Text: "the stream broke: " + c.describe(err)}
	var panicked *transports.Error
	if errors.As(err, &panicked) {
		cause = panicked
	}
	time.AfterFunc(drainTime, func() { c.lifetime.End(cause) })
}

// closeStream closes the stream when the lifetime has ended, and waits for the reader, for Grace at most.
func (c *connection) closeStream() {
	defer c.lifetime.LeaveRecovering()
	c.out.FailAll(c.lifetime.EndError())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.closeQuietly(c.stream)
		<-c.readEnded
	}()
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// closeQuietly closes a stream, nil included. What its Close says comes too late to help, and a panic of it ends nothing else.
func (c *connection) closeQuietly(rwc io.Closer) {
	defer func() { _ = recover() }()
	if rwc != nil {
		_ = rwc.Close()
	}
}
