package drills

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// performTool is the server's tool: it answers at once, or when the drill says so.
func (r *restDrill) performTool(ctx context.Context, c *toolCall) (any, error) {
	if c.tool == "hold" {
		r.held.hold(ctx)
	}
	return textResult(c.tool), nil
}

// failWake wakes the server while it cannot be connected: all who wait for it hear why at once, and it comes back at the time that they are
// told.
func (r *restDrill) failWake() bool {
	if r.f.advance(); r.f.isUp {
		return r.useServer()
	}
	r.den.refuseDials(&messages.Error{Class: messages.ClassNetwork, Text: "the den is shut"})
	n := 1 + r.rng.IntN(3)
	dials := r.den.countDials()
	errs := make([]error, n)
	r.addStory("%d callers wake it at %s in vain", n, clock(time.Now()))
	for i := range n {
		r.runBeside(func() { errs[i] = r.callTool("work") })
	}
	r.settleAll()
	for _, err := range errs {
		if messages.OutcomeOf(err) != messages.OutcomeNotSent || messages.ClassOf(err) != messages.ClassNetwork {
			r.reportFinding("I2", "den", "it cannot be connected, and a call of it ended with %v", err)
			return false
		}
	}
	if !expectEqual(r.stage, "I8", "den", "the number of attempts to connect it for callers of one instant", r.den.countDials()-dials, 1) {
		return false
	}
	status, err := r.m.ServerStatus("den")
	if err != nil || status.Status != messages.Failed || status.NextAttempt == nil || r.m.Rests("den") {
		r.reportFinding("I16", "den", "it could not be connected, and is %s, tried next at %v (%v)", status.Status, status.NextAttempt, err)
		return false
	}
	next := *status.NextAttempt
	// While it is away nothing is waited for, and the error says when it is tried next.
	r.letPass(time.Until(next) / 2)
	var typed *messages.Error
	if err := r.callTool("work"); !errors.As(err, &typed) || typed.Outcome != messages.OutcomeNotSent || typed.RetryAfter != time.Until(next) {
		r.reportFinding("I16", "den", "it is tried next in %s, and a call of it ended with %#v", time.Until(next), err)
		return false
	}
	r.den.refuseDials(nil)
	r.letPass(time.Until(next))
	r.f.opened++
	r.f.beginConnection()
	return true
}
