package drills

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// queuedCall is a call of a server that works on some at a time only.
type queuedCall struct {
	number int
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	took   time.Duration
	// begun is set when the server has it, since when, and release lets it answer.
	begun   bool
	since   time.Time
	release chan struct{}
}

func (c *queuedCall) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// playQueue calls a server with bounds more often than it may be: so many calls run, so many wait, in their order, and all others are refused.
func playQueue(s *stage) {
	type arrival struct {
		arguments string
		release   chan struct{}
	}
	arrived := make(chan arrival, 100)
	files := newServer("files", "hold")
	files.handle = func(ctx context.Context, c *toolCall) (any, error) {
		a := arrival{string(c.arguments), make(chan struct{})}
		arrived <- a
		select {
		case <-a.release:
		case <-ctx.Done():
		}
		return textResult("done"), nil
	}
	cfg := supervisor.Config{}
	runs, waits := 1+s.rng.IntN(3), 1+s.rng.IntN(3)
	if s.isOneIn(2) {
		files.spec.MaxInFlight, files.spec.MaxQueued = runs, waits
	} else {
		cfg.MaxInFlight, cfg.MaxQueued = runs, waits
	}
	timeout := s.drawSpan(20*time.Second, 2*time.Minute)
	files.spec.CallTimeout = messages.Duration(timeout)
	m := s.connectServers(cfg, files)
	if m == nil {
		return
	}
	var running, waiting []*queuedCall
	count := 0
	// follow notes what has happened: calls that have come to their time have ended, and others run in their places.
	follow := func() bool {
		// What has come to its time has ended, whether it ran or waited.
		var ok bool
		if running, ok = endOverdue(s, running, timeout, messages.OutcomeUnknown); !ok {
			return false
		}
		lateOnes := slices.Clone(waiting)
		if waiting, ok = endOverdue(s, waiting, timeout, messages.OutcomeNotSent); !ok {
			return false
		}
		for len(arrived) > 0 {
			a := <-arrived
			if slices.ContainsFunc(lateOnes, func(c *queuedCall) bool { return c.begun && a.arguments == callArguments(c.number) }) {
				continue
			}
			if len(waiting) == 0 || a.arguments != callArguments(waiting[0].number) {
				s.reportFinding("I21", "files", "the server got %s, and call %v is the next", a.arguments, waiting)
				return false
			}
			next := waiting[0]
			next.begun, next.release = true, a.release
			running, waiting = append(running, next), waiting[1:]
		}
		if len(running) > runs || len(waiting) > 0 && len(running) < runs {
			s.reportFinding("I21", "files", "%d calls run and %d wait, and %d may run", len(running), len(waiting), runs)
			return false
		}
		return true
	}
	for range 15 + s.rng.IntN(15) {
		s.letPass(s.drawSpan(0, timeout/8))
		if !follow() {
			return
		}
		switch n := s.rng.IntN(6); {
		case n < 3:
			count++
			c := &queuedCall{number: count, done: make(chan struct{})}
			ctx, cancel := context.WithCancel(s.ctx)
			c.cancel = cancel
			began := time.Now()
			s.runBeside(func() {
				defer close(c.done)
				_, c.err = m.CallServerTool(ctx, "files", "hold", map[string]any{"call": c.number})
				c.took = time.Since(began)
			})
			c.since = began
			s.addStory("call %d", count)
			s.settleAll()
			if len(running) >= runs && len(waiting) >= waits {
				if !c.hasEnded() || messages.OutcomeOf(c.err) != messages.OutcomeNotSent || messages.ClassOf(c.err) != messages.ClassThrottled {
					s.reportFinding("I21", "files", "%d calls run and %d wait, as many as may, and one more ended with %v (ended: %t)", len(running), len(waiting), c.err, c.hasEnded())
					return
				}
				continue
			}
			waiting = append(waiting, c)
		case n == 3 && len(running) > 0:
			i := s.rng.IntN(len(running))
			close(running[i].release)
			s.settleAll()
			if c := running[i]; !c.hasEnded() || c.err != nil {
				s.reportFinding("I2", "files", "its server has answered call %d, which ended with %v (ended: %t)", c.number, c.err, c.hasEnded())
				return
			}
			s.addStory("call %d is answered", running[i].number)
			running = slices.Delete(running, i, i+1)
		case n == 4 && len(waiting) > 0:
			i := s.rng.IntN(len(waiting))
			waiting[i].cancel()
			s.settleAll()
			if c := waiting[i]; !c.hasEnded() || !errors.Is(c.err, context.Canceled) || messages.OutcomeOf(c.err) != messages.OutcomeNotSent {
				s.reportFinding("I2", "files", "the caller of call %d, which waits, has given up, and it ended with %v (ended: %t)", c.number, c.err, c.hasEnded())
				return
			}
			s.addStory("call %d is given up", waiting[i].number)
			waiting = slices.Delete(waiting, i, i+1)
		}
		if !follow() {
			return
		}
	}
	for _, c := range append(running, waiting...) {
		c.cancel()
	}
}

func callArguments(number int) string { return `{"call":` + strconv.Itoa(number) + `}` }

// endOverdue takes out the calls whose time is over, and judges their ends.
func endOverdue(s *stage, calls []*queuedCall, timeout time.Duration, outcome messages.Outcome) (rest []*queuedCall, ok bool) {
	for _, c := range calls {
		isOver := !time.Now().Before(c.since.Add(timeout))
		switch {
		case isOver != c.hasEnded():
			s.reportFinding("I2", "files", "call %d began %s ago and may take %s: it has ended: %t, with %v", c.number, time.Since(c.since), timeout, c.hasEnded(), c.err)
			return nil, false
		case !isOver:
			rest = append(rest, c)
		case c.took == timeout && messages.ClassOf(c.err) == messages.ClassTimeout && outcome == messages.OutcomeNotSent && messages.OutcomeOf(c.err) == messages.OutcomeUnknown:
			c.begun = true // its turn came in the moment in which its time was over
		case c.took != timeout || messages.ClassOf(c.err) != messages.ClassTimeout || messages.OutcomeOf(c.err) != outcome:
			s.reportFinding("I2", "files", "call %d, which may take %s, ended after %s with %v, outcome %s", c.number, timeout, c.took, c.err, messages.OutcomeOf(c.err))
			return nil, false
		}
	}
	return rest, true
}
