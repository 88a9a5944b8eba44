package performer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// memoryEndpoint is the endpoint of a stdio server in memory: nothing has to be started, so that nothing can be taken away.
type memoryEndpoint struct{}

func (*memoryEndpoint) allowConns() error               { return nil }
func (*memoryEndpoint) refuseConns()                    {}
func (*memoryEndpoint) endpointSpec() messages.Spec     { return messages.Spec{Type: messages.Stdio} }
func (*memoryEndpoint) blockStart(messages.Class, bool) {}
func (*memoryEndpoint) close()                          {}

// memoryConn is the connection of a stdio server in memory, which is what a process is to a client: it reads lines, writes bytes and
// ends.
type memoryConn struct {
	owner *Server
	conn  int
	// toServer and toClient are its standard input and output; output writes to the latter without making the machine wait.
	toServer, toClient *memoryPipe
	output             *pipeWriter

	// The server's lock guards these. opened is closed when the machine has accepted or rejected the connection.
	accepted     bool
	refusal      error
	clientClosed bool
	ended        bool
	opened       chan struct{}
	// exited is closed when the server's side has ended.
	exited chan struct{}
}

// OpenStream starts the server anew, as a client starts a process, and returns the client's side of its standard input and output:
// lines in both directions. The group must be in memory. Close ends the process as a client should: its input ends, and if it goes
// on all the same, it is told to end after a while, and killed after another. An error is that of ctx, or of a server that cannot
// be started.
func (s *Server) OpenStream(ctx context.Context) (io.ReadWriteCloser, error) {
	c := &memoryConn{
		owner: s, toServer: newMemoryPipe(), toClient: newMemoryPipe(), opened: make(chan struct{}), exited: make(chan struct{}),
	}
	c.output = newPipeWriter(c.toClient)
	s.addConn(func(conn int) serverConn { c.conn = conn; return c })
	select {
	case <-c.opened:
	case <-ctx.Done():
		s.mu.Lock()
		if !c.accepted && c.refusal == nil {
			s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, "") })
			c.refusal = ctx.Err()
			s.releaseConnLocked(c.conn, c)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.refusal != nil {
		go c.endPipes()
		return nil, c.refusal
	}
	go c.readLines()
	return &memoryStream{c: c}, nil
}

// readLines gives what the client writes to the machine, until the client or the server ends.
func (c *memoryConn) readLines() {
	for {
		line, err := c.toServer.readLine()
		if err != nil {
			break
		}
		c.owner.mu.Lock()
		if body := bytes.TrimRight(line, "\r\n"); !c.ended && len(body) > 0 {
			c.owner.receiveMessage(c.conn, body, nil)
		}
		c.owner.mu.Unlock()
	}
}

// closeByClient is what a client does to a process that it wants no more.
func (c *memoryConn) closeByClient() {
	c.toServer.closeWrite()
	c.toClient.closeRead()
	for _, signal := range []bool{false, true} {
		c.owner.askMachine(func(now time.Duration) []peer.Action {
			c.clientClosed = true
			if c.ended {
				return nil
			}
			return c.owner.machine.Closed(now, c.conn, signal)
		})
		t := time.NewTimer(grace)
		select {
		case <-c.exited:
			t.Stop()
			return
		case <-t.C:
		}
	}
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	if !c.ended {
		c.owner.machine.Killed(c.owner.now(), c.conn)
		c.endLocked("signal: killed")
	}
}

// grace is the time that a process has to end by itself.
const grace = 2 * time.Second

// performAction implements serverConn.
func (c *memoryConn) performAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		if !c.accepted && c.refusal == nil {
			c.accepted = true
			close(c.opened)
		}
	case peer.Reject:
		if !c.accepted && c.refusal == nil {
			c.refusal = errors.New(messages.Line("the server cannot be started: "+string(a.Class)+" "+a.Text, 200))
			close(c.opened)
			c.owner.releaseConnLocked(c.conn, c)
		}
	case peer.Send:
		body := append(append(make([]byte, 0, len(a.Body)+1), a.Body...), '\n')
		c.output.enqueueOutput(rawOutput{Bytes: body, Chunk: a.Chunk, Every: a.Every})
	case peer.Raw:
		if !a.Stderr {
			c.output.enqueueOutput(rawOutput{Bytes: a.Bytes, Repeat: a.Repeat, Chunk: a.Chunk, Every: a.Every})
		}
	case peer.Exit:
		c.endLocked(a.Text)
	case peer.Stop:
		c.toServer.setReading(a.Resume)
	case peer.PauseReading:
		c.toServer.setReading(a.Resume)
	}
}

