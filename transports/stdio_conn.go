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
	p       *process
	sink    Sink
	grace   time.Duration
	fetches bool        // StdioConfig.Fetches
	spoke   atomic.Bool // a message has come
	printed tail        // what it wrote to standard output before that, whole lines without secrets
	out     outbox
	lines   lines
	tail    tail
	hide    *secrets
	noise   atomic.Int64
	exit    atomic.Pointer[string]
	guard   func() // tells the guard that the group is gone

	ending   sync.Once
	told     sync.Once
	stdout   inlet
	stderr   inlet
	reading  atomic.Int32  // how many of them are being read
	drained  chan struct{} // closed when none is
	share    *budget.Share
	hurried  sync.Once
	hurry    chan struct{} // closed when what is left in the pipes is to be read without a pause
	released chan struct{}
}

var (
	_ Poster = (*stdioConn)(nil)
	_ Worker = (*stdioConn)(nil)
)

func newStdioConn(cfg *StdioConfig, p *process, sink Sink) (Conn, error) {
	pipe, err := newOutlet(p.stdin)
	if err != nil {
		p.discard()
		return nil, startError(cfg, err)
	}
	hide := newSecrets(cfg)
	c := &stdioConn{
		p: p, sink: sink, grace: cfg.Grace, fetches: cfg.Fetches, hide: hide,
		guard:    func() {},
		printed:  tail{size: min(printedSize, cfg.StderrTail)},
		tail:     tail{size: cfg.StderrTail, overlap: hide.overlap()},
		stdout:   inlet{f: p.stdout},
		stderr:   inlet{f: p.stderr},
		drained:  make(chan struct{}),
		share:    cfg.Share,
		hurry:    make(chan struct{}),
		released: make(chan struct{}),
	}
	if cfg.Guard != nil {
		c.guard = cfg.Guard.Watch(p.cmd.Process.Pid)
	}
	c.lines = lines{
		limit: cfg.MaxMessage, endless: endlessLine, overlap: hide.overlap(),
		holding: holding{share: cfg.Share, ended: c.hurry},
		message: c.onMessage, large: func(over *oversize) { discard(sink, over) }, noise: c.onNoise,
	}
	c.out = outbox{pipe: pipe, broken: func() { c.end(pipeClosed, closedPipe("input")) }}
	c.reading.Store(2)
	go c.readOutput()
	go c.readErrors()
	go c.watch()
	return c, nil
}

// Send implements Conn. It returns when the pipe has taken the message.
func (c *stdioConn) Send(ctx context.Context, m Message) (Delivery, error) {
	return c.out.Send(ctx, m.Body)
}

// Post implements Poster.
func (c *stdioConn) Post(m Message) (Posting, Delivery, error) { return c.out.Post(m.Body) }

// Negotiated implements Conn. Every version of the protocol writes its lines alike.
func (c *stdioConn) Negotiated(string) {}

// Released implements Conn.
func (c *stdioConn) Released() <-chan struct{} { return c.released }

// Info implements Conn.
func (c *stdioConn) Info() Info {
	info := Info{PID: c.p.cmd.Process.Pid, StderrTail: c.printed.shown(c.hide) + c.tail.shown(c.hide), Noise: c.noise.Load(),
		Isolation: c.p.isolated.enforced()}
	if e := c.exit.Load(); e != nil {
		info.PID, info.Exit = 0, *e // another process may have the number by now
	}
	return info
}

// Work implements Worker. The child is reaped after its exit is known, so that its number is not another's.
func (c *stdioConn) Work() (procinfo.Work, error) {
	if c.exit.Load() != nil {
		return procinfo.Work{}, os.ErrProcessDone
	}
	return procinfo.Worked(c.p.cmd.Process.Pid)
}

// Close implements Conn.
func (c *stdioConn) Close(ctx context.Context) error {
	c.end(weClosed, &Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
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
	defer c.read()
	defer c.recovered() // the sink is code of the caller
	whole := true
	c.stdout.run(func(p []byte) bool {
		whole = c.lines.feed(p)
		if c.lines.dropping() {
			c.share.Charge(readPrice(len(p)), budget.Unknown, time.Now())
		}
		takePause(c.share, c.hurry)
		return whole
	})
	if !whole {
		c.end(fault, &Error{Class: messages.ClassProtocol, Text: "the server wrote a line that does not end"})
		return
	}
	c.lines.end()
	c.end(pipeClosed, closedPipe("output"))
}

func (c *stdioConn) readErrors() {
	defer c.read()
	defer c.recovered()
	c.stderr.run(func(p []byte) bool {
		c.tail.write(p)
		c.share.Charge(readPrice(len(p)), budget.Unknown, time.Now())
		takePause(c.share, c.hurry)
		return true
	})
}

// readOn has what is left read without a pause.
func (c *stdioConn) readOn() { c.hurried.Do(func() { close(c.hurry) }) }

// watch waits for the child's end.
func (c *stdioConn) watch() {
	defer c.recovered()
	c.p.awaitExit()
	c.end(childEnded, nil)
}

// recovered is deferred by every goroutine of the connection: a panic costs the connection, not the program.
func (c *stdioConn) recovered() {
	if v := recover(); v != nil {
		c.end(fault, panicError(v))
	}
}

// read notes that one of the two has been read to its end.
func (c *stdioConn) read() {
	if c.reading.Add(-1) == 0 {
		close(c.drained)
	}
}

func closedPipe(which string) *Error {
	return &Error{
		Class: messages.ClassProtocol,
		Text:  fmt.Sprintf("the server closed its standard %s and had not ended %v later", which, exitTime),
		Fix:   "a command that puts its server into the background cannot work",
	}
}
