package connect

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"net"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// carrier carries lines. One goroutine, that of carryLines, owns the bridge and everything else here.
type carrier struct {
	in   io.Reader
	out  io.Writer
	warn func(text string)
	// dial finds a daemon for the servers of a directory; began is when the agent began to wait for them.
	dial func(ctx context.Context, dir string, began time.Time) (net.Conn, *bufio.Reader, []string, error)
	// workDir is the directory without roots, dir the one whose servers are wanted.
	workDir, dir string

	bridge bridge
	// link is the connection to the present daemon, former the one of before that still has requests; each is nil without one.
	link, former *link
	// fromAgent has the agent's lines; nil when it has gone.
	fromAgent chan []byte
	// dials gets the result of the one attempt that is made at a time, dialing says that it is made, delay is the time before the
	// next one, which is at least retry after a failure, and began when the agent began to wait for it.
	dials        chan dialed
	dialing      bool
	delay, retry time.Duration
	began        time.Time
	// linked is when the present daemon was found, and lost the time before the next one if it ends soon after that.
	linked time.Time
	lost   time.Duration
	// resting says that a person has ended the daemon: the next one is started when the agent asks for something.
	resting bool
	// shortSince is since when attempts fail because nothing is left to make one; zero while they do not.
	shortSince time.Time
	// chosen gets the directory of the roots, and choosing says that it is looked for; unchosen are the roots that came meanwhile.
	chosen   chan string
	choosing bool
	unchosen []string
	// lastReason is what was warned of last, so that it is said once.
	lastReason string
}

// dialed is the result of an attempt to find a daemon.
type dialed struct {
	dir   string
	conn  net.Conn
	r     *bufio.Reader
	notes []string
	err   error
}

// link is a connection to a daemon for the servers of a directory.
type link struct {
	dir        string
	conn       net.Conn
	outbox     *outbox
	fromDaemon chan []byte
}

// newLink begins to read and to write. It ends with close.
func newLink(ctx context.Context, d dialed) *link {
	l := &link{dir: d.dir, conn: d.conn, outbox: newOutbox(d.conn), fromDaemon: make(chan []byte)}
	go func() { // it ends with the connection
		defer close(l.fromDaemon)
		_ = serve.ReadLines(ctx, d.r, math.MaxInt, l.fromDaemon) // it is within the bounds of its servers
	}()
	return l
}

// received returns the lines of the daemon; without a link none come.
func (l *link) received() <-chan []byte {
	if l == nil {
		return nil
	}
	return l.fromDaemon
}

// box returns the outbox, nil without a link.
func (l *link) box() *outbox {
	if l == nil {
		return nil
	}
	return l.outbox
}

// close ends the connection. What was not sent is known to the bridge.
func (l *link) close() {
	if l != nil {
		_ = l.conn.Close() // the other side learns by it
		l.outbox.abandonQueue()
		go func() { // it ends with the connection: the reader may be about to give a line
			for range l.fromDaemon {
			}
		}()
	}
}

// carryUntilEnd carries lines until the agent has gone, or ctx has ended. A write to an agent that does not read then stays behind in its
// goroutine, and ends with the process.
func (c *carrier) carryUntilEnd(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- c.carryLines(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(lastWrite):
		return nil
	}
}

