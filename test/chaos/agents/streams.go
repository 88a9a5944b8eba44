package agents

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// eventReader reads one stream of events: the answer to a request, or what belongs to none, for which via is empty.
type eventReader struct {
	link *httpLink
	body io.ReadCloser
	via  string

	// mu guards the id of the last event, and whether the agent has broken the connection off, or has another one in its place.
	mu               sync.Mutex
	last             string
	broken, replaced bool
}

// readEvents reads to the end of the stream.
func (r *eventReader) readEvents() {
	in := bufio.NewReaderSize(r.body, 64<<10)
	id, heard := "", r.link.session.agent.fleet.Now()
	for {
		line, err := in.ReadBytes('\n')
		heard = r.checkAlive(heard)
		if err != nil {
			return
		}
		if text, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = string(bytes.TrimSpace(text))
			if !r.noteID(id) {
				_, _ = io.Copy(io.Discard, r.body) // the agent does not get what comes on a connection that is gone
				return
			}
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			r.link.noteEvent(id)
			id = ""
			r.link.session.receiveMessage(bytes.TrimSpace(data), 0, r.via)
		}
	}
}

// aliveBound is how much longer a stream may be silent than the endpoint says.
const aliveBound = 2 * time.Second

// checkAlive judges that the endpoint has sent something in time since the agent heard of it last, and returns the time of now. What is silent for
// longer is cut by a proxy on the way, and the agent takes it for dead.
func (r *eventReader) checkAlive(heard time.Duration) (now time.Duration) {
	s := r.link.session
	f := s.agent.fleet
	now = f.Now()
	if every := cmp.Or(f.serve.KeepAlive, keepAlive); now-heard > every+aliveBound {
		f.reportFinding("I28", "", fmt.Sprintf("%s heard nothing for %s on an open stream of the endpoint, which sends a line after %s without an event", s.agent.plan.Name, now-heard, every))
	}
	return now
}

// keepAlive is the time after which the endpoint sends a line that means nothing, unless its options name another one.
const keepAlive = 15 * time.Second

// noteID notes the id of an event, and returns false if the agent has another connection in the place of this one.
func (r *eventReader) noteID(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced {
		return false
	}
	r.last = id
	return true
}

// replace says that the agent takes no more events here, and returns the id of the last one.
func (r *eventReader) replace() (last string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replaced = true
	return r.last
}

// breakOff ends the reading of a stream whose connection is gone, once an event has told where in it the agent is. What has said nothing yet
// can be read to its end, as through a proxy that holds the response back.
func (r *eventReader) breakOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken = r.last != "" && r.link.readsCancelled(); r.broken {
		_ = r.body.Close() // it only ends the reading
	}
}

// resumes reports whether the agent asks for the rest of a stream that was broken off.
func (r *eventReader) resumes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken && !r.link.session.agent.modern()
}

// lastID returns the id of the last event.
func (r *eventReader) lastID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// noteEvent notes an event that has an id. It comes once, also to an agent that asks for what it has missed.
func (l *httpLink) noteEvent(id string) {
	if id == "" {
		return
	}
	l.mu.Lock()
	twice := l.seen[id]
	l.seen[id] = true
	l.mu.Unlock()
	if twice {
		l.session.agent.fleet.reportFinding("I25", "", l.session.agent.plan.Name+" got the event "+id+" of its session twice")
	}
}

// resumePause is the time after which an agent asks for the rest of a stream that was broken off.
const resumePause = 20 * time.Millisecond

// maxResumed bounds how often the connection breaks on which an agent reads the rest of one answer.
const maxResumed = 3

// resumeAnswer asks for the rest of an answer, over one connection after the other: each may break in its turn.
func (l *httpLink) resumeAnswer(ctx context.Context, before *eventReader) {
	select {
	case <-time.After(resumePause):
	case <-ctx.Done():
		return
	}
	for n := 0; before != nil; n++ {
		before = l.resumeStream(ctx, before, n)
	}
}

// resumeTime is how long the n-th connection lives on which the agent reads the rest of an answer, 0 for as long as the answer needs.
func (l *httpLink) resumeTime(via string, n int) time.Duration {
	number := l.session.agent.number + len(via) + int(via[len(via)/2])
	if (number+n)%3 == 2 || n >= maxResumed {
		return 0
	}
	return time.Duration(20+(number*37+n*211)%400) * time.Millisecond
}

