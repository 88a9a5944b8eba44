package supervisortest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestToolsAnswer: each kind of tool, what was called, and a tool that does not exist.
func TestToolsAnswer(t *testing.T) {
	files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"), supervisortest.Echo("echo"),
		supervisortest.Tool{Name: "plain"}, supervisortest.Func("fail", func(context.Context, supervisortest.Call) (string, error) {
			return "", errors.New("no such file")
		}))
	m := supervisortest.Start(t, files)
	for tool, want := range map[string]string{"read": "hello", "echo": `{"n":1}`, "plain": "ok", "fail": "no such file"} {
		out, err := m.CallServerTool(t.Context(), "files", tool, map[string]any{"n": 1})
		if err != nil || out.Text() != want || out.IsError != (tool == "fail") {
			t.Errorf("%s: %q, %v, %v", tool, out.Text(), out.IsError, err)
		}
	}
	if n, c := len(files.Calls()), files.Connections(); n != 4 || c != 1 {
		t.Errorf("%d calls over %d connections", n, c)
	}
}

// TestACallShowsWhoseItIs: the caller reaches the call and the context of the tool's function, and so does the _meta that an interceptor sends.
func TestACallShowsWhoseItIs(t *testing.T) {
	files := supervisortest.NewServer("files", supervisortest.Func("read", func(ctx context.Context, c supervisortest.Call) (string, error) {
		return supervisor.CallerOf(ctx) + " " + c.Caller, nil
	}))
	m := supervisortest.StartConfig(t, supervisor.Config{Interceptors: []supervisor.Interceptor{
		func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
			r.Meta = json.RawMessage(`{"traceparent":"00-1-2-01"}`)
			return next(ctx, r)
		},
	}}, files)
	for _, caller := range []string{"anna", "bert", ""} {
		out, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "files", "read", nil)
		if want := caller + " " + caller; err != nil || out.Text() != want {
			t.Errorf("%q, %v", out.Text(), err)
		}
	}
	for i, want := range []string{"anna", "bert", ""} {
		if c := files.Calls()[i]; c.Caller != want || !strings.Contains(string(c.Meta), `"traceparent":"00-1-2-01"`) {
			t.Errorf("%q, %s", c.Caller, c.Meta)
		}
	}
}

// TestServersDoWhatTheyAreTold goes through every way to misbehave, in virtual time.
func TestServersDoWhatTheyAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervisortest.NewServer("s", supervisortest.Text("go", "done"))
		m := supervisortest.Start(t, s)
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := m.CallServerTool(ctx, "s", "go", nil)
			return err
		}

		release := s.Hang("go")
		if err := call(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hanging: %v", err)
		}
		ended := make(chan error)
		go func() { ended <- call() }()
		synctest.Wait()
		s.Crash()
		if err := <-ended; !errors.Is(err, supervisor.ErrOutcomeUnknown) {
			t.Errorf("crashed under a call: %v", err)
		}
		release()
		release() // once more does nothing
		if err := m.Ready(t.Context(), "s"); err != nil || call() != nil || s.Connections() != 2 {
			t.Errorf("back again: %v, %d connections", err, s.Connections())
		}

		s.Refuse(errors.New("down for the night"))
		s.Crash()
		time.Sleep(time.Hour)
		if err := call(); !errors.Is(err, supervisor.ErrNotConnected) || !strings.Contains(err.Error(), "down for the night") {
			t.Errorf("refused: %v", err)
		}
		s.Refuse(nil)
		if err := m.Ready(t.Context(), "s"); err != nil {
			t.Errorf("after the night: %v", err)
		}

		s.SetTools(supervisortest.Text("stay", "here"))
		time.Sleep(time.Minute)
		if tools := m.Tools().Server("s"); len(tools) != 1 || tools[0].Tool.Name != "stay" {
			t.Errorf("after another list: %v", tools)
		}

		s.SetSilent(true)
		s.Crash()
		time.Sleep(time.Minute)
		if st, err := m.ServerStatus("s"); err != nil || st.Status == messages.Connected {
			t.Errorf("silent: %+v, %v", st, err)
		}
	})
}