// carryLines is the loop of the command. It returns when the agent has gone and everything that it asked is answered, or with the error
// of writing to the agent.
func (c *carrier) carryLines(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		c.link.close()
		c.former.close()
	}()
	typed := make(chan []byte)
	go func() { // it ends with standard input, or with the process
		defer close(typed)
		_ = serve.ReadLines(ctx, c.in, maxLine, typed)
	}()
	c.fromAgent, c.dials, c.chosen = typed, make(chan dialed, 1), make(chan string, 1)
	c.retry, c.began = firstRetry, programStart
	c.dir = c.workDir
	var agentGone, rootsPause <-chan time.Time
	for {
		c.dialIfNeeded(ctx)
		agent := c.fromAgent
		// An agent that asks more than a daemon takes is not read meanwhile.
		if c.bridge.waitingBytes() > maxWaiting || c.link.box().queuedBytes() > maxWaiting || c.former.box().queuedBytes() > maxWaiting {
			agent = nil
		}
		var out lines
		select {
		case line, ok := <-agent:
			if !ok {
				c.fromAgent = nil
				agentGone = time.After(lastAnswers)
				break
			}
			out = c.bridge.fromAgent(line)
		case line, ok := <-c.link.received():
			out = c.receiveLine(line, ok)
		case line, ok := <-c.former.received():
			out = c.receiveFormer(line, ok)
		case d := <-c.dials:
			out = c.takeDialed(ctx, d)
		case dir := <-c.chosen:
			c.takeChosen(dir)
		case <-rootsPause:
			rootsPause = nil
			out = c.bridge.endRootsPause()
		case <-c.link.box().whenEmpty():
		case <-c.former.box().whenEmpty():
		case <-agentGone:
			return nil
		case <-ctx.Done():
			return nil
		}
		if out.rootsAsked {
			rootsPause = time.After(rootsInterval)
		}
		if err := c.writeLines(out); err != nil {
			return err
		}
		if c.bridge.formerEnds() {
			c.former.box().finishWriting() // the daemon closes it
		}
		if c.fromAgent == nil {
			c.link.box().finishWriting()
			if c.link == nil && c.former == nil && len(c.bridge.open) == 0 {
				return nil
			}
		}
	}
}

// dialIfNeeded begins an attempt if there is no daemon, or the agent has moved. A second move waits until the first one is over. An agent
// that has gone, or whose daemon a person has ended, needs one only for what it has asked.
func (c *carrier) dialIfNeeded(ctx context.Context) {
	switch {
	case c.dialing:
		return
	case c.link != nil && (c.link.dir == c.dir || c.former != nil || c.fromAgent == nil):
		return
	case c.link == nil && (c.fromAgent == nil || c.resting && c.bridge.waitingBytes() <= maxWaiting) && !c.bridge.hasRequests(0):
		return
	}
	c.dialing = true
	after, dir, began := c.delay, c.dir, c.began
	c.delay = 0
	go func() { // it ends with its attempt
		d := dialed{dir: dir}
		t := time.NewTimer(after)
		defer t.Stop()
		select {
		case <-ctx.Done():
			d.err = ctx.Err()
		case <-t.C:
			d.conn, d.r, d.notes, d.err = c.dial(ctx, dir, began)
		}
		c.dials <- d // there is room: one attempt is made at a time
	}()
}

// takeDialed takes the result of an attempt.
func (c *carrier) takeDialed(ctx context.Context, d dialed) (out lines) {
	c.dialing = false
	switch {
	case d.dir != c.dir: // the agent has moved meanwhile
		if d.err == nil {
			_ = d.conn.Close() // nothing was said on it
		}
		return out
	case d.err != nil:
		c.delay = c.retry
		c.retry = min(2*c.retry, lastRetry)
		if c.link != nil { // the agent keeps what it has
			c.warnOnce("the servers of " + messages.Line(d.dir, 0) + ", which the agent's roots name, cannot be had: " + d.err.Error())
			return out
		}
		c.warnOnce(d.err.Error())
		reason := messages.Line(d.err.Error(), 400)
		if client.IsShortage(d.err) {
			if c.shortSince.IsZero() {
				c.shortSince = time.Now()
			}
			if time.Since(c.shortSince) < shortageTime {
				return out // it may be over at the next attempt
			}
			reason += "; close programs that hold many files, or raise the limit of open files (ulimit -n), and ask again"
		}
		return c.bridge.refuseWaiting(reason)
	}
	c.retry, c.lastReason, c.linked, c.shortSince, c.resting = firstRetry, "", time.Now(), time.Time{}, false
	for _, note := range d.notes {
		c.warn(note)
	}
	old := c.link
	c.link = newLink(ctx, d)
	if old == nil {
		return c.bridge.beginDaemon()
	}
	c.former = old
	return c.bridge.moveDaemon()
}

