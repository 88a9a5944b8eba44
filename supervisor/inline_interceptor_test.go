package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Inline interceptors run in the goroutine of their caller, in their order, and others do not.
func TestInlineInterceptorsRunInTheGoroutineOfTheCaller(t *testing.T) {
	for _, inline := range []bool{false, true} {
		var seen []string
		named := func(name string) supervisor.Interceptor {
			return func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				stack := make([]byte, 1<<16)
				stack = stack[:runtime.Stack(stack, false)]
				if isCallers := strings.Contains(string(stack), "callFromHere"); isCallers != inline {
					t.Errorf("inline %v: runs in the goroutine of the caller: %v", inline, isCallers)
				}
				seen = append(seen, name)
				return next(ctx, r)
			}
		}
		intercepted(t, supervisor.Config{InlineInterceptors: inline, Interceptors: []supervisor.Interceptor{named("first"), named("second")}},
			func(t *testing.T, m *supervisor.Manager, _ *fake) {
				res, err := callFromHere(t, m)
				if err != nil || !strings.HasPrefix(res.Text(), `work{"n":1}`) || strings.Join(seen, " ") != "first second" {
					t.Errorf("inline %v: %v, %v, seen %q", inline, res, err, seen)
				}
			})
	}
}

// callFromHere calls a tool; its name is on the stack of all that runs in the goroutine of the caller.
//
//go:noinline
func callFromHere(t *testing.T, m *supervisor.Manager) (*supervisor.Result, error) {
	return m.CallTool(t.Context(), "mcp__a__work", json.RawMessage(`{"n":1}`))
}

// A panic of an inline interceptor ends its call, and nothing else. runtime.Goexit ends the goroutine of the caller, as it does in
// every function that one calls; the next call finds everything as it was.
func TestInlineInterceptorsThatPanicOrEndTheirGoroutine(t *testing.T) {
	do := "panic"
	hostile := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		res, err := next(ctx, r)
		switch do {
		case "panic":
			panic("out of order")
		case "goexit":
			runtime.Goexit()
		}
		return res, err
	}
	log := intercepted(t, supervisor.Config{InlineInterceptors: true, MaxInFlight: 1, Interceptors: []supervisor.Interceptor{hostile}},
		func(t *testing.T, m *supervisor.Manager, _ *fake) {
			_, err := callFromHere(t, m)
			if !errors.Is(err, supervisor.ErrDenied) || supervisor.OutcomeOf(err) != supervisor.OutcomeUnknown || !strings.Contains(err.Error(), "panicked: out of order") {
				t.Errorf("a panic after the answer: %v", err)
			}
			do = "goexit"
			ended := make(chan bool, 1)
			go func() {
				returned := false
				defer func() { ended <- returned }()
				_, _ = callFromHere(t, m)
				returned = true
			}()
			if <-ended {
				t.Error("the goroutine of the caller has returned from a call whose interceptor ended it")
			}
			do = ""
			if _, err := callFromHere(t, m); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	if n := strings.Count(log, `"server":"a","tool":"work"`); n != 3 {
		t.Errorf("the record names the tool of %d calls, want 3:\n%s", n, log)
	}
}

// An inline interceptor that does not return holds its own caller: neither another caller nor Close.
func TestAnInlineInterceptorThatBlocksHoldsItsCallerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		blocked := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			if supervisor.CallerOf(ctx) == "held" {
				<-release
			}
			return next(ctx, r)
		}
		server := newFake("work")
		m := start(t, supervisor.Config{InlineInterceptors: true, Interceptors: []supervisor.Interceptor{blocked}}, map[string]*fake{"a": server})
		settled(t, m)
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(supervisor.WithCaller(t.Context(), "held"), time.Second)
			defer cancel()
			_, err := m.CallTool(ctx, "mcp__a__work", nil)
			ended <- err
		}()
		time.Sleep(time.Minute)
		if _, err := m.CallTool(t.Context(), "mcp__a__work", nil); err != nil {
			t.Errorf("another caller: %v", err)
		}
		closeAll(t, m)
		select {
		case err := <-ended:
			t.Errorf("the held call ended before its interceptor: %v", err)
		default:
		}
		close(release)
		if err := <-ended; supervisor.OutcomeOf(err) != supervisor.OutcomeNotSent {
			t.Errorf("the held call: %v", err)
		}
		if n := server.calls.Load(); n != 1 {
			t.Errorf("the server got %d calls, want that of the other caller alone", n)
		}
	})
}
