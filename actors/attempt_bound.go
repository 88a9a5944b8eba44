package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/runner"
)

// overdueAfter is how long after the end of the bound a step is said not to have returned: a transport that obeys its context takes moments.
const overdueAfter = time.Second

// limitsFor returns how long an attempt at a spec may take. A spec's own connectTimeout is exact; the default one grows with the
// number of attempts in a row that took too long.
func limitsFor(spec *messages.Spec, timeouts int) opening.Limits {
	// The person chose the spec's connectTimeout, so nothing prolongs it.
	l := opening.Limits{Silence: time.Duration(spec.ConnectTimeout), Most: opening.MaxAttempt, Exact: spec.ConnectTimeout != 0}
	if !l.Exact {
		l.Silence = opening.Grown(DefaultConnectTimeout, timeouts)
	}
	l.Process, l.Runner = spec.Kind() == messages.Stdio, runnerOf(spec) != ""
	return l
}

// runnerOf returns the program that fetches the server before it runs (npx, uvx, docker …), empty if there is none.
func runnerOf(spec *messages.Spec) string {
	if spec.Kind() != messages.Stdio {
		return ""
	}
	return runner.NameOf(spec.Command, spec.Args)
}

// boundContext returns the context that bounds the dial, the handshake and the first list. It ends when the attempt has taken too
// long, or with endBound.
func (a *attempt) boundContext() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ctx
}

// startBound arms the first look at the attempt's progress.
func (a *attempt) startBound() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	var v opening.Decision
	a.opening, v = opening.Begin(a.limits, now)
	a.checkTimer = time.AfterFunc(v.At.Sub(now), a.checkProgress)
}

// endBound ends the bound and its timer, so that a connected server holds none. shutDown calls it as well.
func (a *attempt) endBound() {
	a.mu.Lock()
	cancel, alarm := a.cancel, a.checkTimer
	// The fields are replaced, so that the context's memory is freed while the server is connected.
	a.ctx, a.cancel, a.checkTimer = endedContext, func(error) {}, nil
	a.mu.Unlock()
	if alarm != nil {
		alarm.Stop()
	}
	cancel(nil)
}

// checkProgress looks at what the server's processes have done, and ends the bound or arms the next look. An installation that
// moves may take longer than a silent server. It runs in the timer's goroutine.
func (a *attempt) checkProgress() {
	defer func() {
		// An attempt that cannot be observed ends as a silent one does.
		if r := recover(); r != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.cancel(context.DeadlineExceeded)
		}
	}()
	// The observation reads files and may take a while: the lock is taken afterwards.
	seen := a.observeProgress()
	a.mu.Lock()
	defer a.mu.Unlock()
	// endBound ran while the processes were observed.
	if a.checkTimer == nil {
		return
	}
	was := a.opening.Installing
	var v opening.Decision
	a.opening, v = a.opening.Observe(a.limits, seen)
	// The cause of the context distinguishes the passed bound from the end of the attempt. The timer stops with the attempt, which ends
	// when the step has returned.
	if v.Over {
		a.cancel(context.DeadlineExceeded)
		a.checkTimer = time.AfterFunc(overdueAfter, func() { a.post(stepOverdue{a.epoch}) })
		return
	}
	a.checkTimer = time.AfterFunc(v.At.Sub(seen.At), a.checkProgress)
	// The start gate wants to know how busy the machine is while servers have not answered.
	if a.limits.Process && seen.Seen && seen.Heard.IsZero() {
		a.post(cpuTimeMeasured{a.epoch, seen.CPU, seen.Waited})
	}
	// The actor gets one message about it; the start gate then frees the slot.
	if a.opening.Installing && !was {
		a.post(installStarted{a.epoch})
	}
}

// observeProgress reads when the server's last message came, and what its processes have used. For some runners the end of stderr
// shows that a daemon, and not the process, does the work (Elsewhere).
func (a *attempt) observeProgress() opening.Observation {
	sess := a.currentSession()
	if sess == nil { // the dial is not done: no process runs yet
		return opening.Observation{At: time.Now()}
	}
	// Any message counts, also a log message before the answer.
	k := opening.Observation{Heard: sess.LastMessageAt()}
	if w, err := sess.Work(); err == nil {
		k.Seen, k.CPU, k.Waited, k.Moved = true, w.CPU, w.CPUWait, w.IOBytes
	}
	if name := runnerOf(a.spec); name != "" && k.Heard.IsZero() {
		k.Elsewhere = runner.FetchesImage(name, sess.Conn().StderrTail)
	}
	k.At = time.Now()
	return k
}

// tooLong returns the error of an attempt whose bound has ended. what names the step that had not happened.
func (a *attempt) tooLong(what string) *messages.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Before the dial the kind is not known; the advice for a child is then shown.
	kind := messages.Stdio
	if a.transport != nil {
		kind = a.transport.Kind()
	}
	e := &messages.Error{Op: "connect", Class: messages.ClassTimeout, Fix: "see what it writes to stderr, or raise connectTimeout if it is " +
		"only slow to start"}
	if kind != messages.Stdio {
		e.Fix = "see whether it works, or raise connectTimeout if it is only slow"
	}
	name, s := runnerOf(a.spec), a.opening
	switch lasted := s.Lasted().Round(time.Second); {
	// The cases go from the one with the most to say to the general one.
	case s.Installing && lasted >= a.limits.Most:
		e.Text = fmt.Sprintf("%s was still at work after %s, and its server had not said anything", name, lasted)
		e.Fix = "run the command by hand once to see how far it comes; connectTimeout gives it longer"
	case s.Installing:
		e.Text = fmt.Sprintf("%s was at work for %s, and then %s for %s", name, (s.Lasted() - s.SilentFor()).Round(time.Second), what,
			s.SilentFor().Round(time.Second))
	case s.Waited >= time.Second:
		e.Text = fmt.Sprintf("%s within %s, besides %s in which it waited for a processor", what, a.limits.Silence,
			s.Waited.Round(time.Second))
		e.Fix += "; fewer servers, or more processors, make it faster"
	default:
		e.Text = what + " within " + a.limits.Silence.String()
	}
	return e
}
