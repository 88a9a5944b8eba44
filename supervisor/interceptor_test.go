package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// intercepted runs f with a manager whose calls pass the interceptors, and returns the records of its audit log.
func intercepted(t *testing.T, cfg supervisor.Config, f func(*testing.T, *supervisor.Manager, *fake)) (log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var records strings.Builder
		cfg.Audit = &records
		server := newFake("work", "other")
		server.onCall = func(_ context.Context, tool string, args json.RawMessage) (string, error) {
			return tool + string(args), nil
		}
		m := start(t, cfg, map[string]*fake{"a": server})
		settled(t, m)
		f(t, m, server)
		closeAll(t, m)
		log = records.String()
	})
	return log
}

// The first interceptor is the outermost, and each sees what the one before made of the request and what the next made of the answer.
func TestInterceptorsRunInTheirOrder(t *testing.T) {
	var seen []string
	named := func(name string) supervisor.Interceptor {
		return func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			seen = append(seen, name+" "+r.Method+" "+r.Server+" "+r.Name+string(r.Arguments))
			r.Arguments = json.RawMessage(`{"by":"` + name + `"}`)
			res, err := next(ctx, r)
			seen = append(seen, name+" got "+res.Server+" "+res.Name)
			res.Result = json.RawMessage(strings.Replace(string(res.Result), "work", "work, "+name, 1))
			return res, err
		}
	}
	log := intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{named("first"), nil, named("second")}},
		func(t *testing.T, m *supervisor.Manager, _ *fake) {
			res, err := m.CallTool(t.Context(), "mcp__a__work", map[string]any{"n": 1})
			if err != nil || !strings.HasPrefix(res.Text(), `work, first, second{"by":"second"}`) {
				t.Errorf("%v, %v", res, err)
			}
		})
	want := []string{`first tools/call  mcp__a__work{"n":1}`, `second tools/call  mcp__a__work{"by":"first"}`, "second got a work", "first got a work"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	if !strings.Contains(log, `"attempts":1`) || !strings.Contains(log, `"outcome":"result"`) {
		t.Errorf("recorded: %s", log)
	}
}

// Rules judge what an interceptor made of a call, and the audit log records what became of it.
func TestWhatAnInterceptorSendsIsJudged(t *testing.T) {
	redirect := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		if r.Method == "tools/call" {
			r.Server, r.Name = "a", "other"
		}
		return next(ctx, r)
	}
	log := intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{redirect}, Access: access.Rules{Own: access.Set{
		Rules: []access.Rule{access.MustParse(access.Deny, "a:other(n:1)")}}}},
		func(t *testing.T, m *supervisor.Manager, f *fake) {
			if _, err := m.CallServerTool(t.Context(), "a", "work", json.RawMessage(`{"n":1}`)); !errors.Is(err, supervisor.ErrDenied) || f.calls.Load() != 0 {
				t.Errorf("%v after %d calls", err, f.calls.Load())
			}
			if res, err := m.CallServerTool(t.Context(), "a", "work", json.RawMessage(`{"n":2}`)); err != nil || res.Text() != `other{"n":2}` {
				t.Errorf("%v, %v", res, err)
			}
		})
	if !strings.Contains(log, `"decision":"deny"`) || strings.Contains(log, `"tool":"work"`) {
		t.Errorf("recorded: %s", log)
	}
}

// An interceptor's own error says that nothing was sent if next was not called, and never that of a request which was answered.
func TestTheOutcomeOfAnInterceptorsError(t *testing.T) {
	own := errors.New("not today")
	for _, c := range []struct {
		name      string
		intercept supervisor.Interceptor
		want      error
		outcome   messages.Outcome
		calls     int64
	}{
		{"refused", func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return nil, own
		}, own, messages.OutcomeNotSent, 0},
		{"hidden", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			_, _ = next(ctx, r)
			return nil, own
		}, own, messages.OutcomeUnknown, 1},
		{"an error about another call", func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return nil, &supervisor.Error{Outcome: messages.OutcomeUnknown, Text: "another"}
		}, supervisor.ErrDenied, messages.OutcomeNotSent, 0},
		{"passed on in another one", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Name = "missing"
			res, err := next(ctx, r)
			return res, errors.Join(own, err)
		}, supervisor.ErrUnknownTool, messages.OutcomeNotSent, 0},
		{"neither an answer nor an error", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			return nil, nil
		}, supervisor.ErrDenied, messages.OutcomeNotSent, 0},
		{"a nil *Error as an error", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			var e *supervisor.Error
			return nil, e
		}, supervisor.ErrDenied, messages.OutcomeNotSent, 0},
		{"a nil *Error after the answer", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			res, _ := next(ctx, r)
			var e *supervisor.Error
			return res, e
		}, supervisor.ErrDenied, messages.OutcomeUnknown, 1},
		{"a result that is no object", func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return &supervisor.Response{Result: json.RawMessage(`"done"`)}, nil
		}, supervisor.ErrDenied, messages.OutcomeNotSent, 0},
		{"an answer without its result", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			_, _ = next(ctx, r)
			return &supervisor.Response{}, nil
		}, supervisor.ErrDenied, messages.OutcomeUnknown, 1},
		{"an error that is swallowed", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Name = "missing"
			res, _ := next(ctx, r)
			return res, nil
		}, supervisor.ErrDenied, messages.OutcomeNotSent, 0},
		{"answered by itself", func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			return &supervisor.Response{Result: json.RawMessage(`{"content":[]}`)}, nil
		}, nil, messages.OutcomeResult, 0},
		{"sent twice", func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			_, _ = next(ctx, r)
			return next(ctx, r)
		}, nil, messages.OutcomeResult, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{c.intercept}}, func(t *testing.T, m *supervisor.Manager, f *fake) {
				_, err := m.CallServerTool(t.Context(), "a", "work", nil)
				if !errors.Is(err, c.want) || messages.OutcomeOf(err) != c.outcome || f.calls.Load() != c.calls {
					t.Errorf("%v (%s) after %d calls", err, messages.OutcomeOf(err), f.calls.Load())
				}
			})
			if !strings.Contains(log, `"outcome":"`+string(c.outcome)+`"`) {
				t.Errorf("recorded: %s", log)
			}
		})
	}
}

