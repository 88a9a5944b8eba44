package drills

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// ownInstance records how a caller uses its instance.
type ownInstance struct {
	// running counts its calls, used is when the last of them ended.
	running int
	used    time.Time
	release []chan struct{}
}

// playInstances lets callers use instances of a server that has fewer than there are callers: the error of the one that finds none says when the first may end.
func playInstances(s *stage) {
	mail, held := newServer("mail", "read", "hold"), make(chan chan struct{}, 100)
	mail.handle = func(ctx context.Context, c *toolCall) (any, error) {
		if c.tool == "hold" {
			release := make(chan struct{})
			held <- release
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return textResult(c.caller), nil
	}
	most, idle := 1+s.rng.IntN(3), s.drawSpan(20*time.Second, 5*time.Minute)
	mail.spec.Share, mail.spec.MaxInstances, mail.spec.InstanceIdle = messages.SharePrincipal, most, messages.Duration(idle)
	mail.spec.CallTimeout, mail.spec.MaxCallTimeout = -1, -1
	m := s.connectServers(supervisor.Config{}, mail)
	if m == nil {
		return
	}
	use := map[string]*ownInstance{}
	for range 12 + s.rng.IntN(12) {
		s.letPass(s.drawSpan(time.Second, idle*2/3))
		now := time.Now()
		for caller, u := range use {
			if u.running == 0 && !now.Before(u.used.Add(idle)) {
				delete(use, caller)
			}
		}
		if got := m.Instances("mail"); len(got) != len(use) {
			s.reportFinding("I12", "mail", "it has the instances %q after %s, and %d callers have used one within the last %s", got, now, len(use), idle)
			return
		}
		caller := fmt.Sprintf("caller-%d", s.rng.IntN(most+2))
		u := use[caller]
		if u != nil && u.running > 0 && s.isOneIn(2) {
			close(u.release[0])
			u.release = u.release[1:]
			s.settleAll()
			u.running, u.used = u.running-1, time.Now()
			s.addStory("%s: a call ended at %s", caller, u.used.Format("4:05.000"))
			continue
		}
		s.addStory("%s calls at %s", caller, now.Format("4:05.000"))
		ctx := supervisor.WithCaller(s.ctx, caller)
		if u == nil && len(use) >= most {
			_, err := m.CallServerTool(ctx, "mail", "read", nil)
			checkRefused(s, err, firstEnd(use, idle, now))
			continue
		}
		if u == nil {
			u = &ownInstance{}
			use[caller] = u
		}
		if s.isOneIn(3) {
			s.runBeside(func() { _, _ = m.CallServerTool(ctx, "mail", "hold", nil) })
			s.settleAll()
			select {
			case release := <-held:
				u.running, u.release = u.running+1, append(u.release, release)
				s.addStory("%s is held", caller)
			default:
				s.reportFinding("I21", "mail", "the call of %s did not reach the server", caller)
				return
			}
			continue
		}
		res, err := m.CallServerTool(ctx, "mail", "read", nil)
		if err != nil || res.Text() != caller {
			s.reportFinding("I3", "mail", "the call of %s ended with %v", caller, err)
			return
		}
		u.used = time.Now()
	}
}

// firstEnd returns the time until the first of the instances may end.
func firstEnd(use map[string]*ownInstance, idle time.Duration, now time.Time) (first time.Duration) {
	for _, u := range use {
		left := idle
		if u.running == 0 {
			left = u.used.Add(idle).Sub(now)
		}
		if first == 0 || left < first {
			first = left
		}
	}
	return first
}

// checkRefused judges the error of a call that found no free instance.
func checkRefused(s *stage, err error, first time.Duration) {
	var typed *supervisor.Error
	switch {
	case !errors.Is(err, supervisor.ErrTooManyInstances) || !errors.As(err, &typed):
		s.reportFinding("I21", "mail", "a caller without an instance found none free, and its call ended with %v", err)
	case typed.Outcome != messages.OutcomeNotSent || typed.Server != "mail" || typed.Class != messages.ClassThrottled:
		s.reportFinding("I21", "mail", "a caller found no free instance, and its error is %s, %s, of %q", typed.Outcome, typed.Class, typed.Server)
	case typed.RetryAfter != first:
		s.reportFinding("I21", "mail", "a caller that found no free instance is told to come back after %s, and the first of them may end after %s", typed.RetryAfter, first)
	}
}
