package supervisor_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
)

// What Config.Wrap is given is the transport of the spec, with all that the spec says of its process.
func TestWrapLosesNothingOfTheSpec(t *testing.T) {
	dir := t.TempDir()
	seen := make(chan string, 10)
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"wrapped": {Command: "sh", Args: []string{"-c", `echo "$MINE in $PWD" > seen; exit 1`}, Cwd: dir, Env: map[string]string{"MINE": "yes"}},
		},
		Wrap: func(name string, spec supervisor.Spec, t transports.Transport) transports.Transport {
			seen <- name + " " + string(t.Kind()) + " " + spec.Cwd
			return announced{t, seen}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, m)
	if got := <-seen; got != "wrapped "+string(messages.Stdio)+" "+dir {
		t.Errorf("asked for %q", got)
	}
	if got := <-seen; got != "dialled" {
		t.Errorf("%q: what Wrap returned is not used", got)
	}
	settled(t, m)
	said, err := os.ReadFile(dir + "/seen")
	if err != nil || strings.TrimSpace(string(said)) != "yes in "+dir {
		t.Errorf("the server saw %q, %v", said, err)
	}
}

// A function of the program that panics costs its own server, whose status names the function; what the program gave to Start, Remove
// sends back to it.
func TestTheErrorNamesTheProgramsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{
			Transport: func(name string, _ supervisor.Spec) (transports.Transport, error) {
				if name == "made" {
					panic("ouch")
				}
				return nil, nil
			},
			Wrap: func(name string, _ supervisor.Spec, t transports.Transport) transports.Transport {
				if name == "wrapped" {
					panic("ouch")
				}
				return nil
			},
		}, map[string]*fake{"made": newFake("x"), "wrapped": newFake("x"), "well": newFake("x")})
		settled(t, m)
		for name, want := range map[string]string{"made": "Config.Transport panicked: ouch", "wrapped": "Config.Wrap panicked: ouch", "well": ""} {
			if st, err := m.ServerStatus(name); err != nil || (st.Status == supervisor.Connected) != (want == "") || !strings.Contains(st.Error, want) {
				t.Errorf("%s: %v %q %v", name, st.Status, st.Error, err)
			}
		}
		if err := m.Remove(t.Context(), "well"); err == nil || !strings.Contains(err.Error(), "Config.Servers") {
			t.Errorf("Remove: %v", err)
		}
		_, err := supervisor.Start(t.Context(), supervisor.Config{Restart: restart.Policy{Factor: 3}})
		if !errors.Is(err, supervisor.ErrInvalid) || !strings.Contains(err.Error(), "begin with restart.DefaultPolicy()") || strings.Contains(err.Error(), "\n") {
			t.Errorf("a part of a policy: %v", err)
		}
	})
}

// announced tells of each dial.
type announced struct {
	transports.Transport
	seen chan<- string
}

func (r announced) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	select {
	case r.seen <- "dialled":
	default:
	}
	return r.Transport.Dial(ctx, sink)
}
