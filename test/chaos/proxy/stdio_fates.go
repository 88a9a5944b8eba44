package proxy

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// toServer asks the rules about a line of the agent, and performs what they say.
func (r *run) toServer(raw []byte) {
	seen := r.flow.See(toServer, "", raw, false)
	fates := r.flow.ToServer("", raw)
	r.later.poke() // a message can begin something that goes by the clock
	if fates == nil {
		r.record(toServer, seen, raw)
		r.server.line(raw)
		return
	}
	for _, f := range fates {
		r.broken(toServer, seen, raw, f)
		for _, b := range f.Late {
			r.later.after(f.After, func() { r.agent.line(withEnd(b, raw)) })
		}
		for f.Block != "" && r.flow.Active(f.Block) && r.pause(look) {
			continue
		}
		if f.End != nil && !f.Last {
			r.die(f.End)
			return
		}
		if f.Drop {
			continue
		}
		b := bytes.Clone(whole(f, raw))
		if f.After > 0 && len(f.Late) == 0 {
			r.outbound.after(f.After, func() { r.server.line(b) })
		} else {
			r.server.line(b)
		}
		if f.End != nil {
			r.die(f.End)
			return
		}
	}
}

// toAgent asks the rules about a line of the server.
func (r *run) toAgent(raw []byte) {
	if r.dead.Load() != nil {
		return
	}
	seen := r.flow.See(toClient, "", raw, false)
	fates := r.flow.ToClient("", raw)
	if fates == nil {
		r.record(toClient, seen, raw)
		r.agent.line(raw)
		return
	}
	for _, f := range fates {
		r.broken(toClient, seen, raw, f)
		for _, b := range f.Before {
			r.agent.line(withEnd(b, raw))
		}
		for f.Block != "" && r.flow.Active(f.Block) && r.pause(look) {
			continue
		}
		if f.End != nil && !f.Last {
			r.die(f.End)
			return
		}
		if f.Drop {
			continue
		}
		f.Body = bytes.Clone(f.Body) // raw is used again
		raw := bytes.Clone(raw)
		if f.After > 0 {
			r.later.after(f.After, func() { r.arrive(f, raw) })
		} else {
			r.arrive(f, raw)
		}
	}
}

// arrive writes a line to the agent as its fate wants it.
func (r *run) arrive(f fault.Fate, raw []byte) {
	b := whole(f, raw)
	switch {
	case f.Torn:
		b = bytes.TrimSpace(b)
		if r.agent.line(b[:min(f.Cut, len(b))]); f.Stall != "" {
			r.agent.stall(func() bool { return r.flow.Active(f.Stall) }, r.over)
		}
	case f.Big > 0:
		r.agent.line(withEnd(grown(bytes.TrimSpace(b), f.Big), raw))
	case f.Chunk > 0:
		r.agent.drip(b, f.Chunk, f.Every, r.over)
	default:
		for range f.Copies + 1 {
			r.agent.line(b)
		}
	}
	if f.End != nil {
		r.die(f.End)
	}
}

// whole is the line of a fate: as it came, or the changed message with the end that the line had.
func whole(f fault.Fate, raw []byte) []byte {
	if !f.Changed {
		return raw
	}
	return withEnd(f.Body, raw)
}

func withEnd(body, raw []byte) []byte {
	end := ending(raw)
	if len(end) == 0 {
		end = []byte{'\n'}
	}
	return slices.Concat(body, end)
}

// grown adds a member to an object until it has the size.
func grown(body []byte, size int64) []byte {
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

// clock does what happens by the time, until the run is over.
func (r *run) clock() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := r.Control.Changed()
		next := r.later.due(false)
		events, wake := r.flow.Tick()
		for _, e := range events {
			r.happen(e)
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
		case <-r.later.kick:
		case <-changed:
		case <-r.over:
			return
		}
	}
}

// slow sends what goes to the server late, in a goroutine of its own: a server that does not read must not hold up what
// goes to the agent.
func (r *run) slow(l *later) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := l.due(false); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(next), 0))
		}
		select {
		case <-timer.C:
		case <-l.kick:
		case <-r.over:
			return
		}
	}
}

func (r *run) happen(e fault.Event) {
	r.Log.event("", 0, e.Hit)
	switch e.Do {
	case fault.Deliver, fault.Noise:
		r.agent.line(append(bytes.Clone(e.Body), '\n'))
	case fault.Raw:
		r.agent.stream(e.Body, bytes.HasSuffix(e.Body, []byte{'\n'}))
	case fault.Stderr:
		if r.Err != nil {
			_, _ = r.Err.Write(e.Body) // whoever does not read it wants it so
		}
	case fault.Ending:
		r.die(e.End)
	case fault.Stop:
		r.group.stop()
	case fault.Continue:
		r.group.resume()
	case fault.HalfOpen, fault.Cut, fault.ForgetSession, fault.ForgetToken: // refused by the control: they are HTTP's
	}
}

// signals passes signals to the server until the run is over, and ends the server with ctx.
func (r *run) signals(ctx context.Context) {
	done := ctx.Done()
	for {
		select {
		case s := <-r.Signals:
			if s == nil { // a closed channel tells nothing
				r.Signals = nil
				continue
			}
			if isTerminate(s) && r.flow.On("ignore-term") {
				r.flow.Note("ignore-term", "SIGTERM is not passed on")
				continue
			}
			r.group.signal(s)
		case <-done:
			done = nil
			go r.ladder()
		case <-r.over:
			return
		}
	}
}

// ladder ends the server because the proxy's owner wants it.
func (r *run) ladder() {
	r.server.close()
	r.group.terminate()
	if r.pause(r.Grace) {
		r.group.kill()
	}
}
