package subscriptions_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
)

// A scriptedSession ends each request as its script says, and then keeps the last one open.
type scriptedSession struct {
	life context.Context //nolint:containedctx // it is the session's

	// mu guards the fields below.
	mu     sync.Mutex
	script []func(id int64) *messages.Error
	// sent are the times of the requests, counted from the first.
	sent  []time.Duration
	begun time.Time
}

func (s *scriptedSession) Listen(ctx context.Context, _ *subscriptions.Filter, begin func(id int64)) *messages.Error {
	id, answer := s.nextRequest()
	begin(id)
	if answer != nil {
		return answer(id)
	}
	<-ctx.Done()
	return &messages.Error{Class: messages.ClassCanceled, Text: "stopped"}
}

// nextRequest records a request and returns its id, and how the script ends it; nil if it does not.
func (s *scriptedSession) nextRequest() (id int64, answer func(id int64) *messages.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	s.sent = append(s.sent, time.Since(s.begun))
	if len(s.script) > 0 {
		answer, s.script = s.script[0], s.script[1:]
	}
	return int64(len(s.sent)), answer
}

// times returns the times of the requests.
func (s *scriptedSession) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

func (s *scriptedSession) Spawn(f func()) bool               { go f(); return true }
func (s *scriptedSession) Lifetime() context.Context         { return s.life }
func (s *scriptedSession) EndedError(string) *messages.Error { return nil }
func (s *scriptedSession) Rand() float64                     { return 0 }

// newStreams returns the streams of a session that ends with the test's bubble.
func newStreams(t *testing.T, script ...func(id int64) *messages.Error) (*subscriptions.Streams, *scriptedSession) {
	life, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	s := &scriptedSession{life: life, script: script}
	return &subscriptions.Streams{Conversation: s}, s
}

func fail(int64) *messages.Error {
	return &messages.Error{Class: messages.ClassNetwork, Text: "the connection was cut", Outcome: messages.OutcomeUnknown}
}

// A stream that ends is opened again after pauses that double, up to five minutes; with the smallest draw they are half of that.
func TestAStreamIsOpenedAgainAfterGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, session := newStreams(t, slices.Repeat([]func(int64) *messages.Error{fail}, 12)...)
		streams.NewStream(subscriptions.Filter{Tools: true}).Open(true)
		time.Sleep(time.Hour)
		var pauses []time.Duration
		sent := session.times()
		for i := 1; i < len(sent); i++ {
			pauses = append(pauses, sent[i]-sent[i-1])
		}
		const want = "[500ms 1s 2s 4s 8s 16s 32s 1m4s 2m8s 2m30s 2m30s 2m30s]"
		if got := fmt.Sprint(pauses); got != want {
			t.Errorf("pauses of %s, want %s", got, want)
		}
	})
}

// A server that does not know the method is not asked again, by this stream or by another one.
func TestAServerThatRefusesTheMethodIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, session := newStreams(t, func(int64) *messages.Error {
			return &messages.Error{Class: messages.ClassRejected, Code: -32601, Outcome: messages.OutcomeRejected}
		})
		streams.NewStream(subscriptions.Filter{Tools: true}).Open(true)
		time.Sleep(time.Hour)
		e := streams.NewStream(subscriptions.Filter{URIs: []string{"x:1"}}).OpenAgreed(t.Context(), "x:1", true)
		if n := len(session.times()); e == nil || e.Outcome != messages.OutcomeRejected || n != 1 {
			t.Errorf("asked %d times, then: %v", n, e)
		}
	})
}

// A resource that the server does not agree to watch is refused to the caller who asked for it, and reported for one that was
// watched before.
func TestWhatTheServerDoesNotAgreeToIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, _ := newStreams(t)
		var watches subscriptions.Watches
		open := func(agreed string, uris ...string) (*subscriptions.Stream, *messages.Error) {
			stream := streams.NewStream(subscriptions.Filter{URIs: uris})
			go func() {
				synctest.Wait()
				st, reopened := streams.Acknowledge([]byte(`{"notifications":{"resourceSubscriptions":` + agreed + `}}`))
				if st != stream || reopened {
					t.Errorf("the agreement is for %p (%v), want %p", st, reopened, stream)
					return
				}
				st.Confirm()
			}()
			return stream, stream.OpenAgreed(t.Context(), uris[len(uris)-1], true)
		}
		first, e := open(`["x:1"]`, "x:1")
		if lost := watches.Replace("x:1", []string{"x:1"}, first); e != nil || lost != nil {
			t.Fatalf("the first resource: %v, lost %q", e, lost)
		}
		if _, e = open(`["x:1"]`, "x:1", "x:2"); e == nil || e.Outcome != messages.OutcomeRejected {
			t.Errorf("a resource that was not agreed to: %v", e)
		}
		second, e := open(`["x:2"]`, "x:1", "x:2")
		lost := watches.Replace("x:2", []string{"x:1", "x:2"}, second)
		if e != nil || !slices.Equal(lost, []string{"x:1"}) || !slices.Equal(watches.URIList(), []string{"x:2"}) {
			t.Errorf("%v, lost %q, watched %q", e, lost, watches.URIList())
		}
	})
}

// A stream that a caller has opened is opened again for as long as the session lives, however often the further attempts fail: only the first
// one is the caller's.
func TestAnAgreedStreamIsOpenedAgainAfterMoreThanOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams *subscriptions.Streams
		agree := func(id int64) *messages.Error {
			streams.Acknowledge(fmt.Appendf(nil, `{"notifications":{"resourceSubscriptions":["x:1"]},"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}`, id))
			return fail(id)
		}
		var session *scriptedSession
		streams, session = newStreams(t, agree, fail, fail, fail)
		streams.NewStream(subscriptions.Filter{URIs: []string{"x:1"}}).Open(false)
		time.Sleep(time.Hour)
		if n := len(session.times()); n != 5 {
			t.Errorf("%d requests were sent, want 5", n)
		}
	})
}

// What another stream watches by now stays watched when the server ends it on the stream of before.
func TestAWatchOutlivesTheStreamThatItWasOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, _ := newStreams(t)
		var watches subscriptions.Watches
		open := func() *subscriptions.Stream {
			st := streams.NewStream(subscriptions.Filter{URIs: []string{"x:1"}})
			st.Open(false)
			synctest.Wait()
			return st
		}
		before, after := open(), open()
		watches.Replace("x:1", nil, nil)
		agree := func(id int, uris string) {
			streams.Acknowledge(fmt.Appendf(nil, `{"notifications":{"resourceSubscriptions":%s},"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}`, uris, id))
		}
		agree(1, "[]")
		agree(2, `["x:1"]`)
		watches.Replace("x:1", []string{"x:1"}, after)
		watches.RemoveLost(before)
		if !watches.Contains("x:1") {
			t.Error("it is not watched any more")
		}
	})
}
