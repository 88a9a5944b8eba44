package serve

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A stream carries messages to an agent beside the answer. It never blocks its caller.
type stream interface {
	// sendMessage queues a message. It reports false if the stream has ended, or the queue is full; a message that must be sent has room
	// beyond that of the others.
	sendMessage(body []byte, must bool) bool
	// endStream makes the stream end after what is queued.
	endStream()
}

const (
	// maxQueuedEvents and maxQueuedBytes bound what waits for an agent that reads slowly, on each stream; twice as much with
	// messages that must be sent.
	maxQueuedEvents = 256
	maxQueuedBytes  = 4 << 20
	// primeTime is how long a request may take before its response becomes a stream with an id, by which the agent fetches the answer if the
	// connection is lost: nearly all have been answered by then, as plain JSON. Until then a lost connection loses the answer.
	primeTime = time.Second
	// writeTimeout is the time for which an agent may read nothing before its connection is given up.
	writeTimeout = 30 * time.Second
)

// eventStream is the response to one HTTP request. It begins as nothing; the first message makes it a stream of events, and an
// answer without any message before it is plain JSON.
//
// Who finds the queue unattended writes it, on a goroutine that ends when the queue is empty: most answers need none.
type eventStream struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	keepAlive time.Duration

	// log keeps the events of a stream of the legacy era, nil keeps none; its number is stream, from the first event on. primes says that
	// the agent knows events without data.
	log               *replayLog
	stream            int
	ofRequest, primes bool

	mu      sync.Mutex
	idle    sync.Cond // writing has become false
	queue   []event
	number  int // of the last event
	bytes   int
	writing bool
	began   bool
	ended   bool
	failed  bool
	timer   *time.Timer
	over    chan struct{} // closed by endStream, for the handler that waits; nil if nobody does
}

// An event is a message with its id, if it can be fetched again. Without a message it is the id of the stream, or a line that keeps the
// connection open.
type event struct {
	id   string
	body []byte
}

func newEventStream(w http.ResponseWriter, keepAlive time.Duration) *eventStream {
	s := &eventStream{w: w, keepAlive: keepAlive}
	s.idle.L = &s.mu
	s.mu.Lock() // stayAlive may run before AfterFunc has returned
	s.timer = time.AfterFunc(keepAlive, s.stayAlive)
	s.mu.Unlock()
	return s
}

// stayAlive sends a line that means nothing, so that nobody on the way takes the connection for dead. An agent that has no id of the stream
// yet gets it so.
//
// 2025-11-25: "the server SHOULD immediately send an SSE event consisting of an event ID and an empty data field in order to prime the
// client to reconnect". Agents of earlier versions take the empty data for a message.
func (s *eventStream) stayAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numberStream()
	e := event{}
	if s.primes && s.number == 0 {
		e.id = eventID(s.stream, 0)
	}
	s.putEvent(e, false)
	if !s.ended {
		s.timer.Reset(s.keepAlive)
	}
}

func (s *eventStream) sendMessage(body []byte, must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := event{body: body}
	if s.log != nil && !s.ended {
		s.numberStream()
		s.number++
		e.id = eventID(s.stream, s.number)
		if s.log.keepEvent(s.stream, s.number, body, false) {
			return true
		}
	}
	// What is kept is not lost with the connection.
	return s.putEvent(e, must) || e.id != "" && s.failed
}

// queueEvent queues an event as it is.
func (s *eventStream) queueEvent(e event, must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putEvent(e, must)
}

// numberStream gives the stream its number before its first event: most answers have no events. The caller holds mu.
func (s *eventStream) numberStream() {
	if s.log != nil && s.stream == 0 && !s.ended {
		s.stream = s.log.openStream(s.ofRequest)
	}
}