// An interceptor that sends twice may return either answer: the later one does not write over the first. Both attempts are recorded.
func TestAnAnswerOutlivesTheNextOne(t *testing.T) {
	twice := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		first, err := next(ctx, r)
		r.Arguments = json.RawMessage(`{"n":2}`)
		_, _ = next(ctx, r)
		return first, err
	}
	log := intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{twice}}, func(t *testing.T, m *supervisor.Manager, f *fake) {
		res, err := m.CallServerTool(t.Context(), "a", "work", map[string]any{"n": 1})
		if err != nil || res.Text() != `work{"n":1}` || f.calls.Load() != 2 {
			t.Errorf("%v, %v, after %d calls", res, err, f.calls.Load())
		}
	})
	if !strings.Contains(log, `"attempts":2`) {
		t.Errorf("recorded: %s", log)
	}
}

// Reads pass the interceptors as calls do; a request without a result object cannot be answered by them.
func TestReadsAreIntercepted(t *testing.T) {
	var methods []string
	answers := false
	note := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		methods = append(methods, r.Method)
		if answers {
			return &supervisor.Response{Result: json.RawMessage(`{"contents":[{"uri":"x:///1","text":"kept"}]}`)}, nil
		}
		return next(ctx, r)
	}
	intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{note}}, func(t *testing.T, m *supervisor.Manager, f *fake) {
		if _, err := m.ReadResource(t.Context(), "x:///1"); err != nil {
			t.Error(err)
		}
		if _, err := m.Ping(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		answers = true
		reads := f.reads.Load()
		res, err := m.ReadServerResource(t.Context(), "a", "x:///1")
		if err != nil || res.Text() != "kept" || f.reads.Load() != reads {
			t.Errorf("%v, %v", res, err)
		}
		if _, err := m.Ping(t.Context(), "a"); !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("a ping that was not sent: %v", err)
		}
	})
	want := []string{"resources/read", "resources/list", "ping", "resources/read", "ping"}
	if !slices.Equal(methods, want) {
		t.Errorf("%q, want %q", methods, want)
	}
}

// An interceptor's members of _meta reach the server, and its panic is an error for the caller and the record.
func TestMetaAndPanicsOfInterceptors(t *testing.T) {
	panics := false
	add := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		if panics {
			panic("of the program")
		}
		r.Meta = json.RawMessage(`17`)
		return next(ctx, r)
	}
	log := intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{add}}, func(t *testing.T, m *supervisor.Manager, _ *fake) {
		if _, err := m.CallServerTool(t.Context(), "a", "work", nil); !errors.Is(err, supervisor.ErrInvalid) {
			t.Errorf("what is no object was sent as _meta: %v", err)
		}
		panics = true
		if _, err := m.CallServerTool(t.Context(), "a", "work", nil); !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("a panic: %v", err)
		}
	})
	if !strings.Contains(log, "an interceptor panicked: of the program") {
		t.Errorf("recorded: %s", log)
	}
}

// The time around next holds the waiting for a connection.
func TestAnInterceptorSeesTheWaiting(t *testing.T) {
	var took time.Duration
	measure := func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		began := time.Now()
		res, err := next(ctx, r)
		took = time.Since(began)
		return res, err
	}
	intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{measure}, CallWait: 300 * time.Millisecond},
		func(t *testing.T, m *supervisor.Manager, f *fake) {
			f.set(func(f *fake) { f.mute = true })
			f.kill()
			synctest.Wait()
			if _, err := m.CallServerTool(t.Context(), "a", "work", nil); !errors.Is(err, supervisor.ErrNotSent) || took != 300*time.Millisecond {
				t.Errorf("%v after %v", err, took)
			}
		})
}

// TestNothingIsSentAfterTheEndOfARequest: next, called after the caller has left or after the interceptor has returned, sends nothing.
func TestNothingIsSentAfterTheEndOfARequest(t *testing.T) {
	var late atomic.Pointer[supervisor.Error]
	send := func(r *supervisor.Request, next supervisor.Invoker) {
		_, err := next(context.Background(), r)
		e, _ := errors.AsType[*supervisor.Error](err)
		late.Store(e)
	}
	for name, intercept := range map[string]supervisor.Interceptor{
		"the caller has left": func(_ context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			time.Sleep(2 * time.Second)
			send(r, next)
			return nil, errors.New("too late")
		},
		"it has returned": func(_ context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			time.AfterFunc(time.Second, func() { send(r, next) })
			return nil, errors.New("later")
		},
	} {
		t.Run(name, func(t *testing.T) {
			late.Store(nil)
			intercepted(t, supervisor.Config{Interceptors: []supervisor.Interceptor{intercept}}, func(t *testing.T, m *supervisor.Manager, f *fake) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := m.ReadServerResource(ctx, "a", "x:///1"); !errors.Is(err, supervisor.ErrNotSent) {
					t.Errorf("the read: %v", err)
				}
				time.Sleep(time.Minute)
				if e := late.Load(); e == nil || e.Outcome != messages.OutcomeNotSent || f.reads.Load() > 0 {
					t.Errorf("%d reads; next returned %v", f.reads.Load(), e)
				}
			})
		})
	}
}
