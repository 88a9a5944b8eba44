// Package connect holds the command connect, by which an agent uses the servers of mcpvisor: it carries the agent's messages from
// standard input to the daemon of the user and back, and the command down, which ends the daemon.
//
// How it fits: package daemon finds or starts the daemon and greets it. The bridge (bridge.go) decides what becomes of each line; it
// is a value without I/O. The command (this file) reads and writes, and finds the next daemon when one has gone.
//
//	agent ── stdin ──> carryLines ──> bridge ──> outbox ──> daemon
//	agent <── stdout ── carryLines <── bridge <──────────── daemon
//
// Guarantees: the agent's session survives the daemon: a new one is told the handshake, the log level and the subscriptions. A
// request that only reads is asked again; any other that the old daemon had is answered as unknown, and never sent twice. What comes
// while there is no daemon waits for the next one, within bounds. A daemon that is replaced by a newer version answers what it has.
//
// Not promised: progress and partial results of what a daemon was doing when it was killed.
package connect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

const (
	// maxLine bounds a message in bytes.
	maxLine = 64 << 20
	// maxWaiting bounds what waits for a daemon; beyond it the agent is not read.
	maxWaiting = 16 << 20
	// firstRetry and lastRetry bound the time between two attempts to find or start a daemon.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// lastWrite is how long an agent has to read when this process is told to end.
	lastWrite = 2 * time.Second
	// lastAnswers bounds the wait for answers after the agent has closed its side.
	lastAnswers = 30 * time.Second
)

// programStart is when the agent began to wait for its servers: it has started this program.
var programStart = time.Now()

// NewConnect returns the command "connect".
func NewConnect(o *cli.Options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Give an agent all servers of mcpvisor, as one server over stdio",
		Long: `This is the command that an agent's configuration names; mcpvisor clients connect writes it there. It speaks MCP on standard input
and output, and passes everything on to the daemon of this user, which it starts if there is none. All agents share the servers.

The servers are those of the project in whose directory the agent works, and yours. A server of a project that you have not approved
is not started; standard error says which command approves it. The daemon ends ten minutes after its last agent, or with
mcpvisor down. If it is killed, or replaced by a newer version, agents go on.

Of the agent's variables only those that approved entries mention reach the daemon.`,
		Example: `  mcpvisor clients connect cursor
  mcpvisor connect --project ~/src/website`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConnect(cmd.Context(), o, dir) },
	}
	cmd.Flags().StringVar(&dir, "project", "", "use the servers of the project in this `directory`; the working directory if not given")
	_ = cmd.MarkFlagDirname("project") // this flag exists
	return cmd
}

// NewDown returns the command "down".
func NewDown(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the daemon that agents use",
		Long: `Ends the daemon that mcpvisor connect has started, and its servers. What agents have asked is answered first, for at most ten
seconds. An agent that is still connected starts a new daemon with its next request.

Exit codes: 0 it has ended, or there was none · 1 it has not ended in time.`,
		Example: "  mcpvisor down",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			there, err := client.End(cmd.Context())
			switch {
			case err != nil:
				return exit.WithCode(exit.Failed, err)
			case there:
				fmt.Fprintln(o.Out, "The daemon has ended.")
			default:
				fmt.Fprintln(o.Out, "No daemon runs.")
			}
			return nil
		},
	}
}

// runConnect carries messages between standard input and output and the daemon until the agent goes.
func runConnect(ctx context.Context, o *cli.Options, dir string) error {
	// The daemon reads the files of the project by itself, and approvals with them: a file that one agent names is not all agents'.
	if len(o.Configs) > 0 {
		return exit.With(exit.Usage, "connect takes no --config: put the servers into a file of the project or of yours, or use mcpvisor serve --stdio")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return exit.With(exit.Usage, "the working directory is not known; change to another one, or give --project")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return exit.With(exit.Usage, fmt.Sprintf("--project: %s is no directory", messages.Line(dir, 0)))
	}
	c := &carrier{in: o.In, out: o.Out, warn: func(text string) { fmt.Fprintln(o.Err, "mcpvisor: "+text) }}
	c.dial = func(ctx context.Context, began time.Time) (net.Conn, *bufio.Reader, []string, error) {
		return client.Dial(ctx, client.Wish{Dir: dir, Began: began, Lookup: os.LookupEnv})
	}
	return c.carryUntilEnd(ctx)
}