// receiveLine takes a line of the present daemon, or its end.
func (c *carrier) receiveLine(line []byte, ok bool) lines {
	drains, stopped := readDrainLine(line)
	c.resting = c.resting || stopped
	switch {
	case !ok:
		c.link.close()
		c.link = nil
		c.began = time.Now()
		c.delayNext()
		return c.bridge.loseDaemon()
	case drains && c.former == nil && c.bridge.mayLeave():
		// What it has got may take it as long as a daemon has for its end. The next one serves the agent meanwhile.
		c.former, c.link = c.link, nil
		c.began = time.Now()
		c.delayNext()
		return c.bridge.leaveDaemon([]byte(client.DrainedLine), !stopped)
	case drains:
		return c.bridge.stopSending([]byte(client.DrainedLine))
	}
	return c.bridge.fromDaemon(line)
}

// delayNext sets the time before the next daemon. One that has lasted is followed at once. Daemons that end as soon as they are found, because
// something ends each of them, are started at growing intervals.
func (c *carrier) delayNext() {
	if c.began.Sub(c.linked) >= lastRetry {
		c.lost = 0
	}
	c.delay = c.lost
	c.lost = min(max(2*c.lost, firstRetry), lastRetry)
}

// receiveFormer takes a line of the former connection, or its end.
func (c *carrier) receiveFormer(line []byte, ok bool) (out lines) {
	drains, _ := readDrainLine(line)
	switch {
	case !ok:
		c.former.close()
		c.former = nil
		return c.bridge.loseFormer()
	case drains:
		out.toFormer = append(out.toFormer, []byte(client.DrainedLine))
		return out
	}
	return c.bridge.fromFormer(line)
}

// takeChosen moves the agent to the directory of its roots, or to that of before if they have none.
func (c *carrier) takeChosen(dir string) {
	c.choosing = false
	if dir != c.dir {
		c.dir, c.began = dir, time.Now()
		c.retry, c.delay = firstRetry, 0
	}
	if c.unchosen != nil {
		next := c.unchosen
		c.unchosen = nil
		c.chooseDirectory(next)
	}
}

// chooseDirectory looks for the first directory that is there. A file system may hang, so nothing waits for it.
func (c *carrier) chooseDirectory(directories []string) {
	if c.choosing {
		c.unchosen = directories
		return
	}
	c.choosing = true
	present, workDir := c.dir, c.workDir
	go func() { // it ends with the file system's answer
		defer func() {
			if recover() != nil {
				c.chosen <- present
			}
		}()
		c.chosen <- firstDirectory(directories, workDir, present)
	}()
}

// firstDirectory returns the first path that is a directory, otherwise if there is none. Of two names of the present one it returns the
// present one: that is no move.
func firstDirectory(paths []string, otherwise, present string) string {
	here, _ := os.Stat(present) // it may be gone
	for _, path := range append(paths[:len(paths):len(paths)], otherwise) {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			continue
		}
		if here != nil && os.SameFile(here, info) {
			return present
		}
		return path
	}
	return otherwise
}

// warnOnce says why there is no daemon, until the reason changes.
func (c *carrier) warnOnce(reason string) {
	if reason != c.lastReason {
		c.warn(messages.Line(reason, 400))
	}
	c.lastReason = reason
}

// writeLines writes what the bridge wants, and follows the roots of the agent. Lines for a daemon that has gone are dropped: the bridge
// learns of its end.
func (c *carrier) writeLines(out lines) error {
	for _, line := range out.toDaemon {
		c.link.box().putLine(line)
	}
	for _, line := range out.toFormer {
		c.former.box().putLine(line)
	}
	if out.rootsKnown {
		c.chooseDirectory(append([]string{}, out.directories...))
	}
	if len(out.toAgent) == 0 {
		return nil
	}
	var text []byte
	for _, line := range out.toAgent {
		text = append(append(text, bytes.TrimRight(line, "\r\n")...), '\n')
	}
	if _, err := c.out.Write(text); err != nil {
		return exit.With(exit.Failed, "the agent does not read any more")
	}
	return nil
}

// readDrainLine reports whether a line is one by which a daemon announces its end, and whether a person has stopped it.
func readDrainLine(line []byte) (drains, stopped bool) {
	if len(line) > 2*len(client.DrainLine) {
		return false, false
	}
	word, _ := rawjson.Text(rawjson.Member(line, "mcpvisor"))
	next, _ := rawjson.Text(rawjson.Member(line, "next"))
	return word == "draining", word == "draining" && next == "asked"
}
