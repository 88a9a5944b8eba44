package supervisor_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
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
