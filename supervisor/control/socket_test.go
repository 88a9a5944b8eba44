package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every method of a Backend gives the same over the socket as in the manager's own process.
func TestTheSocketAnswersAsTheManagerDoes(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	here := control.Local(s.m, control.LocalConfig{Project: s.location.Project, Origin: "o"})
	there := dial(t, s.location)
	ctx := t.Context()
	call := func(c control.Call) func(control.Backend) (any, error) {
		return func(b control.Backend) (any, error) { return b.Call(ctx, c) }
	}
	for name, ask := range map[string]func(control.Backend) (any, error){
		"status": func(b control.Backend) (any, error) { return b.Status(ctx, control.StatusQuery{}) },
		"status of one": func(b control.Backend) (any, error) {
			return b.Status(ctx, control.StatusQuery{Servers: []string{"off"}})
		},
		"status of none": func(b control.Backend) (any, error) {
			return b.Status(ctx, control.StatusQuery{Servers: []string{"x"}})
		},
		"status, wait": func(b control.Backend) (any, error) {
			return b.Status(ctx, control.StatusQuery{Wait: time.Minute})
		},
		"tools":               func(b control.Backend) (any, error) { return b.Tools(ctx) },
		"tools of one":        func(b control.Backend) (any, error) { return b.Tools(ctx, "p") },
		"tools of none":       func(b control.Backend) (any, error) { return b.Tools(ctx, "p", "x") },
		"history":             func(b control.Backend) (any, error) { return b.History(ctx, "p") },
		"history of none":     func(b control.Backend) (any, error) { return b.History(ctx, "x") },
		"call":                call(control.Call{Server: "p", Tool: "odd"}),
		"call by name":        call(control.Call{Qualified: "mcp__p__odd"}),
		"call, isError":       call(control.Call{Server: "p", Tool: "fails"}),
		"call, rejected":      call(control.Call{Server: "p", Tool: "refuses"}),
		"call, no tool":       call(control.Call{Server: "p", Tool: "x"}),
		"call, no server":     call(control.Call{Server: "x", Tool: "x"}),
		"call, disabled":      call(control.Call{Server: "off", Tool: "odd"}),
		"call, no object":     call(control.Call{Server: "p", Tool: "odd", Args: json.RawMessage(`[1]`)}),
		"resources":           func(b control.Backend) (any, error) { return b.Resources(ctx) },
		"resources of one":    func(b control.Backend) (any, error) { return b.Resources(ctx, "p") },
		"resources, disabled": func(b control.Backend) (any, error) { return b.Resources(ctx, "off") },
		"templates":           func(b control.Backend) (any, error) { return b.Templates(ctx) },
		"prompts":             func(b control.Backend) (any, error) { return b.Prompts(ctx, "p") },
		"prompts of none":     func(b control.Backend) (any, error) { return b.Prompts(ctx, "x") },
		"read":                func(b control.Backend) (any, error) { return b.Read(ctx, control.Read{URI: "a://b"}) },
		"read at":             func(b control.Backend) (any, error) { return b.Read(ctx, control.Read{URI: "a://b", Server: "p"}) },
		"read nothing":        func(b control.Backend) (any, error) { return b.Read(ctx, control.Read{URI: "c://b"}) },
		"read, unknown":       func(b control.Backend) (any, error) { return b.Read(ctx, control.Read{URI: "a://none", Server: "p"}) },
		"fill": func(b control.Backend) (any, error) {
			return b.Fill(ctx, control.Fill{Server: "p", Name: "q", Args: map[string]string{"x": "<&>"}})
		},
		"fill by name": func(b control.Backend) (any, error) { return b.Fill(ctx, control.Fill{Qualified: "mcp__p__q"}) },
		"fill nothing": func(b control.Backend) (any, error) { return b.Fill(ctx, control.Fill{Qualified: "mcp__x__q"}) },
		"complete": func(b control.Backend) (any, error) {
			return b.Complete(ctx, "p", messages.CompleteRequest{Prompt: "q", Argument: "x", Context: map[string]string{"a": "b"}})
		},
		"complete nothing": func(b control.Backend) (any, error) { return b.Complete(ctx, "p", messages.CompleteRequest{}) },
		"ping none":        func(b control.Backend) (any, error) { _, err := b.Ping(ctx, "x"); return nil, err },
		"ping":             func(b control.Backend) (any, error) { _, err := b.Ping(ctx, "p"); return nil, err },
		"logs":             func(b control.Backend) (any, error) { return b.Logs(ctx, "p") },
		"logs of none":     func(b control.Backend) (any, error) { return b.Logs(ctx, "x") },
		"follow none": func(b control.Backend) (any, error) {
			return nil, b.Follow(ctx, "x", func(messages.Event) error { return nil })
		},
		"watch none": func(b control.Backend) (any, error) {
			return nil, b.Watch(ctx, "x", "a://b", func() error { return nil })
		},
		"reconnect none":     func(b control.Backend) (any, error) { return nil, b.Reconnect(ctx, "x") },
		"reconnect disabled": func(b control.Backend) (any, error) { return nil, b.Reconnect(ctx, "off") },
		"enable none":        func(b control.Backend) (any, error) { return nil, b.Enable(ctx, "x") },
		"disable none":       func(b control.Backend) (any, error) { return nil, b.Disable(ctx, "x", true) },
	} {
		want, wantErr := ask(here)
		got, gotErr := ask(there)
		if (wantErr == nil) != (gotErr == nil) {
			t.Errorf("%s: the error is %v here and %v there", name, wantErr, gotErr)
			continue
		}
		if wantErr != nil {
			sameError(t, name, wantErr, gotErr)
			continue
		}
		if res, ok := want.(control.Result); ok { // compared byte for byte: a JSON encoder would hide a difference
			if other := got.(control.Result); string(res.Raw) != string(other.Raw) || res.IsError != other.IsError {
				t.Errorf("%s: %s here, %s there", name, res.Raw, other.Raw)
			}
			continue
		}
		if want, got := asJSON(t, want), asJSON(t, got); want != got {
			t.Errorf("%s:\nhere  %s\nthere %s", name, want, got)
		}
	}
	res, err := there.Call(ctx, control.Call{Server: "p", Tool: "odd"})
	if err != nil || string(res.Raw) != oddResult {
		t.Errorf("the result is %s (%v), not the server's own bytes", res.Raw, err)
	}
	hello, err := there.Hello(ctx)
	if err != nil || hello.PID != os.Getpid() || hello.Origin != "o" || len(hello.Names) != 2 {
		t.Errorf("hello is %+v (%v)", hello, err)
	}
}