// putEvent queues an event, and sees to it that somebody writes. The caller holds mu.
func (s *eventStream) putEvent(e event, must bool) bool {
	room := 1
	if must {
		room = 2
	}
	if s.ended || s.failed || len(s.queue) >= room*maxQueuedEvents || s.bytes+len(e.body) > room*maxQueuedBytes && len(s.queue) > 0 {
		return false
	}
	s.queue = append(s.queue, e)
	s.bytes += len(e.body)
	if !s.writing {
		s.writing = true
		go s.writeQueue()
	}
	return true
}

func (s *eventStream) endStream() {
	s.mu.Lock()
	if s.over != nil && !s.ended {
		close(s.over)
	}
	s.ended = true
	s.mu.Unlock()
}

// writeQueue writes until the queue is empty. It runs on a goroutine of its own, one at a time.
func (s *eventStream) writeQueue() {
	defer func() {
		// A defect must not end the process, nor leave the handler waiting.
		if recover() != nil {
			s.mu.Lock()
			s.failed, s.writing = true, false
			s.idle.Broadcast()
			s.mu.Unlock()
		}
	}()
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue, s.bytes = nil, 0
		if len(batch) == 0 || s.failed {
			s.writing = false
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if err := s.writeEvents(batch); err != nil {
			s.mu.Lock()
			s.failed = true
			s.mu.Unlock()
		}
	}
}

// writeEvents writes messages as events; only the goroutine that has set writing, or the handler when there is none, calls it.
func (s *eventStream) writeEvents(batch []event) error {
	var b []byte
	s.beginEvents()
	for _, e := range batch {
		if e.id != "" {
			b = append(b, "id: "+e.id+"\n"...)
		}
		switch {
		case len(e.body) == 0 && e.id != "":
			b = append(b, "data:\n\n"...)
			continue
		case len(e.body) == 0:
			b = append(b, ":\n\n"...)
			continue
		}
		b = append(b, "event: message\ndata: "...)
		b = append(appendOneLine(b, e.body), "\n\n"...)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines has none to miss
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}

// beginEvents writes the headers of a stream of events, once.
func (s *eventStream) beginEvents() {
	if s.began {
		return
	}
	s.began = true
	s.control = http.NewResponseController(s.w)
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // 2026-07-28: servers SHOULD set it, so that a proxy does not hold events back
	s.w.WriteHeader(http.StatusOK)
}

// stopWriting ends the queue: no message is taken any more, and nothing writes when it returns.
func (s *eventStream) stopWriting() {
	s.mu.Lock()
	s.ended = true
	s.timer.Stop()
	for s.writing {
		s.idle.Wait()
	}
	s.mu.Unlock()
}

// writeAnswer writes the answer, and ends the stream.
func (s *eventStream) writeAnswer(status int, body []byte) {
	s.stopWriting()
	if !s.began {
		if s.stream != 0 {
			s.log.dropStream(s.stream)
		}
		writeJSON(s.w, status, body)
		return
	}
	e := event{body: body}
	if s.stream != 0 {
		e.id = eventID(s.stream, s.number+1)
		if s.log.keepEvent(s.stream, s.number+1, body, true) {
			return
		}
	}
	if !s.failed {
		_ = s.writeEvents([]event{e}) // an agent that has gone fetches its answer, or does not get it
	}
}

// endUnanswered ends the stream of a request that its agent has taken back. What has sent nothing is a stream without events: the response
// to a request is either that, or its answer.
func (s *eventStream) endUnanswered() {
	s.stopWriting()
	if s.stream != 0 {
		s.log.dropStream(s.stream)
	}
	s.beginEvents()
}

// writeJSON writes an answer that is the whole response.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	// The deadline is renewed with each part, so that it bounds how long an agent reads nothing and not how long it reads.
	control := http.NewResponseController(w)
	for {
		part := body[:min(len(body), writePart)]
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines has none to miss
		if _, err := w.Write(part); err != nil {
			return // an agent that has gone does not get its answer
		}
		if body = body[len(part):]; len(body) == 0 {
			return
		}
	}
}

// writePart is how much of an answer is written under one deadline.
const writePart = 1 << 20

var jsonType = []string{"application/json"}
