package daemon

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// TestTheControlSocketOfADaemonThatEnds: a daemon that followed another one found the control socket of a project in use, wrote that "process N
// runs mcpvisor up", and the other commands did not find the servers until another agent came. It takes the socket now once the daemon before
// leaves it, and complains of nothing.
func TestTheControlSocketOfADaemonThatEnds(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, filepath.Join(home, "x"))
	}
	m, err := supervisor.Start(t.Context(), supervisor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close(context.WithoutCancel(t.Context())) }()
	location, err := control.LocationOf(home)
	if err != nil {
		t.Fatal(err)
	}
	before, err := control.Serve(location, control.Local(m, control.LocalConfig{Project: home}))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := &daemon{options: &cli.Options{Streams: terminal.Streams{Err: &log}}, hosts: map[string]*host{}}
	c := &projectControl{}
	c.begin(home, m, control.LocalConfig{Project: home})
	c.open(d)
	if c.socket.Load() != nil {
		t.Fatal("two have one socket")
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); c.socket.Load() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the socket was not taken")
		}
	}
	c.close(d)
	if log.Len() > 0 {
		t.Errorf("the log says %s", log.String())
	}
}
