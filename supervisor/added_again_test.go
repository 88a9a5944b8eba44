package supervisor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
)

// refusingEach is a transport that opens no connection, and counts the attempts.
type refusingEach struct {
	refusing
	attempts *atomic.Int64
}

func (r refusingEach) Dial(ctx context.Context, s transports.Sink) (transports.Conn, error) {
	r.attempts.Add(1)
	return r.refusing.Dial(ctx, s)
}

// TestAddedAgainIsTriedAgain: a program that adds a server anew, as it is, wants it connected: one that needs a sign-in is tried at once,
// as one that failed is.
func TestAddedAgainIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		m := start(t, supervisor.Config{Transport: func(string, supervisor.Spec) (transports.Transport, error) {
			return refusingEach{refusing{&transports.Error{Class: messages.ClassUnauthorized, Text: "401"}}, &attempts}, nil
		}}, nil)
		spec := supervisor.Spec{Type: messages.HTTP, URL: "http://example.com/mcp"}
		for n := int64(1); n <= 3; n++ {
			if err := m.Connect(t.Context(), "s", spec); !errors.Is(err, supervisor.ErrNeedsAuth) {
				t.Fatal(err)
			}
			phaseIs(t, m, "s", messages.NeedsAuth)
			if got := attempts.Load(); got != n {
				t.Errorf("%d attempts after it was added %d times", got, n)
			}
		}
	})
}