func sameError(t *testing.T, name string, want, got error) {
	t.Helper()
	var w, g *messages.Error
	if !errors.As(want, &w) || !errors.As(got, &g) {
		t.Errorf("%s: %T here, %T there", name, want, got)
		return
	}
	if w.Error() != g.Error() || w.Class != g.Class || w.Outcome != g.Outcome || w.Code != g.Code ||
		string(w.Data) != string(g.Data) {
		t.Errorf("%s:\nhere  %+v\nthere %+v", name, w, g)
	}
	for _, sentinel := range []error{messages.ErrUnknownServer, messages.ErrUnknownTool, messages.ErrDisabled,
		messages.ErrClosed, messages.ErrNotSent, messages.ErrRejected, messages.ErrInvalid} {
		if errors.Is(want, sentinel) != errors.Is(got, sentinel) {
			t.Errorf("%s: errors.Is(…, %q) differs", name, sentinel)
		}
	}
}

func TestWishesTakeEffect(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c, ctx := dial(t, s.location), t.Context()
	phase := func(server string) messages.Status {
		st, err := c.Status(ctx, control.StatusQuery{Servers: []string{server}})
		if err != nil {
			t.Fatal(err)
		}
		return st[0]
	}
	if err := c.Enable(ctx, "off"); err != nil || phase("off").Status != messages.Connected {
		t.Errorf("enable: %v, %+v", err, phase("off"))
	}
	if err := c.Disable(ctx, "off", false); err != nil || phase("off").Status != messages.Disabled || !phase("off").Warm {
		t.Errorf("disable: %v, %+v", err, phase("off"))
	}
	if err := c.Disable(ctx, "p", true); err != nil || phase("p").Status != messages.Disabled || phase("p").Warm {
		t.Errorf("disable with disconnect: %v, %+v", err, phase("p"))
	}
	if err := c.Enable(ctx, "p"); err != nil {
		t.Error(err)
	}
	before := phase("p").Epoch
	if err := c.Reconnect(ctx, "p"); err != nil || phase("p").Epoch <= before {
		t.Errorf("reconnect: %v, epoch %d after %d", err, phase("p").Epoch, before)
	}
}