// TestServersAsk: a question within a call, one outside of it, one that the client refuses, and one without a connection.
func TestServersAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervisortest.NewServer("s", supervisortest.Func("go", func(ctx context.Context, c supervisortest.Call) (string, error) {
			answer, err := c.Ask(ctx, "elicitation/create", map[string]any{"message": "sure?",
				"requestedSchema": json.RawMessage(`{"type":"object","properties":{}}`)})
			return string(answer), err
		}))
		if _, err := s.Ask(t.Context(), "roots/list", nil); !errors.Is(err, supervisortest.ErrNotConnected) {
			t.Errorf("before the start: %v", err)
		}
		m := supervisortest.StartConfig(t, supervisor.Config{
			Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
				return supervisor.ElicitResult{Action: "decline"}, nil
			},
		}, s)
		out, err := m.CallServerTool(t.Context(), "s", "go", nil)
		if err != nil || !strings.Contains(out.Text(), "decline") {
			t.Errorf("%q, %v", out.Text(), err)
		}
		if _, err := s.Ask(t.Context(), "sampling/createMessage", map[string]any{}); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("an ability that was not announced: %v", err)
		}
	})
}

// TestACancelledCallEnds: the handler of a call that its caller gives up is told so.
func TestACancelledCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		s := supervisortest.NewServer("s", supervisortest.Func("wait", func(ctx context.Context, _ supervisortest.Call) (string, error) {
			<-ctx.Done()
			close(ended)
			return "", ctx.Err()
		}))
		m := supervisortest.Start(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.CallServerTool(ctx, "s", "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-ended
		if n := s.Connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestStartDoesNotWaitForTheSilent: and a server that refuses has failed once when Start returns.
func TestStartDoesNotWaitForTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, closed := supervisortest.NewServer("silent"), supervisortest.NewServer("closed")
		silent.SetSilent(true)
		closed.Refuse(errors.New("closed"))
		began := time.Now()
		m := supervisortest.Start(t, silent, closed)
		if took := time.Since(began); took > time.Second {
			t.Errorf("started after %v", took)
		}
		if st, err := m.ServerStatus("closed"); err != nil || st.Status != messages.Failed {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// TestAddToLeavesItsConfigAlone: a Config may serve several managers.
func TestAddToLeavesItsConfigAlone(t *testing.T) {
	mine := supervisor.Config{Servers: map[string]supervisor.Spec{"own": {Command: "x", Disabled: true}}}
	got := supervisortest.AddTo(mine, supervisortest.NewServer("a"))
	if len(mine.Servers) != 1 || mine.InProcess != nil || len(got.Servers) != 2 || got.InProcess["a"] == nil {
		t.Errorf("%v became %v", mine.Servers, got.Servers)
	}
}

// TestReadyAfterALostCall: a caller whose call ended with the connection asks at once whether the server is ready, and is not told
// that of the connection that was lost, although the server's actor may hear of the loss later than the caller.
func TestReadyAfterALostCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervisortest.NewServer("s", supervisortest.Text("go", "done"), supervisortest.Text("hang", ""))
		m := supervisortest.Start(t, s)
		defer s.Hang("hang")()
		for n := 1; n <= 200; n++ {
			ended := make(chan error)
			go func() {
				_, err := m.CallServerTool(t.Context(), "s", "hang", nil)
				ended <- err
			}()
			synctest.Wait()
			s.Crash()
			if err := <-ended; !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Fatalf("the call under way: %v", err)
			}
			wait := m.Ready
			if n%2 == 0 {
				wait = m.Settled
			}
			if err := wait(t.Context(), "s"); err != nil || s.Connections() != n+1 {
				t.Fatalf("after %d losses: %v, %d connections", n, err, s.Connections())
			}
			time.Sleep(time.Hour) // the next loss is not one of many in a row
		}
	})
}
