package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// oddities says what no client should say, and looks whether the server still lives.
func (s *subject) oddities(ctx context.Context) {
	s.on(ctx, "ping", s.ping)
	s.on(ctx, "unknown-method", s.unknownMethod)
	s.alone(ctx, "malformed", s.malformed)
	if s.era == messages.EraLegacy {
		s.alone(ctx, "second-initialize", s.secondInitialize)
	}
}

// on runs one check on the conversation that most checks share. One that does not answer any more is left, so that a
// server that dies of one check can show the others.
func (s *subject) on(ctx context.Context, id string, look func(context.Context, *conversation)) {
	if ctx.Err() != nil {
		return
	}
	if s.shared != nil && s.shared.alive(ctx, s.o.Answer) != nil {
		s.unshare()
	}
	if s.shared == nil {
		c, err := s.converse(ctx)
		if err != nil {
			s.add(id, Fail, "it did not connect again: it "+said(err), "")
			return
		}
		s.shared = c
	}
	look(ctx, s.shared)
}

// unshare leaves the shared conversation.
func (s *subject) unshare() {
	if s.shared != nil {
		s.leave(s.shared)
		s.shared = nil
	}
}

// alone runs a check on a conversation of its own: one after which nobody knows what the server thinks.
func (s *subject) alone(ctx context.Context, id string, look func(context.Context, *conversation)) {
	s.unshare()
	s.on(ctx, id, look)
	s.unshare()
}

func (s *subject) ping(ctx context.Context, c *conversation) {
	method := "ping"
	if s.era == messages.EraModern {
		method = "server/discover" // this era has no ping
	}
	began := time.Now()
	r, err := c.ask(ctx, s.o.Answer, method, nil)
	took := time.Since(began)
	switch {
	case err != nil:
		s.add("ping", Fail, fmt.Sprintf("asked %s, it %s", method, said(err)),
			"answer it at once, whatever else is going on: clients take silence for death and restart the server")
	case r.Error != nil:
		s.add("ping", Warn, fmt.Sprintf("it answers %s with error %d", method, r.Error.Code), "answer with an empty result")
	default:
		s.add("ping", Pass, fmt.Sprintf("it answers %s after %s", method, ms(took)), "", "ms", took)
	}
}

func (s *subject) unknownMethod(ctx context.Context, c *conversation) {
	r, err := c.ask(ctx, s.o.Answer, "mcpvisor/no-such-method", nil)
	const fix = "answer a method that is not known with error -32601: a client that gets no answer waits for it"
	var n *noAnswer
	switch {
	case errors.As(err, &n) && n.status >= 400 && n.status < 500:
		s.add("unknown-method", Pass, "it "+n.text, "")
	case err != nil:
		s.add("unknown-method", Fail, "asked for a method that nobody has, it "+said(err), fix)
	case r.Error == nil:
		s.add("unknown-method", Fail, "it answers a method that nobody has with a result", fix)
	case c.alive(ctx, s.o.Answer) != nil:
		s.add("unknown-method", Fail, "after a method that nobody has it answers nothing any more", fix)
	case r.Error.Code != -32601:
		s.add("unknown-method", Warn, fmt.Sprintf("it answers a method that nobody has with error %d, not -32601",
			r.Error.Code), fix)
	default:
		s.add("unknown-method", Pass, "it answers a method that nobody has with error -32601", "")
	}
}

// malformed sends what is no JSON, and then looks for a sign of life.
func (s *subject) malformed(ctx context.Context, c *conversation) {
	err := c.tell(ctx, s.o.Answer, "", []byte(`{"jsonrpc":"2.0","id":`))
	lives := c.alive(ctx, s.o.Answer)
	const fix = "skip what cannot be read, or answer it with error -32700, and go on"
	var n *noAnswer
	switch {
	case lives != nil:
		s.add("malformed", Fail, "after a message that was cut off it "+said(lives)+" when it is asked for a "+
			"sign of life", fix)
	case err != nil && errors.As(refusedBy(err), &n) && n.status >= 500:
		s.add("malformed", Warn, fmt.Sprintf("it answers a broken message with HTTP %d, as if the fault were its own", n.status),
			"answer with HTTP 400")
	default:
		s.add("malformed", Pass, "a message that was cut off changes nothing: it goes on answering", "")
	}
}

func (s *subject) secondInitialize(ctx context.Context, c *conversation) {
	r, err := c.ask(ctx, s.o.Answer, "initialize", map[string]any{
		"protocolVersion": s.version, "capabilities": map[string]any{}, "clientInfo": clientInfo,
	})
	const fix = "answer it, with a result or an error: clients that lose their mind must not take the server along"
	lives := c.alive(ctx, s.o.Answer)
	var n *noAnswer
	switch {
	case errors.As(err, &n) && n.status >= 400 && n.status < 500 && lives == nil:
		s.add("second-initialize", Pass, "it "+n.text+" and goes on", "")
	case err != nil:
		s.add("second-initialize", Warn, "initialized a second time, it "+said(err), fix)
	case lives != nil:
		s.add("second-initialize", Fail, "initialized a second time, it "+said(lives)+" when it is asked for a sign of life", fix)
	case r.Error != nil:
		s.add("second-initialize", Pass, fmt.Sprintf("it refuses a second initialize with error %d and goes on", r.Error.Code), "")
	default:
		s.add("second-initialize", Pass, "it answers a second initialize and goes on", "")
	}
}

// parallel sends many harmless requests at once.
func (s *subject) parallel(ctx context.Context) {
	s.on(ctx, "parallel", func(ctx context.Context, c *conversation) {
		n := s.o.Concurrency
		serial := time.Now()
		for range n {
			if _, err := c.ask(ctx, s.o.Answer, "tools/list", map[string]any{}); err != nil {
				s.add("parallel", Fail, "asked tools/list "+fmt.Sprint(n)+" times one after the other, it "+said(err), "")
				return
			}
		}
		alone := time.Since(serial)
		within, cancel := context.WithTimeout(ctx, s.o.Answer+2*alone)
		defer cancel()
		began := time.Now()
		flights := make([]*flight, n)
		for i := range flights {
			flights[i] = c.begin(within, "tools/list", "", map[string]any{})
		}
		lost := 0
		var why error
		for _, f := range flights {
			if _, err := f.wait(within); err != nil {
				lost, why = lost+1, err
			}
		}
		together := time.Since(began)
		const fix = "keep requests apart by their id, and write each answer as one message"
		c.mu.Lock()
		repeated := 0
		for _, times := range c.answered {
			if times > 1 {
				repeated++
			}
		}
		c.mu.Unlock()
		switch {
		case lost > 0:
			s.add("parallel", Fail, fmt.Sprintf("of %d requests at once %d were not answered: it %s", n, lost, said(why)), fix)
		case repeated > 0:
			s.add("parallel", Fail, fmt.Sprintf("%d requests were answered more than once", repeated), fix)
		default:
			s.add("parallel", Pass, fmt.Sprintf("%d requests at once take %s, one after the other %s", n, ms(together), ms(alone)),
				"", "requests", n, "togetherMs", together, "aloneMs", alone)
		}
	})
}
