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

// process is a child that serves one connection. What the child reads comes here, and what it shall do goes there; the
// machine is here.
type process struct {
	seat *seat
	conn int
	pid  int
	raw  net.Conn
	wire *wire

	// Guarded by the seat's lock.
	accepted bool
	early    [][]byte // lines that came before the machine had accepted
	closing  bool     // the manager has asked it to end
	down     bool
	stopped  bool
	ended    bool // the control connection is at its end: the process is gone, or as good as gone

	out  chan func() error // what is to be sent to the child, in order
	stop sync.Once
	done chan struct{}
}

// outgoing bounds what waits for a child that does not take it. More means that the child is not there.
const outgoing = 4096

// serveProcess is the life of one control connection.
func serveProcess(s *seat, raw net.Conn, w *wire, g greeting) {
	p := &process{seat: s, pid: g.PID, raw: raw, wire: w, out: make(chan func() error, outgoing), done: make(chan struct{})}
	go p.send()
	s.attach(func(conn int) link { p.conn = conn; return p })
	p.hear()
	p.end()
}

// hear reads what the child says until it ends.
func (p *process) hear() {
	for {
		kind, body, err := p.wire.read()
		if err != nil {
			return
		}
		switch kind {
		case frameLine:
			p.line(body)
		case frameEOF, frameAsked:
			p.seat.tell(func(now time.Duration) []peer.Action {
				p.closing = true
				return p.seat.machine.Closed(now, p.conn, kind == frameAsked)
			})
		case frameSpawned:
			var o offspring
			_ = json.Unmarshal(body, &o)
		default:
		}
	}
}

func (p *process) line(body []byte) {
	body = bytes.TrimRight(body, "\r\n")
	p.seat.mu.Lock()
	defer p.seat.mu.Unlock()
	if !p.accepted {
		p.early = append(p.early, body)
		return
	}
	p.seat.receive(p.conn, body, nil)
}

// perform implements link.
func (p *process) perform(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		p.accepted = true
		for _, body := range p.early {
			p.seat.receive(p.conn, body, nil)
		}
		p.early = nil
	case peer.Reject:
		// A process cannot refuse to be started: it ends as soon as it runs.
		p.say(frameExit, exit{Code: max(a.Code, 1)})
	case peer.Send:
		body := append(append(make([]byte, 0, len(a.Body)+1), a.Body...), '\n')
		if a.Chunk > 0 {
			p.say(frameFlood, flood{Bytes: body, Chunk: a.Chunk, Every: a.Every})
			return
		}
		p.queue(func() error { return p.wire.write(framePut, body) })
	case peer.Raw:
		p.say(frameFlood, flood{Bytes: a.Bytes, Repeat: a.Repeat, Chunk: a.Chunk, Every: a.Every, Stderr: a.Stderr})
	case peer.Exit:
		p.tellDown(a.Text)
		if p.stopped { // it hears nothing, and what ends a process does not wait until it goes on
			p.stopped = false
			resume(p.pid)
		}
		p.say(frameExit, exit{Code: a.Code, Signal: a.Text})
	case peer.Stop:
		if p.stopped = !a.Resume; a.Resume {
			resume(p.pid)
		} else {
			stop(p.pid)
		}
	case peer.Deafen:
		kind := frameDeaf
		if a.Hear {
			kind = frameHear
		}
		p.queue(func() error { return p.wire.write(kind, nil) })
	case peer.Spawn:
		p.say(frameSpawn, offspring{For: a.For, OwnSession: a.OwnSession})
	}
}

// tellDown notes once that the server's side has ended, if the manager did not ask for it.
func (p *process) tellDown(text string) {
	if p.down || p.closing {
		return
	}
	p.down = true
	p.seat.noteLocked(history.Event{Kind: history.Down, Conn: p.conn, Class: messages.ClassExited, Text: text})
}

func (p *process) say(kind frame, body any) {
	p.queue(func() error { return p.wire.writeJSON(kind, body) })
}

// queue lets the sender do something. A child that takes nothing for so long that the queue is full is cut off.
func (p *process) queue(f func() error) {
	select {
	case p.out <- f:
	default:
		_ = p.raw.Close()
	}
}

// send writes to the control connection: a process that is stopped may not take anything for a while.
func (p *process) send() {
	for {
		select {
		case f := <-p.out:
			if f() != nil {
				return // hear sees the same end
			}
		case <-p.done:
			return
		}
	}
}

// reapTime is how long the end of a process is waited for once its control connection has ended: it is a zombie until
// its parent, the manager, has taken its status.
const reapTime = 10 * time.Second

// end notes the end of the process, and that nothing is left when it is gone.
func (p *process) end() {
	_ = p.raw.Close()
	p.stop.Do(func() { close(p.done) })
	p.seat.mu.Lock()
	p.ended = true
	if p.seat.links[p.conn] == link(p) {
		p.tellDown("the process ended")
		p.seat.machine.Killed(p.seat.now(), p.conn)
	}
	p.seat.mu.Unlock()
	for deadline := time.Now().Add(reapTime); !gone(p.pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return // it is still among the connections: the invariants see a process too many
		}
	}
	p.seat.release(p.conn, p)
}

// over reports whether nothing is left of the process.
func (p *process) over() bool { return p.ended && gone(p.pid) }

// pids implements link.
func (p *process) pids() []int {
	if p.ended {
		return nil
	}
	return []int{p.pid}
}

// cut implements link. The child ends by itself when it sees that.
func (p *process) cut() { _ = p.raw.Close() }
