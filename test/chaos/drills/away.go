package drills

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// absence is why a server is away, what requests of it get, and when it comes back; zero: not by itself.
type absence struct {
	words    string
	refusal  error
	back     time.Time
	mayWait  bool // requests wait for it, as long as Config.CallWait says
	hasRetry bool // the error says when it is tried next, which is at back
}

// awayDrill is a server that is away, in one way after the other.
type awayDrill struct {
	*stage
	m      *supervisor.Manager
	sea    *server
	wait   time.Duration
	mu     sync.Mutex
	isMute bool
	muted  []func() // answers to handshakes that are held
}

// playAway sends requests of all kinds to a server that is disabled, needs credentials, has failed or does not answer: each ends when it must, as
// not sent, with the reason and the time of the next attempt, or is answered when the server comes back.
func playAway(s *stage) {
	d := &awayDrill{stage: s, sea: newServer("sea", "work")}
	d.sea.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://sea/one"}}
	d.sea.offers["prompts"] = []map[string]any{{"name": "greet"}}
	d.sea.declared = map[string]any{"completions": struct{}{}}
	d.sea.instead = d.holdHandshake
	if !s.isOneIn(3) {
		d.wait = s.drawSpan(time.Second, time.Minute)
	}
	if d.m = s.connectServers(supervisor.Config{CallWait: d.wait}, d.sea); d.m == nil {
		return
	}
	for range 2 + s.rng.IntN(4) {
		// What it offers is known by then. It has been well for long enough, so that its failures are counted anew.
		_, err := d.m.ReadResource(s.ctx, "drill://sea/one")
		if err != nil {
			s.reportFinding("I20", "sea", "it is connected, and the read of its resource ended with %v", err)
			return
		}
		s.letPass(s.drawSpan(time.Minute, time.Hour))
		a, ok := d.goAway()
		if !ok || !d.sendAll(a) || !d.comeBack() {
			return
		}
	}
}

// holdHandshake holds the answers to handshakes while the server is mute, and answers completions.
func (d *awayDrill) holdHandshake(c *conn, m message) bool {
	if m.Method == "completion/complete" {
		c.sendResult(m, map[string]any{"completion": map[string]any{"values": []string{"one"}}})
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Method != "initialize" || !d.isMute {
		return false
	}
	d.muted = append(d.muted, func() { c.answerMessage(m, "") })
	return true
}

// goAway has the server go away in a way that is drawn.
func (d *awayDrill) goAway() (a absence, ok bool) {
	var err error
	switch d.rng.IntN(5) {
	case 0:
		a, err = absence{words: "it is disabled", refusal: supervisor.ErrDisabled}, d.m.Toggle(d.ctx, "sea", false)
	case 1:
		a, err = absence{words: "it is disconnected", refusal: supervisor.ErrDisabled}, d.m.Disconnect(d.ctx, "sea")
	case 2:
		a = absence{words: "it needs credentials", refusal: supervisor.ErrNeedsAuth}
		d.sea.refuseDials(&messages.Error{Class: messages.ClassUnauthorized, Text: "who are you"})
		_ = d.m.Reconnect(d.ctx, "sea")
	case 3:
		a = absence{words: "it has failed", refusal: supervisor.ErrNotConnected, mayWait: true, hasRetry: true}
		d.sea.refuseDials(&messages.Error{Class: messages.ClassNetwork, Text: "the tide is out"})
		_ = d.m.Reconnect(d.ctx, "sea")
		d.letPass(d.drawSpan(time.Millisecond, 10*time.Second))
		d.sea.refuseDials(nil)
		status, statusErr := d.m.ServerStatus("sea")
		if err = statusErr; err == nil && status.NextAttempt != nil {
			a.back = *status.NextAttempt
		}
	default:
		a = absence{words: "it does not answer", refusal: supervisor.ErrNotConnected, mayWait: true, back: time.Now().Add(d.drawSpan(time.Second, 25*time.Second) | 1)}
		d.mu.Lock()
		d.isMute = true
		d.mu.Unlock()
		time.AfterFunc(time.Until(a.back), d.answerHandshakes)
		d.runBeside(func() { _ = d.m.Reconnect(d.ctx, "sea") })
	}
	d.settleAll()
	if err != nil || a.hasRetry && a.back.IsZero() {
		d.reportFinding("I16", "sea", "%s: %v, and it comes back at %s", a.words, err, clock(a.back))
		return a, false
	}
	d.addStory("%s since %s, until %s; requests wait for %s", a.words, clock(time.Now()), clock(a.back), d.wait)
	return a, true
}

// answerHandshakes lets the server speak.
func (d *awayDrill) answerHandshakes() {
	d.mu.Lock()
	d.isMute = false
	muted := d.muted
	d.muted = nil
	d.mu.Unlock()
	for _, answer := range muted {
		answer()
	}
}

// requests are the requests of all kinds.
func (d *awayDrill) requests() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"a call":                   func(ctx context.Context) error { _, err := d.m.CallServerTool(ctx, "sea", "work", nil); return err },
		"a call by qualified name": func(ctx context.Context) error { _, err := d.m.CallTool(ctx, "mcp__sea__work", nil); return err },
		"a read": func(ctx context.Context) error {
			_, err := d.m.ReadServerResource(ctx, "sea", "drill://sea/one")
			return err
		},
		"a read by its URI":          func(ctx context.Context) error { _, err := d.m.ReadResource(ctx, "drill://sea/one"); return err },
		"a prompt":                   func(ctx context.Context) error { _, err := d.m.GetServerPrompt(ctx, "sea", "greet", nil); return err },
		"a prompt by qualified name": func(ctx context.Context) error { _, err := d.m.GetPrompt(ctx, "mcp__sea__greet", nil); return err },
		"a completion": func(ctx context.Context) error {
			_, err := d.m.Complete(ctx, "sea", messages.CompleteRequest{Prompt: "greet", Argument: "who"})
			return err
		},
		"a list":  func(ctx context.Context) error { _, err := d.m.Resources(ctx, "sea"); return err },
		"a watch": func(ctx context.Context) error { return d.m.SubscribeResource(ctx, "sea", "drill://sea/one") },
	}
}

