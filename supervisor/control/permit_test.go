package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// permitting is a backend whose calls ask for a permission, and say what came of it.
type permitting struct {
	broken
	request supervisor.AskRequest
	answer  chan error
}

func (p permitting) Call(ctx context.Context, c control.Call) (control.Result, error) {
	if c.Permit == nil {
		return control.Result{Raw: json.RawMessage(`"not asked"`)}, nil
	}
	got, err := c.Permit(ctx, p.request)
	p.answer <- err
	return control.Result{Raw: json.RawMessage(`"` + string(got) + `"`)}, nil
}

// A question whether a call may be made reaches the caller whole, and the answer, or why there is none, the manager.
func TestPermissionsAreAskedOverTheSocket(t *testing.T) {
	yes := true
	p := permitting{answer: make(chan error, 1), request: supervisor.AskRequest{Server: "s", Tool: "t", Arguments: json.RawMessage(`{"a":  "<1>"}`),
		Annotations: &messages.Annotations{Title: "T", ReadOnly: &yes}, Trusted: true, Why: "the rule ask s", Rule: "s:t", Waiting: 3}}
	location := newLocation(t)
	srv, err := control.Serve(location, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	c := dial(t, location)
	call := func(permit func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error)) string {
		t.Helper()
		res, err := c.Call(t.Context(), control.Call{Server: "s", Tool: "t", CallHooks: control.CallHooks{Permit: permit}})
		if err != nil {
			t.Fatal(err)
		}
		return string(res.Raw)
	}
	got := call(func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
		if !reflect.DeepEqual(r, p.request) {
			t.Errorf("%+v became %+v", p.request, r)
		}
		return supervisor.AskSession, nil
	})
	if err := <-p.answer; got != `"session"` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	got = call(func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
		return supervisor.AskOnce, &messages.Error{Text: "no terminal", Fix: "open one", Err: errors.New("inner")}
	})
	var e *messages.Error
	if err := <-p.answer; got != `"no"` || !errors.As(err, &e) || e.Text != "no terminal" || e.Fix != "open one" || e.Class != messages.ClassDenied {
		t.Errorf("%s, %v", got, err)
	}
	if got := call(nil); got != `"not asked"` {
		t.Errorf("a caller without a hook was asked: %s", got)
	}
}
