package session

import (
	"context"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// unheard is a connection on which everything is written and nothing is answered.
type unheard struct {
	sink transports.Sink
	gone chan struct{}
}

func (c *unheard) Kind() messages.TransportKind { return messages.SDK }
func (c *unheard) Dial(_ context.Context, sink transports.Sink) (transports.Conn, error) {
	c.sink, c.gone = sink, make(chan struct{})
	return c, nil
}

func (c *unheard) Send(context.Context, transports.Message) (transports.Delivery, error) {
	return transports.Written, nil
}
func (c *unheard) Negotiated(string) {}
func (c *unheard) Close(context.Context) error {
	c.sink.Down(&transports.Error{Class: messages.ClassCanceled, Text: "closed"})
	close(c.gone)
	return nil
}
func (c *unheard) Released() <-chan struct{} { return c.gone }
func (c *unheard) Info() transports.Info     { return transports.Info{} }

// A session that has ended keeps no timer, and what it keeps for reuse remembers nothing of its last request.
func TestASessionKeepsNothingOfItsRequests(t *testing.T) {
	s, err := Dial(t.Context(), &unheard{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := Patient(t.Context(), time.Hour, 0)
	defer p.Stop()
	f, e := s.depart(p, &progress{}, true)
	if e != nil {
		t.Fatal(e)
	}
	f.standing = true
	if s.alarm.timer == nil {
		t.Fatal("a request with a deadline sets no alarm")
	}
	if _, ours := s.take(f.id); !ours {
		t.Fatal("the request is not pending")
	}
	s.land(f)
	if f.standing || f.watched || f.patience != nil || f.progress != nil || f.ctx != nil {
		t.Errorf("what is kept for the next request remembers the last one: %+v", f)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-s.Released()
	if s.alarm.timer.Stop() {
		t.Error("the session has ended, and its alarm is still set")
	}
}
