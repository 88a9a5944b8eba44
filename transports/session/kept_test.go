package session

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// silentTransport is a connection that writes everything and answers nothing.
type silentTransport struct {
	sink     transports.Sink
	released chan struct{}
}

func (c *silentTransport) Kind() messages.TransportKind { return messages.SDK }
func (c *silentTransport) Dial(_ context.Context, sink transports.Sink) (transports.Conn, error) {
	c.sink, c.released = sink, make(chan struct{})
	return c, nil
}

func (c *silentTransport) Send(context.Context, transports.Message) (transports.Delivery, error) {
	return transports.Written, nil
}
func (c *silentTransport) Negotiated(string) {}
func (c *silentTransport) Close(context.Context) error {
	c.sink.Down(&transports.Error{Class: messages.ClassCanceled, Text: "closed"})
	close(c.released)
	return nil
}
func (c *silentTransport) Released() <-chan struct{} { return c.released }
func (c *silentTransport) Info() transports.Info     { return transports.Info{} }

// A session that has ended has no timer set, and the requests that it keeps for reuse hold nothing of their last use.
func TestASessionKeepsNothingOfItsRequests(t *testing.T) {
	s, err := Dial(t.Context(), &silentTransport{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := NewCallTimeout(t.Context(), time.Hour, 0)
	defer p.Stop()
	f, e := s.registerRequest(p, &progressReporter{}, true)
	if e != nil {
		t.Fatal(e)
	}
	f.longLived = true
	if s.requestTimer.timer == nil {
		t.Fatal("a request with a deadline sets no alarm")
	}
	if _, ours := s.takePending(f.id); !ours {
		t.Fatal("the request is not pending")
	}
	s.recycleRequest(f)
	if f.longLived || f.watched || f.timeout != nil || f.progress != nil || f.ctx != nil {
		t.Errorf("what is kept for the next request remembers the last one: %+v", f)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-s.Released()
	if s.requestTimer.timer.Stop() {
		t.Error("the session has ended, and its alarm is still set")
	}
}

// OpenGate returns a closed gate while the session is being closed.
func TestAGateOfWhatIsBeingClosedIsClosed(t *testing.T) {
	s, err := Dial(t.Context(), &silentTransport{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	if s.OpenGate().calls.Enter() {
		t.Error("a call is admitted to a connection that is being closed")
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-s.Released()
}

func TestNoProgressAfterTheEnd(t *testing.T) {
	var seen []float64
	var queued []func()
	put := func(_ int, _ bool, run func()) bool {
		queued = append(queued, run)
		return true
	}
	p := newProgressReporter(&Options{Progress: func(v messages.Progress) { seen = append(seen, v.Progress) }})
	p.addReport([]byte(`{"progress":1}`), put)
	queued[0]()
	p.finish(t.Context())
	p.addReport([]byte(`{"progress":2}`), put)
	if queued[1](); !slices.Equal(seen, []float64{1}) {
		t.Errorf("the reports %v were delivered, want the one before the end, once", seen)
	}
}

// The answer overtook the reports that came before it while the queue of callbacks was busy: the caller saw "1 of 3" as the last, and
// an agent behind a gateway missed those between. One that the queue has no room for is delivered if it is the newest.
func TestTheLastProgressIsDeliveredBeforeTheAnswer(t *testing.T) {
	reporter := func() (*progressReporter, *[]float64) {
		var seen []float64
		p := newProgressReporter(&Options{Progress: func(v messages.Progress) { seen = append(seen, v.Progress) }})
		for i, report := range []string{`{"progress":1}`, `{"progress":2}`, `{"progress":3}`, `{"progress":4}`} {
			p.addReport([]byte(report), func(int, bool, func()) bool { return i < 2 }) // as the reader does; the queue has not run yet
		}
		return p, &seen
	}
	p, seen := reporter()
	if p.finish(t.Context()); !slices.Equal(*seen, []float64{1, 2, 4}) {
		t.Errorf("the reports %v were delivered, want those of the queue and the last one", *seen)
	}
	p, seen = reporter()
	left, leave := context.WithCancel(t.Context())
	leave()
	if p.finish(left); len(*seen) > 0 {
		t.Errorf("a caller that has left got %v", *seen)
	}
}

// A report that found no room is told no more once a newer one has found some: the older one came after it.
func TestAnOlderProgressFollowsNoNewerOne(t *testing.T) {
	var seen []float64
	p := newProgressReporter(&Options{Progress: func(v messages.Progress) { seen = append(seen, v.Progress) }})
	for i, report := range []string{`{"progress":1}`, `{"progress":2}`, `{"progress":3}`} {
		p.addReport([]byte(report), func(int, bool, func()) bool { return i != 1 })
	}
	if p.finish(t.Context()); !slices.Equal(seen, []float64{1, 3}) {
		t.Errorf("the reports %v were delivered, want those that found room, in their order", seen)
	}
}

// Progress that a request has not asked for prolongs nothing: a server could keep its caller waiting by it as long as it liked.
func TestUnwantedProgressProlongsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted, unwanted := NewCallTimeout(t.Context(), time.Second, time.Hour), NewCallTimeout(t.Context(), time.Second, time.Hour)
		defer wanted.Stop()
		defer unwanted.Stop()
		s, err := Dial(t.Context(), &silentTransport{}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(context.Background()) }()
		first, e := s.registerRequest(wanted, newProgressReporter(&Options{Progress: func(messages.Progress) {}}), false)
		second, e2 := s.registerRequest(unwanted, nil, false)
		if e != nil || e2 != nil {
			t.Fatal(e, e2)
		}
		time.Sleep(600 * time.Millisecond)
		for _, f := range []*pendingRequest{first, second} {
			s.handleProgress(fmt.Appendf(nil, `{"progressToken":%d,"progress":1}`, f.id))
		}
		time.Sleep(600 * time.Millisecond)
		if wanted.HasExpired() {
			t.Error("progress that its caller wanted did not prolong a request")
		}
		if !unwanted.HasExpired() {
			t.Error("progress that nobody wanted prolonged a request")
		}
	})
}
