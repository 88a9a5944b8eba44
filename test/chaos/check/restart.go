package check

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// checkRestart kills the process under a manager, and measures how long the manager needs to be connected again.
func (s *serverCheck) checkRestart(ctx context.Context) {
	if s.kind != messages.Stdio {
		return
	}
	spec := s.spec
	spec.Connect, spec.StopGrace = messages.Eager, messages.Duration(s.o.Grace)
	// The era is known, and its probe is not what is measured here.
	if s.era != "" && spec.Era == "" {
		spec.Era = s.era // it was found out, and a probe is not what is measured here
	}
	// The bound allows for two starts and the manager's own pause between attempts.
	bound := 2*s.connectTimeout() + 10*time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers: map[string]messages.Spec{s.name: spec}, Guard: s.o.Guard, InheritEnv: s.o.InheritEnv,
		ClientName: "mcpvisor-check",
	})
	if err != nil {
		s.addFinding("restart", NotTried, "no manager could be started: "+messages.Line(err.Error(), 200), "")
		return
	}
	defer func() {
		end, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		// The guardian ends what does not end in time.
		_ = m.Close(end)
	}()
	w := m.Watch(256)
	defer w.Close()
	// The watcher exists before the first look at the status, so that no connection falls between the two.
	status := awaitConnected(ctx, w, m, s.name, 0)
	if status.PID == 0 {
		s.addFinding("restart", Fail, "it did not connect again", "")
		return
	}
	// The kill is not announced to the manager: it sees the end of the process as it would see a crash.
	began := time.Now()
	if p, err := os.FindProcess(status.PID); err != nil || p.Kill() != nil {
		s.addFinding("restart", NotTried, "its process could not be killed", "")
		return
	}
	restarted := awaitConnected(ctx, w, m, s.name, status.Epoch)
	took := time.Since(began)
	if restarted.PID == 0 {
		last, _ := m.ServerStatus(s.name)
		s.addFinding("restart", Fail, fmt.Sprintf("killed with SIGKILL, it did not connect again within %s: %s", bound.Round(time.Second),
			messages.Line(last.Error, 200)), "let a start succeed whatever the one before has left behind: locks, sockets, half a file")
		return
	}
	s.addFinding("restart", Pass, fmt.Sprintf("killed with SIGKILL, it is connected again after %s, up to 1 s of it the manager's own "+
		"pause", durationText(took)), "", "ms", took)
	s.compareTools(status, restarted)
}

// compareTools checks that the server offers the same tools after the restart as before.
func (s *serverCheck) compareTools(before, after supervisor.Status) {
	names := func(st supervisor.Status) (out []toolEntry) {
		for _, t := range st.Tools {
			out = append(out, toolEntry{name: t.Name, definition: t.Name + "\x00" + t.Description})
		}
		return out
	}
	if text := diffText(names(before), names(after)); text != "" {
		s.addFinding("list-restart", Warn, "the tools differ after a restart: "+text, "offer the same tools in the same order after each start")
		return
	}
	s.addFinding("list-restart", Pass, "the tools are the same after a restart", "")
}

// awaitConnected waits for a connection with a higher epoch than newer. The status has PID 0 if ctx ends first.
func awaitConnected(
	ctx context.Context, w *supervisor.Watcher, m *supervisor.Manager, name string, newer uint64,
) supervisor.Status {
	newConnection := func() (supervisor.Status, bool) {
		st, err := m.ServerStatus(name)
		return st, err == nil && st.Status == messages.Connected && st.Epoch > newer && st.PID != 0
	}
	if st, ok := newConnection(); ok {
		return st
	}
	// The status is read after each event of any kind; a gap in the events therefore loses nothing.
	for range w.Events(ctx) {
		if st, ok := newConnection(); ok {
			return st
		}
	}
	return supervisor.Status{}
}
