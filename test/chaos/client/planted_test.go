package client_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// changed is a client of the Go SDK whose methods a test replaces, to plant a bug.
type changed struct {
	client.Client
	call  func(c client.Client, ctx context.Context, tool string, args map[string]any) (string, error)
	tools func(c client.Client, ctx context.Context) ([]string, error)
	close func(c client.Client) error
}

func (c *changed) Call(ctx context.Context, tool string, args map[string]any) (string, error) {
	if c.call == nil {
		return c.Client.Call(ctx, tool, args)
	}
	return c.call(c.Client, ctx, tool, args)
}

func (c *changed) Tools(ctx context.Context) ([]string, error) {
	if c.tools == nil {
		return c.Client.Tools(ctx)
	}
	return c.tools(c.Client, ctx)
}

func (c *changed) Close() error {
	if c.close == nil {
		return c.Client.Close()
	}
	return c.close(c.Client)
}

// planting returns a Dial whose clients are changed.
func planting(c changed) client.Dial {
	return func(ctx context.Context, s *client.Server) (client.Client, error) {
		inner, err := gosdk.Dial(sdkClient)(ctx, s)
		if err != nil {
			return nil, err
		}
		planted := c
		planted.Client = inner
		return &planted, nil
	}
}

// once is the Dial of a client that connects and never again.
func once(ctx context.Context, s *client.Server) (client.Client, error) {
	stream, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	return dialStream(ctx, stream)
}

func dialStream(ctx context.Context, stream io.ReadWriteCloser) (client.Client, error) {
	session, err := sdkClient().Connect(ctx, ioTransport(stream), nil)
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return gosdk.Session(session), nil
}

// TestThePlantedBugsAreFound: each bug is found by the check that is about it, on the day of the fault that shows it, and the same day
// is passed by the client without the bug.
func TestThePlantedBugsAreFound(t *testing.T) {
	var last string
	for _, c := range []struct {
		bug, fault, found, why string
		dial                   client.Dial
	}{
		{"repeats a write", "die-mid-call", "C3", "sent twice", planting(changed{
			call: func(c client.Client, ctx context.Context, tool string, args map[string]any) (string, error) {
				if text, err := c.Call(ctx, tool, args); err == nil {
					return text, nil
				}
				return c.Call(ctx, tool, args)
			},
		})},
		{"never comes back", "crash", "C4", "the server is healthy since", once},
		{"outlives its deadline", "hang-call", "C1", "deadline", planting(changed{
			call: func(c client.Client, ctx context.Context, tool string, args map[string]any) (string, error) {
				return c.Call(context.WithoutCancel(ctx), tool, args)
			},
		})},
		{"mistakes answers", client.Ordinary, "C2", "was given the result of", planting(changed{
			call: func(c client.Client, ctx context.Context, tool string, args map[string]any) (string, error) {
				text, err := c.Call(ctx, tool, args)
				if before := last; before != "" {
					last = text
					return before, err
				}
				last = text
				return text, err
			},
		})},
		{"does not close", client.Ordinary, "C5", "still open", planting(changed{close: func(client.Client) error { return nil }})},
		{"keeps its first list", "list-changed", "C6", "the client offers", planting(changed{
			tools: func(_ client.Client, _ context.Context) ([]string, error) {
				return []string{"put", "read", "tool-3", "write"}, nil
			},
		})},
		{"storms", "missing-binary", "C7", "opened the server more than", func(ctx context.Context, s *client.Server) (client.Client, error) {
			for {
				stream, err := s.Open(ctx)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err == nil {
					_ = stream.Close()
				}
			}
		}},
	} {
		t.Run(c.bug, func(t *testing.T) {
			day := client.Case{Name: c.fault, Kind: messages.Stdio, Era: messages.EraLegacy}.Day(client.Limits{})
			_, verdicts := play(t, day, gosdk.Dial(sdkClient))
			for _, v := range verdicts {
				if v.Answer == invariant.Violated {
					t.Errorf("without the bug: %s: %s", v.ID, v.Why)
				}
			}
			found := false
			_, verdicts = play(t, day, c.dial)
			for _, v := range verdicts {
				found = found || v.ID == c.found && v.Answer == invariant.Violated && strings.Contains(v.Why, c.why)
			}
			if !found {
				t.Errorf("not found: %+v", verdicts)
			}
		})
	}
}

// TestTheSameSeedIsTheSameDay: on one processor the records are the same. Go takes the processor from a goroutine after 10 ms, which on a
// busy machine any of them may last: where two records differ ten are made, of which two may be others than the rest.
func TestTheSameSeedIsTheSameDay(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	day := client.RandomDay(3, messages.Stdio, messages.EraLegacy, client.Limits{})
	seen := map[string]int{}
	for n := range 10 {
		h, _ := play(t, day, gosdk.Dial(sdkClient))
		seen[callsOf(h)]++
		if n == 1 && len(seen) == 1 {
			return
		}
	}
	if most := slices.Max(slices.Collect(maps.Values(seen))); most < 8 {
		t.Errorf("%d of ten runs are alike:\n%s", most, strings.Join(slices.Collect(maps.Keys(seen)), "\n"))
	}
}

// callsOf tells how every call of a record ended.
func callsOf(h *history.History) string {
	var b strings.Builder
	for _, c := range h.Index().Calls() {
		for _, i := range c.Ends {
			e := h.Events[i]
			b.WriteString(c.ID + " " + e.T.String() + " " + string(e.Outcome) + "\n")
		}
	}
	return b.String()
}
