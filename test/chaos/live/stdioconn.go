package live

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

// stdioConn is a child that serves one connection. What the child reads comes here, and what it shall do goes there; the
// machine is here.
type stdioConn struct {
	owner   *chaosServer
	conn    int
	pid     int
	raw     net.Conn
	control *controlConn

	// Guarded by the seat's lock.
	accepted     bool
	earlyLines   [][]byte // lines that came before the machine had accepted
	clientClosed bool     // the manager has asked it to end
	downRecorded bool
	stopped      bool
	ended        bool // the control connection is at its end: the process is gone, or as good as gone

	sendQueue chan func() error // what is to be sent to the child, in order
	stop      sync.Once
	done      chan struct{}
}

// maxQueuedSends bounds what waits for a child that does not take it. More means that the child is not there.
const maxQueuedSends = 4096

// serveStdioConn is the life of one control connection.
func serveStdioConn(s *chaosServer, raw net.Conn, w *controlConn, g greeting) {
	p := &stdioConn{owner: s, pid: g.PID, raw: raw, control: w, sendQueue: make(chan func() error, maxQueuedSends), done: make(chan struct{})}
	go p.sendLoop()
	s.addConn(func(conn int) serverConn { p.conn = conn; return p })
	p.readFrames()
	p.recordEnd()
}

// readFrames reads what the child says until it ends.
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

// performAction implements link.
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
		if p.stopped { // it hears nothing, and what ends a process does not wait until it goes on
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

// recordDown notes once that the server's side has ended, if the manager did not ask for it.
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

// queueSend lets the sender do something. A child that takes nothing for so long that the queue is full is cut off.
func (p *stdioConn) queueSend(f func() error) {
	select {
	case p.sendQueue <- f:
	default:
		_ = p.raw.Close()
	}
}

// sendLoop writes to the control connection: a process that is stopped may not take anything for a while.
func (p *stdioConn) sendLoop() {
	for {
		select {
		case f := <-p.sendQueue:
			if f() != nil {
				return // hear sees the same end
			}
		case <-p.done:
			return
		}
	}
}

// reapTimeout is how long the end of a process is waited for once its control connection has ended: it is a zombie until
// its parent, the manager, has taken its status.
const reapTimeout = 10 * time.Second

// recordEnd notes the end of the process, and that nothing is left when it is gone.
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
			return // it is still among the connections: the invariants see a process too many
		}
	}
	p.owner.releaseConn(p.conn, p)
}

// isGone reports whether nothing is left of the process.
func (p *stdioConn) isGone() bool { return p.ended && isProcessGone(p.pid) }

// processIDs implements link.
func (p *stdioConn) processIDs() []int {
	if p.ended {
		return nil
	}
	return []int{p.pid}
}

// cutConn implements link. The child ends by itself when it sees that.
func (p *stdioConn) cutConn() { _ = p.raw.Close() }