// resumeStream asks for the rest of an answer, with the id of the last event that has come. The answer ends the stream. Where the connection breaks
// before, it returns the reader whose last event the next one names. The agent may notice that late, and have the next one open already: then the
// endpoint ends the one before.
func (l *httpLink) resumeStream(ctx context.Context, before *eventReader, n int) (broken *eventReader) {
	f, s := l.session.agent.fleet, l.session
	own, cut := context.WithCancel(ctx)
	r := l.newRequest(own, http.MethodGet, nil)
	last := before.replace()
	r.Header.Set("Last-Event-ID", last)
	res, err := f.client.RoundTrip(r)
	if err != nil {
		cut()
		return nil
	}
	if res.StatusCode != http.StatusOK {
		cut()
		_ = res.Body.Close()
		return nil
	}
	s.recordStream(history.StreamBack, before.via)
	events := &eventReader{link: l, body: res.Body, via: before.via, last: last}
	read := make(chan struct{})
	f.running.Go(func() {
		defer close(read)
		defer cut()
		defer context.AfterFunc(own, func() { _ = res.Body.Close() })() // the connection, or the session, is over, and the agent reads no further
		events.readEvents()
		_ = res.Body.Close()
	})
	life := l.resumeTime(before.via, n)
	if life == 0 {
		<-read
		return nil
	}
	select {
	case <-read:
		return nil
	case <-time.After(life):
	}
	if !s.isOpen(before.via) {
		<-read
		return nil
	}
	s.recordStream(history.StreamCut, before.via)
	if n%2 == 0 {
		cut()
		<-read
		return events
	}
	f.running.Go(func() {
		select {
		case <-read:
		case <-time.After(replacedBound):
			f.reportFinding("I28", "", s.agent.plan.Name+" reads the rest of an answer over a new connection, and the one before is not ended")
			cut()
		}
	})
	return events
}

// replacedBound is the time in which the endpoint ends a connection in the place of which the agent has another one.
const replacedBound = 2 * time.Second

// openStream opens the stream of a session of the legacy era, for what belongs to no request. That of every second session breaks several times:
// then the agent is without one for a while, and asks for what it has missed every second time. Or it opens another one beside the first, of
// which the endpoint does not know yet that it is gone.
func (l *httpLink) openStream() {
	s := l.session
	if s.agent.fleet.serve.SessionIdle > 0 && (s.agent.number+int(s.epoch))%4 == 3 {
		// Without a stream the endpoint may forget the session between two requests.
		s.agent.recordEvent(history.Event{Kind: history.StreamCut, Epoch: s.epoch})
		return
	}
	ctx, cancel := context.WithCancel(s.agent.fleet.lifetime)
	l.mu.Lock()
	l.closeStream = cancel
	l.mu.Unlock()
	s.agent.fleet.running.Go(func() {
		defer cancel()
		last, more := "", true
		for n := 0; more && ctx.Err() == nil; n++ {
			last, more = l.readStream(ctx, n, last)
		}
	})
}

// noteStream notes whether the agent reads a stream of the session.
func (l *httpLink) noteStream(reads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasStream = reads
}

// breaksOfStream is how often the stream of a session breaks.
const breaksOfStream = 4

// streamTimes are how long the n-th stream of a session lives, 0 for ever, and how long the agent is without one after it, 0 for one that is
// replaced.
func (l *httpLink) streamTimes(n int) (life, away time.Duration) {
	number := l.session.agent.number + int(l.session.epoch)
	if number%2 == 1 || n >= breaksOfStream || !l.readsCancelled() {
		return 0, 0
	}
	life = time.Second + time.Duration((number*137+n*911)%2500)*time.Millisecond
	if n%3 != 2 {
		away = time.Second + time.Duration((number*59+n*433)%3000)*time.Millisecond
	}
	return life, away
}

// readStream reads the n-th stream to its end. It returns the id of its last event, and whether another one is to follow.
func (l *httpLink) readStream(ctx context.Context, n int, before string) (last string, more bool) {
	own, cut := context.WithCancel(ctx)
	r := l.newRequest(own, http.MethodGet, nil)
	if n%2 == 1 && before != "" {
		r.Header.Set("Last-Event-ID", before)
	}
	res, err := l.session.agent.fleet.client.RoundTrip(r)
	if err != nil {
		cut()
		return "", false
	}
	if res.StatusCode != http.StatusOK {
		// The session has ended. The endpoint's refusal waits for an agent that reads it or goes.
		cut()
		_ = res.Body.Close()
		return "", false
	}
	if n > 0 {
		l.session.agent.recordEvent(history.Event{Kind: history.StreamBack, Epoch: l.session.epoch})
	}
	l.noteStream(true)
	defer l.noteStream(false)
	events := &eventReader{link: l, body: res.Body}
	read := make(chan struct{})
	l.session.agent.fleet.running.Go(func() {
		defer close(read)
		defer cut()
		defer func() { _ = res.Body.Close() }()
		events.readEvents()
	})
	life, away := l.streamTimes(n)
	if life == 0 {
		<-read
		return "", false
	}
	select {
	case <-time.After(life):
	case <-read:
		return "", false
	}
	if away == 0 {
		return events.lastID(), true // the next one is opened beside this one, which the endpoint then ends
	}
	l.session.agent.recordEvent(history.Event{Kind: history.StreamCut, Epoch: l.session.epoch})
	cut()
	_ = res.Body.Close()
	<-read
	select {
	case <-time.After(away):
	case <-ctx.Done():
	}
	return events.lastID(), true
}
