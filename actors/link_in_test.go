package actors

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// A request goes out on the connection of its tool's entry, or on the published one. A request that has neither reaches no connection and
// ends with an error that says why.
func TestOnWhichConnectionARequestGoesOut(t *testing.T) {
	connected := lifecycle.State{Wanted: true, Phase: messages.Connected, Conn: lifecycle.Open, Epoch: 2}
	published, ofEntry := &Link{Server: "s", Epoch: 2}, &Link{Server: "s", Epoch: 2}
	for what, c := range map[string]struct {
		listed  *catalog.Change
		request *Request
		link    *Link // that the view publishes
		want    *Link
		unknown bool
	}{
		"a read":                           {request: &Request{Server: "s"}, link: published, want: published},
		"a read, and no connection":        {request: &Request{Server: "s"}},
		"a tool":                           {listed: &catalog.Change{Kind: catalog.Announce, Route: ofEntry}, link: published, want: ofEntry},
		"a tool whose connection was lost": {listed: &catalog.Change{Kind: catalog.Lose}, link: published},
		"a tool that was remembered":       {listed: &catalog.Change{Kind: catalog.Cache}, link: published},
		"a tool that is gone":              {request: &Request{Server: "s", Name: "t", Entry: &catalog.Entry{Tool: &messages.Tool{Name: "t"}}}, link: published, unknown: true},
	} {
		cell := NewCell(&View{Name: "s", Spec: &messages.Spec{}, State: connected, Link: c.link})
		calls := &Calls{Catalog: NewCatalog(messages.Naming{}), Cell: func(string) *Cell { return cell }}
		if c.listed != nil {
			tools := []messages.Tool{{Name: "t"}}
			next := calls.Catalog.Snapshot()
			if c.listed.Kind == catalog.Lose {
				next, _ = next.Apply(catalog.Change{Kind: catalog.Announce, Server: "s", Epoch: 1, Rev: 1, Tools: tools, Route: ofEntry})
			}
			change := *c.listed
			if change.Server, change.Epoch, change.Rev = "s", 1, 2; change.Kind != catalog.Lose {
				change.Tools = tools
			}
			next, _ = next.Apply(change)
			calls.Catalog.snapshot.Store(next)
			c.request = &Request{Server: "s", Name: "t", Entry: &catalog.Entry{Tool: &messages.Tool{Name: "t"}}}
		}
		link, err := calls.linkIn(cell.View(), c.request)
		if link != c.want || (err == nil) != (c.want != nil) {
			t.Errorf("%s: link %p, %v", what, link, err)
		}
		if err != nil && (messages.OutcomeOf(err) != messages.OutcomeNotSent || errors.Is(err, messages.ErrUnknownTool) != c.unknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Unsubscribing from a server that is away, or that goes away meanwhile, succeeds: there is nothing left to end. Any other failure is told.
func TestUnsubscribingFromAServerThatIsAway(t *testing.T) {
	notSent := &messages.Error{Outcome: messages.OutcomeNotSent, Class: messages.ClassNetwork, Err: messages.ErrNotConnected}
	for _, c := range []struct {
		before, after messages.Phase
		err           error
		sent, fails   bool
	}{
		{before: messages.Connected, after: messages.Connected, sent: true},
		{before: messages.Connected, after: messages.Connected, err: notSent, sent: true, fails: true},
		{before: messages.Connected, after: messages.Failed, err: notSent, sent: true},
		{before: messages.Connected, after: messages.Disabled, err: notSent, sent: true},
		{before: messages.Connected, after: messages.Failed, err: &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassNetwork}, sent: true, fails: true},
		{before: messages.Failed, after: messages.Failed, err: notSent},
		{before: messages.Disabled, after: messages.Disabled, err: notSent},
	} {
		view := func(p messages.Phase) *View {
			return &View{Name: "s", Spec: &messages.Spec{}, State: lifecycle.State{Wanted: true, Phase: p}}
		}
		cell, sent := NewCell(view(c.before)), false
		cell.Subscriptions.addURI("a")
		calls := &Calls{Cell: func(string) *Cell { return cell }, Handle: func(context.Context, *Request) error {
			sent = true
			cell.Publish(view(c.after), nil)
			return c.err
		}}
		err := calls.Unsubscribe(t.Context(), "s", "a")
		if sent != c.sent || (err != nil) != c.fails || cell.Subscriptions.Any() {
			t.Errorf("%s, then %s, with %v: sent %v, %v, still watched %v", c.before, c.after, c.err, sent, err, cell.Subscriptions.Any())
		}
	}
}

// A server's resources are watched up to a bound, beyond which a caller is told what to do, and nothing is sent. A second caller of a resource
// costs no place.
func TestWatchedResourcesAreBounded(t *testing.T) {
	cell, sent := NewCell(&View{Name: "s", Spec: &messages.Spec{}, State: lifecycle.State{Wanted: true, Phase: messages.Connected}}), 0
	calls := &Calls{Cell: func(string) *Cell { return cell }, Handle: func(context.Context, *Request) error { sent++; return nil }}
	for i := range MaxWatched {
		if err := calls.Subscribe(t.Context(), "s", fmt.Sprint(i)); err != nil {
			t.Fatalf("resource %d: %v", i, err)
		}
	}
	if err := calls.Subscribe(t.Context(), "s", "0"); err != nil || sent != MaxWatched+1 {
		t.Errorf("a second caller: %v, and %d requests", err, sent)
	}
	err := calls.Subscribe(t.Context(), "s", "more")
	var e *messages.Error
	if !errors.As(err, &e) || e.Class != messages.ClassExhausted || e.Outcome != messages.OutcomeNotSent || e.Server != "s" || e.Text == "" || e.Fix == "" || sent != MaxWatched+1 {
		t.Errorf("one too many: %v, and %d requests", err, sent)
	}
	if err := calls.Unsubscribe(t.Context(), "s", "7"); err != nil {
		t.Error(err)
	}
	if err := calls.Subscribe(t.Context(), "s", "more"); err != nil {
		t.Errorf("after another has left: %v", err)
	}
}
