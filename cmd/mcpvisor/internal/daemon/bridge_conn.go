package daemon

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// bridgeConn is the connection to a bridge. Writes of whole lines do not mix.
type bridgeConn struct {
	net.Conn
	// writing is held during a write, which lasts as long as the agent does not read.
	writing sync.Mutex

	// mu guards the fields below, and who sets the deadlines.
	mu sync.Mutex
	// passing says that messages are passed on, ending that the end of the daemon has been announced.
	passing, ending bool
}

// Write writes whole lines.
func (b *bridgeConn) Write(p []byte) (int, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	return b.Conn.Write(p)
}

// beginServing ends the time for the greeting; passing says that messages are passed on from now on. It reports false, and the deadlines
// stay, if the daemon has begun to end meanwhile.
func (b *bridgeConn) beginServing(passing bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending {
		return false
	}
	b.passing = passing
	_ = b.SetDeadline(time.Time{})
	return true
}

// announceEnd tells the bridge by a line to send nothing more; one that is still greeting, or to which no messages are passed on, is read no more.
// From the deadline on, nothing is written: a write that waits for an agent which does not read fails then.
func (b *bridgeConn) announceEnd(line string, deadline time.Time) {
	b.mu.Lock()
	b.ending = true
	_ = b.SetWriteDeadline(deadline)
	passing := b.passing
	if !passing {
		_ = b.SetReadDeadline(time.Unix(1, 0))
	}
	b.mu.Unlock()
	if passing {
		_, _ = b.Write([]byte(line + "\n")) // a bridge that has gone needs no notice
	}
}

// drainReader ends where the bridge says that it sends nothing more.
type drainReader struct {
	r *bufio.Reader
	// gone is called when the bridge has gone, before or after that: its answers have no reader any more.
	gone func()
	// watching has the goroutine that waits for the bridge to go, once it has said that it sends nothing more. It ends with the reading.
	watching sync.WaitGroup
	rest     []byte
	// begun says that rest is in the middle of a line.
	begun, ended bool
}

// Read returns whole lines or parts of them, and io.EOF in the place of client.DrainedLine.
func (d *drainReader) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		if d.ended {
			return 0, io.EOF
		}
		part, err := d.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && len(part) == 0 {
			d.gone()
			return 0, err
		}
		if !d.begun && isDrained(part) {
			d.ended = true
			d.watching.Go(d.awaitGone)
			return 0, io.EOF
		}
		d.begun = part[len(part)-1] != '\n'
		d.rest = part
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// awaitGone reads until the bridge has gone. A defect in reading counts as that: it costs this agent its answers, and not the daemon.
func (d *drainReader) awaitGone() {
	defer func() {
		_ = recover()
		d.gone()
	}()
	_, _ = io.Copy(io.Discard, d.r)
}

// isDrained reports whether a line is client.DrainedLine.
func isDrained(line []byte) bool {
	if len(line) > 2*len(client.DrainedLine) {
		return false
	}
	word, _ := rawjson.Text(rawjson.Member(line, "mcpvisor"))
	return word == "drained"
}
