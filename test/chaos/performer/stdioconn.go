package performer

import (
	"bytes"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// stdioConn is the connection of one process of a stdio server. It passes what the process reads to the machine, and the
// machine's actions to the process.
type stdioConn struct {
	// raw is closed to end the process; control is the same connection with its frames.
	owner   *Server
	conn    int
	pid     int
	raw     net.Conn
	control *controlConn

	// The server's lock guards these fields.
	// accepted is set by the machine's Accept; downRecorded keeps the end from being recorded twice; stopped is set between a
	// Stop and its Resume.
	accepted bool
	// earlyLines are the lines that came before the machine had accepted the connection.
	earlyLines [][]byte
	// clientClosed is set once the client has closed the input or sent SIGTERM; the end is then no crash.
	clientClosed bool
	downRecorded bool
	stopped      bool
	// ended is set when the control connection has ended, because the process is gone or about to go.
	ended bool

	// sendQueue holds what sendLoop writes to the child. done is closed, once by stop, when the control connection has ended.
	sendQueue chan func() error
	stop      sync.Once
	done      chan struct{}
}

// maxQueuedSends bounds sendQueue. A child that lets so many frames wait is taken for gone, and its connection is cut.
const maxQueuedSends = 4096

// serveStdioConn serves one control connection until it ends. Its goroutine is the connection's reader.
func serveStdioConn(s *Server, raw net.Conn, w *controlConn, g greeting) {
	p := &stdioConn{owner: s, pid: g.PID, raw: raw, control: w, sendQueue: make(chan func() error, maxQueuedSends), done: make(chan struct{})}
	go p.sendLoop()
	s.addConn(func(conn int) serverConn { p.conn = conn; return p })
	p.readFrames()
	p.recordEnd()
}

// readFrames handles what the child reports until the connection ends.
func (p *stdioConn) readFrames() {
	for {
		kind, body, err := p.control.readFrame()
		if err != nil {
			return
		}
		switch kind {
		case frameLine:
			p.receiveLine(body)
		case frameEOF, frameTerminated:
			p.owner.askMachine(func(now time.Duration) []peer.Action {
				p.clientClosed = true
				return p.owner.machine.Closed(now, p.conn, kind == frameTerminated)
			})
		case frameSpawned:
			var o spawnedChild
			_ = json.Unmarshal(body, &o)
		default:
		}
	}
}

// receiveLine gives a line to the machine, or keeps it until the machine has accepted the connection.
func (p *stdioConn) receiveLine(body []byte) {
	body = bytes.TrimRight(body, "\r\n")
	p.owner.mu.Lock()
	defer p.owner.mu.Unlock()
	if !p.accepted {
		p.earlyLines = append(p.earlyLines, body)
		return
	}
	p.owner.receiveMessage(p.conn, body, nil)
}

// performAction implements serverConn.
func (p *stdioConn) performAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		p.accepted = true
		for _, body := range p.earlyLines {
			p.owner.receiveMessage(p.conn, body, nil)
		}
		p.earlyLines = nil
	case peer.Reject:
		// A process cannot refuse to be started: it ends as soon as it runs.
		p.queueFrame(frameExit, exitOrder{Code: max(a.Code, 1)})
	case peer.Send:
		body := append(append(make([]byte, 0, len(a.Body)+1), a.Body...), '\n')
		if a.Chunk > 0 {
			p.queueFrame(frameFlood, rawOutput{Bytes: body, Chunk: a.Chunk, Every: a.Every})
			return
		}
		p.queueSend(func() error { return p.control.writeFrame(frameOutput, body) })
	case peer.Raw:
		p.queueFrame(frameFlood, rawOutput{Bytes: a.Bytes, Repeat: a.Repeat, Chunk: a.Chunk, Every: a.Every, Stderr: a.Stderr})
	case peer.Exit:
		p.recordDown(a.Text)
		// A stopped process reads no order, and an exit must not wait until the fault resumes it.
		if p.stopped {
			p.stopped = false
			resumeProcess(p.pid)
		}
		p.queueFrame(frameExit, exitOrder{Code: a.Code, Signal: a.Text})
	case peer.Stop:
		if p.stopped = !a.Resume; a.Resume {
			resumeProcess(p.pid)
		} else {
			stopProcess(p.pid)
		}
	case peer.PauseReading:
		kind := framePauseInput
		if a.Resume {
			kind = frameResumeInput
		}
		p.queueSend(func() error { return p.control.writeFrame(kind, nil) })
	case peer.Spawn:
		p.queueFrame(frameSpawn, spawnedChild{For: a.For, OwnSession: a.OwnSession})
	}
}

// recordDown records once that the server's side has ended, unless the client asked for that end. The caller holds the
// server's lock.
func (p *stdioConn) recordDown(text string) {
	if p.downRecorded || p.clientClosed {
		return
	}
	p.downRecorded = true
	p.owner.recordLocked(history.Event{Kind: history.Down, Conn: p.conn, Class: messages.ClassExited, Text: text})
}

func (p *stdioConn) queueFrame(kind frameKind, body any) {
	p.queueSend(func() error { return p.control.writeJSON(kind, body) })
}

// queueSend lets sendLoop write something. If the queue is full, it cuts the connection, because a caller that holds the
// server's lock must not wait.
func (p *stdioConn) queueSend(f func() error) {
	select {
	case p.sendQueue <- f:
	default:
		_ = p.raw.Close()
	}
}

// sendLoop writes to the control connection in its own goroutine, because a stopped process may take nothing for a while.
func (p *stdioConn) sendLoop() {
	for {
		select {
		case f := <-p.sendQueue:
			if f() != nil {
				// readFrames notices the same end.
				return
			}
		case <-p.done:
			return
		}
	}
}

// reapTimeout bounds the wait for the end of a process once its control connection has ended: it stays a zombie until its
// parent, the client, has collected its status.
const reapTimeout = 10 * time.Second

// recordEnd records the end of the process, and its release once the process is gone.
func (p *stdioConn) recordEnd() {
	_ = p.raw.Close()
	p.stop.Do(func() { close(p.done) })
	p.owner.mu.Lock()
	p.ended = true
	if p.owner.conns[p.conn] == serverConn(p) {
		p.recordDown("the process ended")
		p.owner.machine.Killed(p.owner.now(), p.conn)
	}
	p.owner.mu.Unlock()
	for deadline := time.Now().Add(reapTimeout); !isProcessGone(p.pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			// The connection stays in the list, and the invariants see a process too many.
			return
		}
	}
	p.owner.releaseConn(p.conn, p)
}

// isGone reports whether nothing is left of the process. releaseEndedLocked calls it.
func (p *stdioConn) isGone() bool { return p.ended && isProcessGone(p.pid) }

// processIDs implements serverConn.
func (p *stdioConn) processIDs() []int {
	if p.ended {
		return nil
	}
	return []int{p.pid}
}

// cutConn implements serverConn. The child exits when its control connection ends.
func (p *stdioConn) cutConn() { _ = p.raw.Close() }
