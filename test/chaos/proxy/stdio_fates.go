package proxy

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// toServer asks the rules about a line of the agent and performs their decisions.
func (r *stdioRun) toServer(raw []byte) {
	seen := r.flow.Inspect(toServer, "", raw, false)
	fates := r.flow.ToServer("", raw)
	// The message may start something timed, so runTimedFaults must ask the flow again.
	r.delayedToAgent.wakeUp()
	if fates == nil {
		r.recordPassed(toServer, seen, raw)
		r.serverIn.writeLine(raw)
		return
	}
	for _, f := range fates {
		r.recordHit(toServer, seen, raw, f)
		for _, b := range f.Late {
			r.delayedToAgent.addTask(f.After, func() { r.agentOut.writeLine(withLineEnd(b, raw)) })
		}
		for f.Block != "" && r.flow.Active(f.Block) && r.pauseFor(pollEvery) {
			continue
		}
		if f.End != nil && !f.Last {
			r.crashServer(f.End)
			return
		}
		if f.Drop {
			continue
		}
		b := bytes.Clone(fateLine(f, raw))
		if f.After > 0 && len(f.Late) == 0 {
			r.delayedToServer.addTask(f.After, func() { r.serverIn.writeLine(b) })
		} else {
			r.serverIn.writeLine(b)
		}
		if f.End != nil {
			r.crashServer(f.End)
			return
		}
	}
}

// toAgent asks the rules about a line of the server and performs their decisions. After a crash it drops lines.
func (r *stdioRun) toAgent(raw []byte) {
	if r.faultEnd.Load() != nil {
		return
	}
	seen := r.flow.Inspect(toClient, "", raw, false)
	fates := r.flow.ToClient("", raw)
	if fates == nil {
		r.recordPassed(toClient, seen, raw)
		r.agentOut.writeLine(raw)
		return
	}
	for _, f := range fates {
		r.recordHit(toClient, seen, raw, f)
		for _, b := range f.Before {
			r.agentOut.writeLine(withLineEnd(b, raw))
		}
		for f.Block != "" && r.flow.Active(f.Block) && r.pauseFor(pollEvery) {
			continue
		}
		if f.End != nil && !f.Last {
			r.crashServer(f.End)
			return
		}
		if f.Drop {
			continue
		}
		// The splitter reuses the line's memory after this call, and the message may be delayed.
		f.Body = bytes.Clone(f.Body)
		raw := bytes.Clone(raw)
		if f.After > 0 {
			r.delayedToAgent.addTask(f.After, func() { r.writeToAgent(f, raw) })
		} else {
			r.writeToAgent(f, raw)
		}
	}
}

// writeToAgent writes a line to the agent as its decision says: cut short, enlarged, slowly, or several times.
func (r *stdioRun) writeToAgent(f fault.Disposition, raw []byte) {
	b := fateLine(f, raw)
	switch {
	case f.Torn:
		b = bytes.TrimSpace(b)
		if r.agentOut.writeLine(b[:min(f.Cut, len(b))]); f.Stall != "" {
			r.agentOut.blockWrites(func() bool { return r.flow.Active(f.Stall) }, r.finished)
		}
	case f.Big > 0:
		r.agentOut.writeLine(withLineEnd(growObject(bytes.TrimSpace(b), f.Big), raw))
	case f.Chunk > 0:
		r.agentOut.writeSlowly(b, f.Chunk, f.Every, r.finished)
	default:
		for range f.Copies + 1 {
			r.agentOut.writeLine(b)
		}
	}
	if f.End != nil {
		r.crashServer(f.End)
	}
}

// fateLine returns the line of a decision: as it came, or the changed message with the line's own end.
func fateLine(f fault.Disposition, raw []byte) []byte {
	if !f.Changed {
		return raw
	}
	return withLineEnd(f.Body, raw)
}

// withLineEnd returns a message with the end that the line raw has, a newline if it has none.
func withLineEnd(body, raw []byte) []byte {
	end := lineEnding(raw)
	if len(end) == 0 {
		end = []byte{'\n'}
	}
	return slices.Concat(body, end)
}

// growObject adds a member to a JSON object so that it has the size in bytes. It returns other values unchanged.
func growObject(body []byte, size int64) []byte {
	const head, tail = `,"chaos":"`, `"}`
	n := int(size) - len(body) - len(head) - len(tail) + 1
	if n <= 0 || len(body) < 3 || body[len(body)-1] != '}' {
		return body
	}
	out := make([]byte, 0, size)
	out = append(append(out, body[:len(body)-1]...), head...)
	out = append(out, bytes.Repeat([]byte{'x'}, n)...)
	return append(out, tail...)
}

// runTimedFaults performs the events that rules cause by the clock, and sends delayed lines to the agent, until the run ends.
func (r *stdioRun) runTimedFaults() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := r.Control.Changed()
		next := r.delayedToAgent.runDue(false)
		events, wake := r.flow.Tick()
		for _, e := range events {
			r.applyEvent(e)
		}
		if next.IsZero() || !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(next), 0))
		}
		select {
		case <-timer.C:
		case <-r.delayedToAgent.wakeup:
		case <-changed:
		case <-r.finished:
			return
		}
	}
}

// runDelayed sends delayed lines to the server, in a goroutine of its own: a server that does not read must not hold up the
// lines to the agent.
func (r *stdioRun) runDelayed(l *delayQueue) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := l.runDue(false); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(next), 0))
		}
		select {
		case <-timer.C:
		case <-l.wakeup:
		case <-r.finished:
			return
		}
	}
}

// applyEvent performs one event.
func (r *stdioRun) applyEvent(e fault.Event) {
	r.Log.logEvent("", 0, e.Hit)
	switch e.Do {
	case fault.Deliver, fault.Noise:
		r.agentOut.writeLine(append(bytes.Clone(e.Body), '\n'))
	case fault.Raw:
		r.agentOut.writePart(e.Body, bytes.HasSuffix(e.Body, []byte{'\n'}))
	case fault.Stderr:
		if r.Err != nil {
			// Standard error is copied without a promise; a reader that has gone only loses it.
			_, _ = r.Err.Write(e.Body)
		}
	case fault.Ending:
		r.crashServer(e.End)
	case fault.Stop:
		r.group.stop()
	case fault.Continue:
		r.group.resume()
	// The control refuses these over stdio, because they belong to HTTP.
	case fault.HalfOpen, fault.CutStreams, fault.ForgetSession, fault.ForgetToken:
	}
}

// passSignals passes signals to the server until the run ends, and stops the server when ctx ends.
func (r *stdioRun) passSignals(ctx context.Context) {
	done := ctx.Done()
	for {
		select {
		case s := <-r.Signals:
			// A closed channel brings no more signals; nil stops the select from spinning on it.
			if s == nil {
				r.Signals = nil
				continue
			}
			if isTerminate(s) && r.flow.FaultActive("ignore-term") {
				r.flow.RecordHit("ignore-term", "SIGTERM is not passed on")
				continue
			}
			r.group.forwardSignal(s)
		case <-done:
			done = nil
			go r.stopServer()
		case <-r.finished:
			return
		}
	}
}

// stopServer stops the server because ctx has ended.
func (r *stdioRun) stopServer() {
	r.serverIn.close()
	r.group.terminate()
	if r.pauseFor(r.Grace) {
		r.group.kill()
	}
}
