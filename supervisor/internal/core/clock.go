package core

import (
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// checkClocks notices that the machine has slept: the wall clock ran on while the monotonic one stood still, by more than 5 s.
// Waiting servers are then tried again soon, spread over a few seconds, and remote connections are probed.
func (s *supervisor) checkClocks(ctx actor.Context) {
	now := time.Now()
	// Round(0) drops the monotonic reading, so the first difference is by the wall clock and the second by the monotonic one.
	slept := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if !s.wall.IsZero() && slept > 5*time.Second {
		s.log.Info("the machine has slept", zap.Duration("for", slept))
		s.handleWoken(ctx)
	}
	s.armClock()
}

// handleWoken brings forward the starts that wait for a time. No start moves to a later time, and a server that sent a
// Retry-After keeps it.
func (s *supervisor) handleWoken(ctx actor.Context) {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(s.servers)) {
		r := s.servers[name]
		if r.pid == nil {
			continue
		}
		ctx.Send(r.pid, actors.ProbeNow{})
		st := r.cell.View().State
		// A server that waits for nothing, or whose own Retry-After has not passed, is left alone.
		if !st.StartRequested || st.NextAt.IsZero() || st.Cause != nil && st.Cause.RetryAfter > 0 {
			continue
		}
		if at := s.Restart.Woken(now, s.Rand); at.Before(st.NextAt) {
			s.gate.Enqueue(now, s.startRequest(r, restart.Healthy, at))
		}
	}
}

// armClock notes both clocks and reads them again in 10 s: that is how late a sleep is noticed at most.
func (s *supervisor) armClock() {
	s.wall = time.Now()
	root, self := s.root, s.self
	s.ticker = time.AfterFunc(10*time.Second, func() { root.Send(self, clockDue{}) })
}
