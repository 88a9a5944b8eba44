package session

import (
	"context"
	"testing"
	"testing/synctest"
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

// A session that is being closed admits nobody.
func TestAGateOfWhatIsBeingClosedIsClosed(t *testing.T) {
	s, err := Dial(t.Context(), &unheard{}, Config{})
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

// Two questions at once stop a call's clock until both are answered, and what was left then is left.
func TestTwoQuestionsStopTheClockOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Patient(t.Context(), 10*time.Second, 0)
		defer p.Stop()
		time.Sleep(4 * time.Second)
		p.pause()
		time.Sleep(time.Minute)
		p.pause()
		time.Sleep(time.Minute)
		p.resume()
		time.Sleep(time.Minute)
		if p.expired(now()) {
			t.Error("the clock goes on while a question is open")
		}
		p.resume()
		time.Sleep(6*time.Second - time.Nanosecond)
		if p.expired(now()) {
			t.Error("the call has ended before its time")
		}
		time.Sleep(time.Nanosecond)
		if !p.expired(now()) {
			t.Error("the call goes on beyond its time")
		}
	})
}

func TestNoProgressAfterTheEnd(t *testing.T) {
	told := 0
	p := &progress{tell: func(messages.Progress) { told++ }}
	p.say(messages.Progress{})
	p.finish()
	if p.say(messages.Progress{}); told != 1 {
		t.Errorf("told %d times, one of them before the end", told)
	}
}

// What a lane has done does not count against what it may hold, whether it waited alone or with others.
func TestALaneForgetsWhatItHasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lane{start: func(f func()) bool { go f(); return true }, maxItems: 10, maxBytes: 1000}
		l.open()
		for range 20 {
			done := make(chan struct{})
			l.put(300, false, func() { <-done })
			synctest.Wait() // it runs, and what follows waits
			l.put(300, false, func() {})
			l.put(300, false, func() {})
			close(done)
			synctest.Wait()
		}
		if n := l.drops(); n != 0 {
			t.Errorf("%d of 60 were dropped, of which no more than two waited at once", n)
		}
	})
}
