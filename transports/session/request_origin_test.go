package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// asked is a session of the legacy era whose server never answers by itself, and whose handlers return the name of
// the caller that was asked.
type asked struct {
	t     *testing.T
	w     *wire
	gate  *session.Gate
	mu    sync.Mutex
	whom  []*messages.Answerer
	ended []error
	hold  chan struct{} // an answer waits for it, if it is not nil
	calls sync.WaitGroup
}

func newQuestionServer(t *testing.T) *asked {
	a := &asked{t: t, w: &wire{}}
	s := connected(t, a.w, session.Config{Handlers: session.Handlers{
		Elicit: func(ctx context.Context, _ messages.ElicitRequest) (messages.ElicitResult, error) {
			a.mu.Lock()
			a.whom = append(a.whom, messages.AnswererOf(ctx))
			hold := a.hold
			a.mu.Unlock()
			if hold != nil {
				select {
				case <-hold:
				case <-ctx.Done():
					a.mu.Lock()
					a.ended = append(a.ended, context.Cause(ctx))
					a.mu.Unlock()
				}
			}
			return messages.ElicitResult{Action: messages.ElicitDecline}, ctx.Err()
		},
	}})
	a.gate = s.OpenGate()
	return a
}

// call begins a call of a caller and returns its id.
func (a *asked) call(ctx context.Context, caller *messages.Answerer, timeout time.Duration) (id int64, elapsed *time.Duration) {
	a.w.takeSent()
	elapsed = new(time.Duration)
	a.calls.Go(func() {
		p := session.NewCallTimeout(messages.WithAnswerer(ctx, caller), timeout, time.Hour)
		defer p.Stop()
		began := time.Now()
		_, _ = a.gate.Call(p, "t", nil)
		*elapsed = time.Since(began)
	})
	synctest.Wait()
	for _, m := range a.w.takeSent() {
		if m.Method == "tools/call" {
			id = m.ID
		}
	}
	return id, elapsed
}

func (a *asked) answer(id int64) {
	a.w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, id))
	synctest.Wait()
}

// ask makes the server ask, on the stream of a request if on is not 0, and returns the caller that was asked.
func (a *asked) ask(streamID int64) *messages.Answerer {
	a.t.Helper()
	a.mu.Lock()
	n := len(a.whom)
	a.mu.Unlock()
	a.w.sink.(transports.RequestStreamSink).MessageOn(streamID, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create",`+
		`"params":{"message":"?","requestedSchema":{"type":"object"}}}`, n))
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.whom) != n+1 {
		a.t.Fatal("the handler was not asked")
	}
	return a.whom[n]
}

// TestAQuestionGoesToTheCallerOfItsCall: the handler of a question gets the context of its call; if the call is not
// known, that of no caller.
func TestAQuestionGoesToTheCallerOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuestionServer(t)
		ann, bob := &messages.Answerer{}, &messages.Answerer{}
		if caller := a.ask(0); caller != nil {
			t.Error("without a call a caller was asked")
		}
		anns, _ := a.call(t.Context(), ann, 0)
		if caller := a.ask(0); caller != ann {
			t.Error("the only caller was not asked")
		}
		bobs, _ := a.call(t.Context(), bob, 0)
		if caller := a.ask(0); caller != nil {
			t.Error("one of two callers was asked what may be the other one's")
		}
		for id, want := range map[int64]*messages.Answerer{anns: ann, bobs: bob} {
			if caller := a.ask(id); caller != want {
				t.Error("what came on the stream of a call was not asked of its caller")
			}
		}
		a.answer(anns)
		if caller := a.ask(0); caller != bob {
			t.Error("the only caller that is left was not asked")
		}
		second, _ := a.call(t.Context(), bob, 0)
		if caller := a.ask(0); caller != bob {
			t.Error("of two calls of one caller none was asked")
		}
		a.answer(second)

		ctx, leave := context.WithCancel(t.Context())
		abandoned, _ := a.call(ctx, ann, 0)
		leave()
		synctest.Wait()
		if caller := a.ask(0); caller != nil {
			t.Error("a caller was asked although the server may be at work on a call that was given up")
		}
		a.answer(abandoned)
		if caller := a.ask(0); caller != bob {
			t.Error("the late answer did not settle it")
		}
		ctx, leave = context.WithCancel(t.Context())
		for range 100 { // more than are remembered one by one
			a.call(ctx, ann, 0)
		}
		leave()
		synctest.Wait()
		if caller := a.ask(0); caller != nil {
			t.Error("calls that were given up are forgotten")
		}
		time.Sleep(11 * time.Minute)
		if caller := a.ask(0); caller != bob {
			t.Error("calls that were given up are never forgotten")
		}
		a.answer(bobs)
		a.calls.Wait()
	})
}

// TestALogMessageProlongsNoCall: no person answers a log message, so that calls which may be the one that it belongs to have the time
// that they had without it.
func TestALogMessageProlongsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuestionServer(t)
		var logged atomic.Int32
		caller := &messages.Answerer{Log: func(context.Context, json.RawMessage) { logged.Add(1) }}
		_, tookFirst := a.call(t.Context(), caller, 2*time.Second)
		_, tookSecond := a.call(t.Context(), caller, 2*time.Second)
		time.Sleep(time.Second)
		a.w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		a.calls.Wait()
		if logged.Load() != 1 || *tookFirst != 2*time.Second || *tookSecond != 2*time.Second {
			t.Errorf("%d messages came, and the calls ended after %v and %v, not after 2 s", logged.Load(), *tookFirst, *tookSecond)
		}
	})
}

// TestAQuestionStopsTheClockOfItsCall: a question pauses the idle timeout of its own call only. If the call is not
// known, each call lasts at most one timeout longer.
func TestAQuestionStopsTheClockOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuestionServer(t)
		a.hold = make(chan struct{})
		one, two := &messages.Answerer{}, &messages.Answerer{}
		first, tookFirst := a.call(t.Context(), one, 2*time.Second)
		_, tookSecond := a.call(t.Context(), two, 2*time.Second)
		a.ask(first)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if *tookFirst != 0 {
			t.Errorf("the call whose question is open ended after %v", *tookFirst)
		}
		if *tookSecond != 2*time.Second {
			t.Errorf("the other call ended after %v, not after its 2 s", *tookSecond)
		}
		a.answer(first)
		if len(a.ended) != 1 || !strings.Contains(a.ended[0].Error(), "has ended") {
			t.Errorf("the question outlived its call: %v", a.ended)
		}
		var refused bool
		for _, m := range a.w.takeSent() {
			refused = refused || strings.Contains(string(m.Body), "the call that the question belongs to has ended")
		}
		if !refused {
			t.Error("the server was not told")
		}

		_, tookFirst = a.call(t.Context(), one, 2*time.Second)
		_, tookSecond = a.call(t.Context(), two, 2*time.Second)
		time.Sleep(time.Second)
		a.ask(0)
		time.Sleep(time.Second)
		a.ask(0)
		a.calls.Wait()
		if *tookFirst != 3*time.Second || *tookSecond != 3*time.Second {
			t.Errorf("with a question of one of them they ended after %v and %v, not after 3 s", *tookFirst, *tookSecond)
		}
		close(a.hold)
	})
}
