package session

import (
	"context"
	"testing"
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
	if s.OpenGate().enter() {
		t.Error("a call is admitted to a connection that is being closed")
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-s.Released()
}

func TestNoProgressAfterTheEnd(t *testing.T) {
	reports := 0
	p := &progressReporter{callback: func(messages.Progress) { reports++ }}
	p.reportProgress(messages.Progress{})
	p.finish()
	if p.reportProgress(messages.Progress{}); reports != 1 {
		t.Errorf("told %d times, one of them before the end", reports)
	}
}
