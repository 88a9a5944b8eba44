package client_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// misused is a client whose methods do what the test says before they return.
type misused struct {
	client.Client
	call, close func()
}

func (c misused) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	c.call()
	return c.Client.Call(ctx, tool, arguments)
}

func (c misused) Close() error {
	defer c.close()
	return c.Client.Close()
}

// TestADayWithAClientThatIsMisusedSaysSo: a panic or a t.Fatal in a method of the client, and a dial that returns nothing, are part of the day's
// record, with where they were. A panic in Close once ended the program.
func TestADayWithAClientThatIsMisusedSaysSo(t *testing.T) {
	well := func() {}
	ends := func() { new(testing.T).FailNow() } // as a t.Fatal of any test
	ouch := func() { panic("ouch") }
	using := func(call, end func()) client.Dial {
		return func(ctx context.Context, s *client.Server) (client.Client, error) {
			c, err := dialPlain("")(ctx, s)
			return misused{c, call, end}, err
		}
	}
	nothing := "the dial returned neither a client nor an error"
	for name, c := range map[string]struct {
		dial client.Dial
		kind history.Kind
		text string
	}{
		"a panic in Call":   {using(ouch, well), history.Violation, "the client panicked: ouch, in "},
		"a panic in Close":  {using(well, ouch), history.Violation, "the client panicked: ouch, in "},
		"a t.Fatal in Call": {using(ends, well), history.Violation, "as t.Fatal does: let the method return an error, in github.com/mcpvisor/mcpvisor/test/chaos/client_test."},
		"a t.Fatal in Close": {using(well, ends), history.Violation,
			"as t.Fatal does: let the method return an error, in github.com/mcpvisor/mcpvisor/test/chaos/client_test."},
		"no client":             {func(context.Context, *client.Server) (client.Client, error) { return nil, nil }, history.End, nothing},
		"no client of a Redial": {client.Redial(func(context.Context, io.ReadWriteCloser) (client.Client, error) { return nil, nil }), history.End, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := client.Case{Name: client.Ordinary, Kind: messages.Stdio, Era: messages.EraLegacy}.Day(client.Limits{}).Plan(0, scenario.Sim)
			if err != nil {
				t.Fatal(err)
			}
			h, err := client.Run(t.Context(), plan, c.dial)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range h.Events {
				if e.Kind == c.kind && strings.Contains(e.Text, c.text) {
					return
				}
			}
			for _, e := range h.Events {
				if e.Kind == history.Violation || e.Kind == history.End {
					t.Errorf("%s %s: %s", e.Kind, e.Name, e.Text)
					break
				}
			}
			t.Errorf("no event says %q", c.text)
		})
	}
}