// A caller that goes away, or whose time has passed, leaves no call behind in the other process.
func TestTheEndOfACallerEndsItsCall(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	for name, limit := range map[string]func() (context.Context, context.CancelFunc, messages.Class){
		"cancelled": func() (context.Context, context.CancelFunc, messages.Class) {
			ctx, cancel := context.WithCancel(t.Context())
			return ctx, cancel, messages.ClassCanceled
		},
		"cancelled before its deadline": func() (context.Context, context.CancelFunc, messages.Class) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			return ctx, cancel, messages.ClassCanceled
		},
		"deadline": func() (context.Context, context.CancelFunc, messages.Class) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // within which the call is there, on a busy machine too
			_ = cancel
			return ctx, func() {}, messages.ClassTimeout
		},
	} {
		ctx, cancel, class := limit()
		ended := make(chan error)
		go func() {
			_, err := c.Call(ctx, control.Call{Server: "p", Tool: "waits"})
			ended <- err
		}()
		select {
		case <-s.started:
		case err := <-ended:
			t.Fatalf("%s: the call ended before it was there: %v", name, err)
		}
		cancel()
		err := <-ended
		var e *messages.Error
		if !errors.As(err, &e) || e.Class != class || e.Outcome != messages.OutcomeUnknown ||
			e.Server != "p" || e.Tool != "waits" {
			t.Errorf("%s: the call ended with %v (%+v)", name, err, e)
		}
		<-s.stopped
	}
}

func TestAnAnswerThatIsLostIsUnknown(t *testing.T) {
	s := newTestManager(t)
	srv := s.serve(t)
	c := dial(t, s.location)
	ended := make(chan error)
	go func() {
		_, err := c.Call(t.Context(), control.Call{Server: "p", Tool: "waits"})
		ended <- err
	}()
	<-s.started
	srv.Close()
	if err := <-ended; !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("a call whose answer was lost ended with %v", err)
	}
	if _, err := c.Call(t.Context(), control.Call{Server: "p", Tool: "odd"}); !errors.Is(err, messages.ErrNotSent) {
		t.Errorf("a call that nobody took ended with %v", err)
	}
}

func TestOneServesAPlace(t *testing.T) {
	s := newTestManager(t)
	srv := s.serve(t)
	backend := control.Local(s.m, control.LocalConfig{})
	_, err := control.Serve(s.location, backend)
	if !errors.Is(err, control.ErrRunning) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second one got %v", err)
	}
	if _, err := dial(t, s.location).Status(t.Context(), control.StatusQuery{}); err != nil {
		t.Errorf("the first one is disturbed: %v", err)
	}
	srv.Close()
	srv.Close()
	if _, err := os.Stat(s.location.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	second, err := control.Serve(s.location, backend)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	second.Close()
}

// The lock decides who serves, in any order in which several processes begin and end.
func TestManyBeginAtOnce(t *testing.T) {
	s := newTestManager(t)
	backend := control.Local(s.m, control.LocalConfig{})
	var serving, most, refused atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				srv, err := control.Serve(s.location, backend)
				if err != nil {
					if !errors.Is(err, control.ErrRunning) {
						t.Errorf("refused with %v", err)
					}
					refused.Add(1)
					continue
				}
				if n := serving.Add(1); n > most.Load() {
					most.Store(n)
				}
				serving.Add(-1)
				srv.Close()
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 || refused.Load() == 0 {
		t.Errorf("at most %d served at once, %d were refused", most.Load(), refused.Load())
	}
}