// sendAll sends requests at different times of the absence, and judges how each of them ends.
func (d *awayDrill) sendAll(a absence) bool {
	type sent struct {
		what         string
		began, ended time.Time
		deadline     time.Time
		err          error
	}
	requests := d.requests()
	names := make([]string, 0, len(requests))
	for name := range requests {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []*sent
	for range 6 {
		if !a.back.IsZero() && d.isOneIn(2) {
			d.letPass(d.drawSpan(0, max(time.Until(a.back)/3, 0)) &^ 1)
		}
		if !a.back.IsZero() && time.Until(a.back) < 10 {
			break
		}
		q := &sent{what: pickOne(d.stage, names...), began: time.Now()}
		ctx, cancel := context.WithCancel(d.ctx)
		if d.isOneIn(3) {
			q.deadline = q.began.Add(d.drawSpan(time.Millisecond, 30*time.Second) &^ 1)
			ctx, cancel = context.WithDeadline(d.ctx, q.deadline)
		}
		all = append(all, q)
		d.runBeside(func() {
			defer cancel()
			q.err = requests[q.what](ctx)
			q.ended = time.Now()
		})
		d.settleAll()
	}
	d.letPass(2 * time.Minute)
	for _, q := range all {
		end, isAnswered, isOverdue := q.began, false, false
		if until := q.began.Add(d.wait); a.mayWait && d.wait > 0 {
			end = until
			if isOverdue = !q.deadline.IsZero() && q.deadline.Before(end); isOverdue {
				end = q.deadline
			}
			if isAnswered = a.back.Before(end); isAnswered {
				end, isOverdue = a.back, false
			}
		}
		if !q.ended.Equal(end) {
			d.reportFinding("I2", "sea", "%s: %s at %s ended after %s with %v, and must end after %s (answered: %t)", a.words, q.what, clock(q.began), q.ended.Sub(q.began), q.err, end.Sub(q.began), isAnswered)
			return false
		}
		if isAnswered {
			if q.err != nil {
				d.reportFinding("I2", "sea", "%s until %s: %s ended with %v", a.words, clock(a.back), q.what, q.err)
				return false
			}
			continue
		}
		var typed *supervisor.Error
		retryAfter := time.Duration(0)
		if a.hasRetry {
			retryAfter = a.back.Sub(end)
		}
		isRight := errors.As(q.err, &typed) && errors.Is(q.err, a.refusal) && typed.Outcome == messages.OutcomeNotSent && typed.Server == "sea" && typed.RetryAfter == retryAfter
		if !isRight || isOverdue != errors.Is(q.err, context.DeadlineExceeded) || isOverdue != (typed.Class == messages.ClassTimeout) {
			d.reportFinding("I16", "sea", "%s: %s ended with %#v, and must as not sent (by its deadline: %t), to be sent again after %s", a.words, q.what, q.err, isOverdue, retryAfter)
			return false
		}
	}
	return true
}

// comeBack brings the server back.
func (d *awayDrill) comeBack() bool {
	d.sea.refuseDials(nil)
	_ = d.m.Toggle(d.ctx, "sea", true) // it says why the server is away, if it was enabled
	err := d.m.Reconnect(d.ctx, "sea")
	if err == nil {
		_, err = d.m.CallServerTool(d.ctx, "sea", "work", nil)
	}
	_ = d.m.UnsubscribeResource(d.ctx, "sea", "drill://sea/one")
	if err != nil {
		d.reportFinding("I16", "sea", "it is back, and the call of it ended with %v", err)
	}
	return err == nil
}