// carrier carries lines. One goroutine, that of carryLines, owns the bridge.
type carrier struct {
	in   io.Reader
	out  io.Writer
	warn func(text string)
	// dial finds a daemon; began is when the agent began to wait for one.
	dial func(ctx context.Context, began time.Time) (net.Conn, *bufio.Reader, []string, error)

	bridge bridge
	// conn, outbox and fromDaemon belong to the present daemon; nil without one.
	conn       net.Conn
	outbox     *outbox
	fromDaemon chan []byte
	// lastReason is what was warned of last, so that it is said once.
	lastReason string
}

// dialed is the result of an attempt to find a daemon.
type dialed struct {
	conn  net.Conn
	r     *bufio.Reader
	notes []string
	err   error
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
	defer c.closeConn()
	fromAgent := make(chan []byte)
	go func() { // it ends with standard input, or with the process
		defer close(fromAgent)
		_ = readLines(ctx, bufio.NewReaderSize(c.in, 64<<10), fromAgent)
	}()
	dials := make(chan dialed, 1)
	began := programStart
	attempt := func(after time.Duration) {
		began := began
		go func() {
			t := time.NewTimer(after)
			defer t.Stop()
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			var d dialed
			d.conn, d.r, d.notes, d.err = c.dial(ctx, began)
			dials <- d // there is room: one attempt is made at a time
		}()
	}
	attempt(0)
	retry := firstRetry
	var agentGone <-chan time.Time
	for {
		var out lines
		agent := fromAgent
		// An agent that asks more than a daemon takes is not read meanwhile.
		if c.bridge.waitingBytes() > maxWaiting || c.outbox.queuedBytes() > maxWaiting {
			agent = nil
		}
		select {
		case line, ok := <-agent:
			if !ok {
				fromAgent = nil
				agentGone = time.After(lastAnswers)
				if c.conn == nil && len(c.bridge.open) == 0 {
					return nil
				}
				c.outbox.finishWriting()
				break
			}
			out = c.bridge.fromAgent(line)
		case line, ok := <-c.fromDaemon:
			if !ok {
				c.closeConn()
				out = c.bridge.loseDaemon()
				if fromAgent == nil && len(c.bridge.open) == 0 {
					return c.writeLines(out)
				}
				began = time.Now()
				attempt(0)
				break
			}
			if isDrainLine(line) {
				out = c.bridge.stopSending([]byte(client.DrainedLine))
			} else {
				out = c.bridge.fromDaemon(line)
			}
		case d := <-dials:
			if d.err != nil {
				c.warnOnce(d.err.Error())
				out = c.bridge.refuseWaiting(messages.Line(d.err.Error(), 400))
				if fromAgent == nil {
					return c.writeLines(out)
				}
				attempt(retry)
				retry = min(2*retry, lastRetry)
				break
			}
			retry, c.lastReason = firstRetry, ""
			for _, note := range d.notes {
				c.warn(note)
			}
			c.conn, c.outbox, c.fromDaemon = d.conn, newOutbox(d.conn), make(chan []byte)
			go func(to chan<- []byte) { // it ends with the connection
				defer close(to)
				_ = readLines(ctx, d.r, to)
			}(c.fromDaemon)
			out = c.bridge.beginDaemon()
		case <-c.outbox.whenEmpty():
		case <-agentGone:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err := c.writeLines(out); err != nil {
			return err
		}
		if fromAgent == nil && c.outbox != nil {
			c.outbox.finishWriting()
		}
	}
}

// warnOnce says why there is no daemon, until the reason changes.
func (c *carrier) warnOnce(reason string) {
	if reason != c.lastReason {
		c.warn(messages.Line(reason, 400))
	}
	c.lastReason = reason
}

// closeConn ends the connection to the present daemon.
func (c *carrier) closeConn() {
	if c.conn != nil {
		_ = c.conn.Close() // what was not sent is known to the bridge
		c.outbox.abandonQueue()
	}
	c.conn, c.outbox, c.fromDaemon = nil, nil, nil
}

// writeLines writes what the bridge wants. Lines for a daemon that has gone are dropped: the bridge learns of its end.
func (c *carrier) writeLines(out lines) error {
	for _, line := range out.toDaemon {
		c.outbox.putLine(line)
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

// isDrainLine reports whether a line is that by which a daemon announces its end.
func isDrainLine(line []byte) bool {
	if len(line) > 2*len(client.DrainLine) {
		return false
	}
	word, _ := rawjson.Text(rawjson.Member(line, "mcpvisor"))
	return word == "draining"
}

// errTooLong ends a side that sends a line beyond maxLine.
var errTooLong = errors.New("a message is too long")

// readLines sends each line, without empty ones, until the end.
func readLines(ctx context.Context, r *bufio.Reader, to chan<- []byte) error {
	for {
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			if len(line)+len(part) > maxLine {
				return errTooLong
			}
			line = append(line, part...)
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil {
				return err // a line without an end is none
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		select {
		case to <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// outbox writes lines to a daemon in a goroutine of its own: a daemon that waits for the agent to read must not keep the agent's
// answers from being written. Its methods may be called on nil, which stands for no daemon.
type outbox struct {
	mu    sync.Mutex
	more  sync.Cond // the queue has grown, or the end has come
	queue [][]byte
	bytes int
	// finished closes the writing side when the queue is empty, ended drops what is left.
	finished, ended bool
	// emptied gets a value when the queue has become empty.
	emptied chan struct{}
}

// newOutbox begins to write to a connection.
func newOutbox(conn net.Conn) *outbox {
	b := &outbox{emptied: make(chan struct{}, 1)}
	b.more.L = &b.mu
	go func() { // it ends with abandonQueue, finishWriting, or an error of the connection
		defer func() { _ = recover() }() // the reader of the connection notices its end
		b.writeQueue(conn)
	}()
	return b
}

// writeQueue writes until the end. After an error it drops everything: the reader of the connection notices the end.
func (b *outbox) writeQueue(conn net.Conn) {
	for {
		b.mu.Lock()
		for len(b.queue) == 0 && !b.ended && !b.finished {
			b.more.Wait()
		}
		batch, last := b.queue, b.finished
		b.queue, b.bytes = nil, 0
		ended := b.ended
		b.mu.Unlock()
		if ended {
			return
		}
		if len(batch) == 0 && last {
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite() // the daemon answers what it has, and ends the connection
			}
			return
		}
		var text []byte
		for _, line := range batch {
			text = append(append(text, line...), '\n')
		}
		if _, err := conn.Write(text); err != nil {
			b.abandonQueue()
			return
		}
		select {
		case b.emptied <- struct{}{}:
		default:
		}
	}
}

// putLine adds a line.
func (b *outbox) putLine(line []byte) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended && !b.finished {
		b.queue = append(b.queue, line)
		b.bytes += len(line)
		b.more.Signal()
	}
}

// queuedBytes returns the bytes that wait.
func (b *outbox) queuedBytes() int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// whenEmpty gets a value when everything was written.
func (b *outbox) whenEmpty() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.emptied
}

// finishWriting closes the writing side once everything is written.
func (b *outbox) finishWriting() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished = true
	b.more.Signal()
}

// abandonQueue ends the writing.
func (b *outbox) abandonQueue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.queue, b.bytes = true, nil, 0
	b.more.Signal()
}
