package serve

import (
	"io"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// lineStream writes lines, one goroutine at a time, in order. Answers wait for their turn, within a bound of bytes; notices are dropped
// when too many wait.
type lineStream struct {
	failed func()
	// most bounds the bytes of answers that the agent has not read, share counts those of large ones against what all agents share.
	most  int64
	share *budget.Share

	mu    sync.Mutex
	more  sync.Cond // one of the fields below has changed
	queue []*queuedLine
	bytes int // of queue
	// writing has the lines that the goroutine has taken from the queue and not written.
	writing []*queuedLine
	// unread are the bytes of the answers that are not written: in the queue, on their way into it, or being written.
	unread int64
	ended  bool
	err    error
	// written says that nothing more will be written: everything is, or the rest was abandoned.
	written bool
}

// queuedLine is one message. Of an answer unread is its part of lineStream.unread, taken that of the share, and done is called when it is
// written or given up.
type queuedLine struct {
	body          []byte
	unread, taken int64
	done          func()
}

func newLineStream(out io.Writer, most int64, share *budget.Share, failed func()) *lineStream {
	s := &lineStream{failed: failed, most: most, share: share}
	s.more.L = &s.mu
	go func() { // it ends with closeStream, or with a write that was abandoned
		defer s.finishWriting()
		s.writeLines(out)
	}()
	return s
}

// finishWriting drops what was not written, and ends every wait for it.
func (s *lineStream) finishWriting() {
	s.mu.Lock()
	s.ended = true
	gone := append(s.writing, s.queue...)
	s.writing, s.queue, s.bytes = nil, nil, 0
	done := s.settleLines(gone)
	s.mu.Unlock()
	callAll(done)
	s.mu.Lock()
	s.written = true
	s.more.Broadcast()
	s.mu.Unlock()
}

// settleLines counts lines no more, and returns what must be called then without mu, which the caller holds.
func (s *lineStream) settleLines(lines []*queuedLine) (done []func()) {
	for _, l := range lines {
		s.unread -= l.unread
		s.share.Give(l.taken)
		if l.done != nil {
			done = append(done, l.done)
		}
		l.unread, l.taken, l.done = 0, 0, nil
	}
	return done
}

func callAll(done []func()) {
	for _, f := range done {
		f()
	}
}

// writePiece is how many bytes of lines are written at once; a line that is longer is written alone.
const writePiece = 64 << 10

// writeLines writes until the end. A write lasts as long as the agent does not read.
func (s *lineStream) writeLines(out io.Writer) {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ended {
			s.more.Wait()
		}
		s.writing, s.queue, s.bytes = s.queue, nil, 0
		over := len(s.writing) == 0 // and so it has ended
		s.more.Broadcast()
		s.mu.Unlock()
		if over {
			return
		}
		for s.writePart(out) {
		}
	}
}

// writePart writes the next lines of those that were taken; false if there are none any more, or the stream has failed or was abandoned.
func (s *lineStream) writePart(out io.Writer) bool {
	s.mu.Lock()
	n, size := 0, 0
	for n < len(s.writing) && (n == 0 || size+len(s.writing[n].body) < writePiece) {
		size += len(s.writing[n].body) + 1
		n++
	}
	part := s.writing[:n:n]
	s.mu.Unlock()
	if n == 0 {
		return false
	}
	b := make([]byte, 0, size)
	for _, l := range part {
		b = append(appendOneLine(b, l.body), '\n')
	}
	_, err := out.Write(b)
	s.mu.Lock()
	if len(s.writing) < n { // the stream was abandoned meanwhile
		s.mu.Unlock()
		return false
	}
	s.writing = s.writing[n:]
	done := s.settleLines(part)
	if err != nil {
		s.err, s.ended = err, true
		done = append(done, s.settleLines(s.writing)...)
		done = append(done, s.settleLines(s.queue)...)
		s.writing, s.queue, s.bytes = nil, nil, 0
		s.more.Broadcast()
	}
	s.mu.Unlock()
	callAll(done)
	if err != nil {
		s.failed()
	}
	return err == nil
}

func (s *lineStream) sendMessage(body []byte, must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := 1
	if must {
		room = 2
	}
	if s.ended || len(s.queue) >= room*maxQueuedEvents || s.bytes+len(body) > room*maxQueuedBytes && len(s.queue) > 0 {
		return false
	}
	s.queueLine(&queuedLine{body: body})
	return true
}

func (s *lineStream) queueLine(l *queuedLine) {
	s.queue = append(s.queue, l)
	s.bytes += len(l.body)
	s.more.Broadcast()
}

// writeAnswer queues an answer, and waits for room: an agent that does not read holds up its own requests only. If too many bytes of answers
// wait for the agent already, an error takes the place of this one. done, unless it is nil, is called once nothing is held any more.
func (s *lineStream) writeAnswer(id, body []byte, done func()) {
	l := &queuedLine{body: body, done: done}
	s.mu.Lock()
	if !s.countAnswer(l) {
		l.body = appendError(nil, id, unreadError(len(body), s.unread))
		s.unread += int64(len(l.body))
		l.unread = int64(len(l.body))
	}
	for len(s.queue) >= maxQueuedEvents && !s.ended {
		s.more.Wait()
	}
	if !s.ended {
		s.queueLine(l)
		s.mu.Unlock()
		return
	}
	dropped := s.settleLines([]*queuedLine{l})
	s.mu.Unlock()
	callAll(dropped)
}

// countAnswer counts an answer as unread, or refuses it. An agent that has read nearly everything gets its answer, however large it is and
// whatever others hold. The caller holds mu.
func (s *lineStream) countAnswer(l *queuedLine) bool {
	n := int64(len(l.body))
	if exceedsUnread(s.unread, n, s.most) {
		return false
	}
	if n > freeBytes {
		if s.share.Take(n) == nil {
			l.taken = n
		} else if s.unread > fewUnread {
			return false
		}
	}
	s.unread, l.unread = s.unread+n, n
	return true
}

func (s *lineStream) endStream() {}

// closeStream ends the stream when everything is written or abandoned, and waits for that.
func (s *lineStream) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.more.Broadcast()
	for !s.written {
		s.more.Wait()
	}
}

func (s *lineStream) writeProblem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
