package connect

import (
	"net"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
)

// outbox writes lines to a daemon in a goroutine of its own: a daemon that waits for the agent to read must not keep the agent's
// answers from being written. Its methods may be called on nil, which stands for no daemon.
type outbox struct {
	mu    sync.Mutex
	more  sync.Cond // the queue has grown, or the end has come
	queue [][]byte
	bytes int
	// finished says that the last line is client.DrainedLine, when the queue is empty; ended drops what is left.
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
			_, _ = conn.Write([]byte(client.DrainedLine + "\n")) // the daemon answers what it has, and ends the connection
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

// finishWriting tells the daemon, once everything is written, that nothing follows. The connection stays open on both sides: by its end the
// daemon learns that the answers are not wanted any more.
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
