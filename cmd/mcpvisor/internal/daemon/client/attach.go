package client

import (
	"bufio"
	"context"
	"net"
	"time"
)

// Attachment keeps the servers of a directory in the daemon as long as it is open, for a command that uses them over the control socket.
type Attachment struct {
	// Notes are for the person.
	Notes []string
	// Started is true if this process has started the daemon. The daemon then ends when this attachment is closed, unless an agent or
	// another command uses it.
	Started bool

	conn net.Conn
	// gone gets how the daemon ended the attachment.
	gone chan Ending
}

// Ending says how an attachment ends.
type Ending int

const (
	// Lost: the daemon has gone without a word, as after a kill.
	Lost Ending = iota
	// Ended: the daemon ends in good order. A person has called "mcpvisor down", or its last user has left.
	Ended
	// Replaced: a daemon of a newer program takes the place.
	Replaced
	// Left: the daemon goes on without this attachment.
	Left
)

// Attach attaches to the daemon for the servers of a directory. Without one it starts it, or, unless start is set, returns an error that
// wraps control.ErrNotRunning.
func Attach(ctx context.Context, dir string, lookup func(string) (string, bool), start bool) (*Attachment, error) {
	d := dialer{action: ActionAttach, dir: dir, lookup: lookup, mayStart: start}
	conn, r, notes, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	a := &Attachment{Notes: notes, Started: d.started, conn: conn, gone: make(chan Ending, 1)}
	go func() { // it ends with the connection
		defer func() {
			if recover() != nil {
				a.gone <- Lost
			}
		}()
		a.gone <- awaitEnding(r)
	}()
	return a, nil
}

// awaitEnding reads the daemon's last word.
func awaitEnding(r *bufio.Reader) Ending {
	var last Welcome
	switch err := ReadLine(r, &last); {
	case err != nil:
		return Lost
	case last.Replaced:
		return Replaced
	case last.Draining:
		return Ended
	}
	return Left
}

// Gone gets a value when the daemon ends the attachment.
func (a *Attachment) Gone() <-chan Ending { return a.gone }

// Detach ends the attachment, and returns what becomes of the daemon. After Ended, AwaitEnd waits for it.
func (a *Attachment) Detach() Ending {
	half, ok := a.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return Lost
	}
	select {
	case e := <-a.gone:
		return e
	case <-time.After(GreetingTime):
		return Lost
	}
}

// AwaitEnd waits until the daemon has ended, which closes the connection.
func (a *Attachment) AwaitEnd(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = a.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = a.conn.SetReadDeadline(time.Now().Add(DrainTime + CloseTime + 5*time.Second)) // without it the wait ends with ctx
	var none [1]byte
	for {
		if _, err := a.conn.Read(none[:]); err != nil {
			return
		}
	}
}

// Close cuts the attachment.
func (a *Attachment) Close() error { return a.conn.Close() }