// endLocked ends the server's side: what it has written arrives first. The caller holds the server's lock.
func (c *memoryConn) endLocked(text string) {
	if c.ended {
		return
	}
	c.ended = true
	if !c.clientClosed {
		c.owner.recordLocked(history.Event{Kind: history.Down, Conn: c.conn, Class: messages.ClassExited, Text: text})
	}
	go func() {
		c.output.flushAndStop()
		c.endPipes()
		close(c.exited)
		c.owner.releaseConn(c.conn, c)
	}()
}

// endPipes closes the server's ends of both pipes.
func (c *memoryConn) endPipes() {
	c.toServer.closeRead()
	c.toClient.closeWrite()
	if !c.output.isEnding() {
		c.output.flushAndStop()
	}
}

// processIDs implements serverConn: there is no process.
func (c *memoryConn) processIDs() []int { return nil }

// cutConn implements serverConn.
func (c *memoryConn) cutConn() {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.endLocked("signal: killed")
}

// memoryStream is the client's side of a memoryConn.
type memoryStream struct {
	c    *memoryConn
	once sync.Once
}

// Read implements io.Reader. It returns io.EOF when the server or the client has ended.
func (m *memoryStream) Read(p []byte) (int, error) { return m.c.toClient.Read(p) }

// Write implements io.Writer. It blocks while the server does not read and the buffer is full.
func (m *memoryStream) Write(p []byte) (int, error) { return m.c.toServer.Write(p) }

// Close implements io.Closer. It may be called more than once, and does not wait for the end of the server.
func (m *memoryStream) Close() error {
	m.once.Do(func() { go m.c.closeByClient() })
	return nil
}

// Ended reports whether the server's side has ended: nothing that is written arrives any more.
func (m *memoryStream) Ended() bool {
	select {
	case <-m.c.exited:
		return true
	default:
		return false
	}
}

// memoryPipe is a pipe with a buffer, as that of a process. It is safe for concurrent use.
type memoryPipe struct {
	mu   sync.Mutex
	wake *sync.Cond
	// buffer holds what was written and not read. notReading makes the reader of lines wait; oneMore lets one line pass before,
	// because a reader that stops is in the middle of a read, and by that line the machine sees that its fault has an effect.
	buffer                      []byte
	notReading, oneMore         bool
	writeClosed, readSideClosed bool
}

// pipeSize is the room of a pipe in bytes, as on Linux.
const pipeSize = 64 << 10

func newMemoryPipe() *memoryPipe {
	p := &memoryPipe{}
	p.wake = sync.NewCond(&p.mu)
	return p
}

// Write implements io.Writer: it waits for room.
func (p *memoryPipe) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		for len(p.buffer) >= pipeSize && !p.readSideClosed && !p.writeClosed {
			p.wake.Wait()
		}
		if p.readSideClosed || p.writeClosed {
			return n, io.ErrClosedPipe
		}
		part := min(len(b), pipeSize-len(p.buffer))
		p.buffer = append(p.buffer, b[:part]...)
		b, n = b[part:], n+part
		p.wake.Broadcast()
	}
	return n, nil
}

// Read implements io.Reader.
func (p *memoryPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buffer) == 0 && !p.writeClosed && !p.readSideClosed {
		p.wake.Wait()
	}
	if p.readSideClosed || len(p.buffer) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buffer)
	p.buffer = p.buffer[n:]
	p.wake.Broadcast()
	return n, nil
}

// readLine returns the next line, of any length, with its end. It takes bytes out of the buffer before the line is whole, so that a
// line longer than the buffer arrives.
func (p *memoryPipe) readLine() (line []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for (len(p.buffer) == 0 || p.notReading && !p.oneMore) && !p.readSideClosed && !(p.writeClosed && !p.notReading) {
			p.wake.Wait()
		}
		if p.readSideClosed || len(p.buffer) == 0 {
			return line, io.EOF
		}
		n := len(p.buffer)
		if i := bytes.IndexByte(p.buffer, '\n'); i >= 0 {
			n = i + 1
		}
		line = append(line, p.buffer[:n]...)
		p.buffer = p.buffer[n:]
		p.wake.Broadcast()
		if line[len(line)-1] == '\n' {
			p.oneMore = false
			return line, nil
		}
	}
}

// setReading stops or resumes the reader of lines.
func (p *memoryPipe) setReading(reading bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notReading, p.oneMore = !reading, !reading
	p.wake.Broadcast()
}

// closeWrite ends the writer's side: what is in the buffer can still be read.
func (p *memoryPipe) closeWrite() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeClosed = true
	p.wake.Broadcast()
}

// closeRead ends the reader's side: writers fail.
func (p *memoryPipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readSideClosed = true
	p.wake.Broadcast()
}
