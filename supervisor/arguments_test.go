package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestArgumentsThatAreKeptStayAsTheyWere: an Allow or Ask function may keep the arguments that it was shown. The calls that
// follow must not be written over them.
func TestArgumentsThatAreKeptStayAsTheyWere(t *testing.T) {
	var kept []json.RawMessage
	for name, cfg := range map[string]supervisor.Config{
		"Allow": {Allow: func(_ context.Context, _ *supervisor.Tool, args json.RawMessage) error {
			kept = append(kept, args)
			return nil
		}},
		"Ask": {Access: access.Rules{Own: access.Set{Default: access.Ask}},
			Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
				kept = append(kept, r.Arguments)
				return supervisor.AskOnce, nil
			}},
	} {
		synctest.Test(t, func(t *testing.T) {
			kept = nil
			m := start(t, cfg, map[string]*fake{"a": newFake("echo")})
			settled(t, m)
			for i := range 10 {
				if _, err := m.CallTool(t.Context(), "mcp__a__echo", map[string]any{"n": i}); err != nil {
					t.Fatal(name, err)
				}
			}
			if len(kept) != 10 {
				t.Fatalf("%s was called %d times", name, len(kept))
			}
			for i, args := range kept {
				if want := fmt.Sprintf(`{"n":%d}`, i); string(args) != want {
					t.Errorf("%s kept %s, which has become %s", name, want, args)
				}
			}
		})
	}
}

// TestCallsShareNoArguments: calls side by side, of all sizes, each arrive with their own arguments, though their buffers are
// used again.
func TestCallsShareNoArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		f.onCall = func(_ context.Context, _ string, args json.RawMessage) (string, error) {
			var a struct{ Text string }
			err := json.Unmarshal(args, &a)
			return a.Text, err
		}
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		done := make(chan error)
		const callers, calls = 8, 20
		for c := range callers {
			go func() {
				for i := range calls {
					// Line breaks, quotes and characters beyond ASCII must come through the way that skips the check.
					text := strings.Repeat(fmt.Sprintf("%d-%d \"ü\"\n", c, i), 1+i*i*c)
					res, err := m.CallTool(t.Context(), "mcp__a__echo", map[string]any{"text": text})
					if err != nil || res.Text() != text {
						done <- fmt.Errorf("call %d of caller %d: %v, and %d bytes", i, c, err, len(text))
						return
					}
				}
				done <- nil
			}()
		}
		for range callers {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestArgumentsThatCannotBeWrittenNameTheirTool: the error says which server and tool the call was for, by either name.
func TestArgumentsThatCannotBeWrittenNameTheirTool(t *testing.T) {
	m := supervisortest.Start(t, supervisortest.NewServer("files", supervisortest.Echo("read")))
	for _, call := range []func() (*supervisor.Result, error){
		func() (*supervisor.Result, error) { return m.CallTool(t.Context(), "mcp__files__read", make(chan int)) },
		func() (*supervisor.Result, error) {
			return m.CallServerTool(t.Context(), "files", "read", map[string]any{"n": make(chan int)})
		},
	} {
		_, err := call()
		if e, ok := errors.AsType[*supervisor.Error](err); !ok || !errors.Is(err, supervisor.ErrNotSent) || e.Server != "files" || e.Tool != "read" {
			t.Errorf("%v", err)
		}
	}
}