// A killed process leaves its socket and its lock's file.
func TestWhatADeadOneLeftIsReplaced(t *testing.T) {
	s := newTestManager(t)
	if err := os.MkdirAll(filepath.Dir(s.location.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", s.location.Socket)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if err := os.WriteFile(s.location.Lock, []byte("99999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(t.Context(), s.location); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("dialling a dead one: %v", err)
	}
	s.serve(t)
	dial(t, s.location)
}

func TestNobodyRuns(t *testing.T) {
	location := newLocation(t)
	if _, err := control.Dial(t.Context(), location); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(location.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(t.Context(), location); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("without a socket: %v", err)
	}
}

// A suspended process accepts connections and answers nothing: the asking command must go on all the same.
func TestASuspendedOneIsNotWaitedFor(t *testing.T) {
	location := newLocation(t)
	if err := os.MkdirAll(filepath.Dir(location.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", location.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = control.Dial(ctx, location)
	if errors.Is(err, control.ErrNotRunning) || messages.ClassOf(err) != messages.ClassTimeout || ctx.Err() != nil {
		t.Errorf("dialling ended with %v", err)
	}
}

func TestTheSocketIsTheUsersAlone(t *testing.T) {
	unixOnly(t)
	s := newTestManager(t)
	srv := s.serve(t)
	for path, want := range map[string]os.FileMode{
		s.location.Socket: 0o600, s.location.Lock: 0o600, filepath.Dir(s.location.Socket): 0o700,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), not %v", path, info.Mode().Perm(), err, want)
		}
	}
	srv.Close()
	if err := os.Chmod(filepath.Dir(s.location.Socket), 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	_, err := control.Serve(s.location, control.Local(s.m, control.LocalConfig{}))
	if messages.ClassOf(err) != messages.ClassDenied {
		t.Errorf("a directory that others write to is used for serving: %v", err)
	}
	if _, err := control.Dial(t.Context(), s.location); messages.ClassOf(err) != messages.ClassDenied {
		t.Errorf("a directory that others write to is trusted: %v", err)
	}
}

// broken gives answers that no version of this program gives.
type broken struct{ control.Backend }

func (broken) Hello(context.Context) (control.Hello, error)                           { return control.Hello{PID: 1}, nil }
func (broken) Status(context.Context, control.StatusQuery) ([]messages.Status, error) { panic("ouch") }
func (broken) Call(context.Context, control.Call) (control.Result, error)             { panic("ouch") }
func (broken) Reconnect(context.Context, string) error {
	return &messages.Error{
		Op: "o", Outcome: messages.OutcomeRejected, Class: messages.ClassThrottled, Server: "s", Tool: "t",
		Text: "x", Fix: "f", Nearest: "n",
		Code: -7, Data: json.RawMessage(`{"a":  [1.0] }`), RetryAfter: 1500 * time.Millisecond, Retry: messages.RetryAt, Task: "t-1",
		Err:       messages.ErrDisabled,
		Challenge: &messages.Challenge{Scheme: "Bearer", Scope: "a b", ResourceMetadata: "https://x", Text: "y"},
	}
}

func TestEveryFieldOfAnErrorTravels(t *testing.T) {
	location := newLocation(t)
	srv, err := control.Serve(location, broken{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := dial(t, location)
	var want, got *messages.Error
	errors.As(broken{}.Reconnect(t.Context(), ""), &want)
	if err := c.Reconnect(t.Context(), "s"); !errors.As(err, &got) || !reflect.DeepEqual(want, got) {
		t.Errorf("%+v became %+v (%v)", want, got, err)
	}
	for i := range reflect.TypeFor[messages.Error]().NumField() {
		if reflect.TypeFor[messages.Error]().Field(i).Name == "Reply" {
			continue // it is for a gateway in the process of the manager
		}
		if reflect.ValueOf(*want).Field(i).IsZero() {
			t.Errorf("field %s is not tested", reflect.TypeFor[messages.Error]().Field(i).Name)
		}
	}
	if _, err := c.Status(t.Context(), control.StatusQuery{}); messages.ClassOf(err) != messages.ClassPanic {
		t.Errorf("a panic gave %v", err)
	}
	if _, err := c.Call(t.Context(), control.Call{Server: "s"}); messages.ClassOf(err) != messages.ClassPanic ||
		!errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("a panic in a call gave %v", err)
	}
}

// otherVersion serves a location as a process of another protocol does: it knows the greeting, and no command of ours.
func otherVersion(t *testing.T, hello string) control.Location {
	t.Helper()
	location := newLocation(t)
	if err := os.MkdirAll(filepath.Dir(location.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", location.Socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, hello) })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	return location
}

// Both protocols are named, and what to do; the greeting of protocol 3 had further members.
func TestAnotherProtocolIsNamed(t *testing.T) {
	ours := fmt.Sprintf("control protocol %d,", control.Protocol)
	for hello, want := range map[string][]string{
		`{"protocol":3,"pid":77,"version":"v0.9","started":"2026-01-01T00:00:00Z","project":"/p","names":["a"]}`: {
			ours, "process 77, version v0.9) 3", "end process 77"},
		`{"protocol":99,"pid":78,"version":"v9","more":{}}`: {ours, "process 78, version v9) 99", "use the newer mcpvisor"},
		`no greeting`: {"no mcpvisor that this one understands"},
	} {
		_, err := control.Dial(t.Context(), otherVersion(t, hello))
		if messages.ClassOf(err) != messages.ClassUnsupported || errors.Is(err, control.ErrNotRunning) {
			t.Errorf("dialling ended with %v", err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
	}
}

// A program of another protocol gets the greeting, by which it can refuse this one by name, and no success.
func TestAnotherProtocolIsGreeted(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	client := socketClient(s.location.Socket)
	for request, want := range map[string]int{"GET /v1/hello": 200, "GET /v1/status": 404, "POST /v1/call?server=p&tool=odd": 404,
		"POST /v5/GetManager": 404, "GET /v4/GetStatus": 404} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var hello struct {
			Protocol, PID int
			Version       string
		}
		err = json.NewDecoder(resp.Body).Decode(&hello)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || hello.Protocol != control.Protocol || hello.PID != os.Getpid() || hello.Version == "" {
			t.Errorf("%s: %s, %+v, %v", request, resp.Status, hello, err)
		}
	}
}
