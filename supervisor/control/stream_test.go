package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// Bytes reach the caller as the server sent them, also those that a JSON encoder would write differently.
func TestWhatIsReadIsTheServersBytes(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	read, err := c.Read(t.Context(), control.Read{URI: "a://b"})
	if err != nil || string(read.Raw) != oddContents || read.Server != "p" || read.Contents()[0].Text != "A <b>" {
		t.Errorf("%s, %v", read.Raw, err)
	}
	fill, err := c.Fill(t.Context(), control.Fill{Qualified: "mcp__p__q"})
	if err != nil || string(fill.Raw) != oddContents || fill.Server != "p" || fill.Name != "q" {
		t.Errorf("%+v, %v", fill, err)
	}
}

// Progress comes in order and before the answer, and _meta reaches the server.
func TestProgressComesOverTheSocket(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	var seen []float64
	res, err := dial(t, s.location).Call(t.Context(), control.Call{Server: "p", Tool: "steps", CallHooks: control.CallHooks{
		Progress: func(p messages.Progress) { seen = append(seen, p.Progress) },
		Meta:     json.RawMessage(`{"example.com/trace": "<t>"}`),
	}})
	if err != nil || res.Text() != "<t>" {
		t.Errorf("%v, %v", res.Text(), err)
	}
	if len(seen) == 0 || !slices.IsSorted(seen) {
		t.Errorf("%v", seen)
	}
}

// A question goes to the caller whose call it is about, and to the manager's own person if that caller cannot be
// asked. If no person saw it, the server learns that, and not of a cancellation.
func TestTheCallerIsAsked(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	call := func(ask func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)) string {
		t.Helper()
		res, err := c.Call(t.Context(), control.Call{Server: "p", Tool: "asks", CallHooks: control.CallHooks{Ask: ask}})
		if err != nil {
			t.Fatal(err)
		}
		return string(res.Raw)
	}
	got := call(func(_ context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
		if r.Server != "p" || r.Message != "who?" || len(r.Schema) == 0 || r.Mode != messages.ElicitForm {
			t.Errorf("%+v", r)
		}
		return messages.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"n":"<me>"}`)}, nil
	})
	var answer struct {
		StructuredContent struct{ Content struct{ N string } }
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.StructuredContent.Content.N != "<me>" {
		t.Errorf("%s", got)
	}
	if got := call(func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
		return messages.ElicitResult{}, errors.New("no terminal any more")
	}); !strings.Contains(got, "nobody could be asked") {
		t.Errorf("%s", got)
	}
	if len(s.questions) != 0 {
		t.Error("the manager's own person was asked too")
	}
	if got := call(nil); !strings.Contains(got, `"decline"`) || len(s.questions) != 1 {
		t.Errorf("%s", got)
	}
}

// If a caller goes away while a question is open, the question is withdrawn and the call ends.
func TestACallerWhoGoesAwayIsAskedNoMore(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	ctx, leave := context.WithCancel(t.Context())
	_, err := c.Call(ctx, control.Call{Server: "p", Tool: "asks", CallHooks: control.CallHooks{
		Ask: func(ctx context.Context, _ messages.ElicitRequest) (messages.ElicitResult, error) {
			leave()
			<-ctx.Done()
			return messages.ElicitResult{}, ctx.Err()
		},
	}})
	if !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("%v", err)
	}
	if len(s.questions) != 0 {
		t.Errorf("the manager's own person was asked: %+v", <-s.questions)
	}
}

// A watcher gets one call at its beginning and one for each change; the last watcher that leaves ends the
// subscription.
func TestAResourceIsWatchedOverTheSocket(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	enough := errors.New("enough")
	heard := 0
	err := c.Watch(t.Context(), "p", "a://b", func() error {
		if heard++; heard == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	<-s.stopped // resources/unsubscribe
	ctx, leave := context.WithCancel(t.Context())
	if err := c.Watch(ctx, "p", "a://b", func() error { leave(); return nil }); err != nil {
		t.Errorf("the caller's own end is no error: %v", err)
	}
}

// Follow gives the events of one server until the caller leaves or the manager ends, which is reported as an error.
func TestEventsAreFollowedOverTheSocket(t *testing.T) {
	s := newTestManager(t)
	s.serve(t)
	c := dial(t, s.location)
	enough := errors.New("enough")
	over := make(chan error, 1)
	go func() {
		over <- c.Follow(t.Context(), "p", func(e messages.Event) error {
			if e.Server != "p" {
				t.Errorf("%+v", e)
			}
			if e.Kind == messages.EventCallEnded {
				return enough
			}
			return nil
		})
	}()
	for {
		if _, err := c.Call(t.Context(), control.Call{Server: "p", Tool: "odd"}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-over:
			if !errors.Is(err, enough) {
				t.Errorf("%v", err)
			}
			return
		default: // Follow has not begun yet
		}
	}
}
