package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// checkManners sends what any client may send.
func (s *serverCheck) checkManners(ctx context.Context) {
	s.runShared(ctx, "ping", s.checkPing)
	s.runShared(ctx, "unknown-method", s.checkUnknownMethod)
}

// checkOddities sends what no client should send, and checks after each whether the server still lives.
func (s *serverCheck) checkOddities(ctx context.Context) {
	s.runHarmful(ctx, "malformed", s.checkMalformed)
	if s.era == messages.EraLegacy {
		s.runHarmful(ctx, "second-initialize", s.checkSecondInit)
	}
}

// runShared runs a check on the conversation that most checks share. If the server no longer answers there, it opens a new one,
// so that a server that dies of one check can still show the others.
func (s *serverCheck) runShared(ctx context.Context, id string, look func(context.Context, *rawClient)) {
	if ctx.Err() != nil {
		return
	}
	// This sign of life belongs to the check before, which may have left the connection dead; it is not judged here.
	if s.shared != nil && s.shared.checkAlive(ctx, s.o.Answer) != nil {
		s.closeShared()
	}
	if s.shared == nil {
		c, err := s.openClient(ctx)
		if err != nil {
			s.addFinding(id, Fail, "it did not connect again: it "+failureText(err), "")
			return
		}
		s.shared = c
	}
	look(ctx, s.shared)
}

// closeShared ends the shared conversation, if there is one.
func (s *serverCheck) closeShared() {
	if s.shared != nil {
		s.closeClient(s.shared)
		s.shared, s.strained = nil, false
	}
}

// runHarmful runs a check that may harm the server. Such checks share a conversation, apart from that of the harmless ones, because
// each start of a server takes seconds on a slow machine. One that does not pass there is repeated on a new conversation, and only
// the second result counts: the check before it may have been the cause.
func (s *serverCheck) runHarmful(ctx context.Context, id string, look func(context.Context, *rawClient)) {
	if !s.strained {
		s.closeShared()
	}
	for {
		used, before := s.strained, len(s.out.Findings)
		s.runShared(ctx, id, look)
		s.strained = s.shared != nil
		if !slices.ContainsFunc(s.out.Findings[before:], func(f Finding) bool { return f.Verdict != Pass }) {
			return
		}
		s.closeShared()
		if !used || ctx.Err() != nil {
			return
		}
		s.out.Findings = s.out.Findings[:before]
	}
}

// checkPing sends a ping, or in the modern era server/discover.
func (s *serverCheck) checkPing(ctx context.Context, c *rawClient) {
	method := "ping"
	if s.era == messages.EraModern {
		method = "server/discover" // this era has no ping
	}
	began := time.Now()
	r, err := c.callMethod(ctx, s.o.Answer, method, nil)
	took := time.Since(began)
	switch {
	case err != nil:
		s.addFinding("ping", Fail, fmt.Sprintf("asked %s, it %s", method, failureText(err)),
			"answer it at once, whatever else is going on: clients take silence for death and restart the server")
	case r.Error != nil:
		s.addFinding("ping", Warn, fmt.Sprintf("it answers %s with error %d", method, r.Error.Code), "answer with an empty result")
	default:
		s.addFinding("ping", Pass, fmt.Sprintf("it answers %s after %s", method, durationText(took)), "", "ms", took)
	}
}

// checkUnknownMethod sends a request of a method that no server has. JSON-RPC requires the error -32601; over HTTP a 4xx will
// do.
func (s *serverCheck) checkUnknownMethod(ctx context.Context, c *rawClient) {
	r, err := c.callMethod(ctx, s.o.Answer, "mcpvisor/no-such-method", nil)
	const fix = "answer a method that is not known with error -32601: a client that gets no answer waits for it"
	var n *noAnswerError
	switch {
	case errors.As(err, &n) && n.status >= 400 && n.status < 500:
		s.addFinding("unknown-method", Pass, "it "+n.text, "")
	case err != nil:
		s.addFinding("unknown-method", Fail, "asked for a method that nobody has, it "+failureText(err), fix)
	case r.Error == nil:
		s.addFinding("unknown-method", Fail, "it answers a method that nobody has with a result", fix)
	case c.checkAlive(ctx, s.o.Answer) != nil:
		s.addFinding("unknown-method", Fail, "after a method that nobody has it answers nothing any more", fix)
	case r.Error.Code != -32601:
		s.addFinding("unknown-method", Warn, fmt.Sprintf("it answers a method that nobody has with error %d, not -32601",
			r.Error.Code), fix)
	default:
		s.addFinding("unknown-method", Pass, "it answers a method that nobody has with error -32601", "")
	}
}

// checkMalformed sends a message that is cut off, and then asks for a sign of life. Over stdio it is no failure that none comes: no
// rule of the protocol demands it, and a process that serves one client fails only the client that wrote the broken line. Over the
// network it fails the others, too.
func (s *serverCheck) checkMalformed(ctx context.Context, c *rawClient) {
	// Over stdio Send ends the line, so that the next message begins on a line of its own and can be read.
	err := c.sendMessage(ctx, s.o.Answer, "", []byte(`{"jsonrpc":"2.0","id":`))
	lives := c.checkAlive(ctx, s.o.Answer)
	const fix = "skip what cannot be read, or answer it with error -32700, and go on"
	var n *noAnswerError
	verdict := Fail
	if s.kind == messages.Stdio {
		verdict = Warn
	}
	switch {
	case lives != nil:
		s.addFinding("malformed", verdict, "after a message that was cut off it "+failureText(lives)+" when it is asked for a "+
			"sign of life", fix)
	case err != nil && errors.As(refusedBy(err), &n) && n.status >= 500:
		s.addFinding("malformed", Warn, fmt.Sprintf("it answers a broken message with HTTP %d, as if the fault were its own", n.status),
			"answer with HTTP 400")
	default:
		s.addFinding("malformed", Pass, "a message that was cut off changes nothing: it goes on answering", "")
	}
}

// checkSecondInit sends initialize a second time. Either answer is right, as long as the server goes on.
func (s *serverCheck) checkSecondInit(ctx context.Context, c *rawClient) {
	r, err := c.callMethod(ctx, s.o.Answer, "initialize", map[string]any{
		"protocolVersion": s.version, "capabilities": map[string]any{}, "clientInfo": clientInfo,
	})
	const fix = "answer it, with a result or an error: clients that lose their mind must not take the server along"
	lives := c.checkAlive(ctx, s.o.Answer)
	var n *noAnswerError
	switch {
	case errors.As(err, &n) && n.status >= 400 && n.status < 500 && lives == nil:
		s.addFinding("second-initialize", Pass, "it "+n.text+" and goes on", "")
	case err != nil:
		s.addFinding("second-initialize", Warn, "initialized a second time, it "+failureText(err), fix)
	case lives != nil:
		s.addFinding("second-initialize", Fail, "initialized a second time, it "+failureText(lives)+" when it is asked for a sign of life", fix)
	case r.Error != nil:
		s.addFinding("second-initialize", Pass, fmt.Sprintf("it refuses a second initialize with error %d and goes on", r.Error.Code), "")
	default:
		s.addFinding("second-initialize", Pass, "it answers a second initialize and goes on", "")
	}
}

// checkParallel sends many harmless requests at once, and compares the time with that of the same requests in turn. It finds
// requests that were lost, and ids that were answered twice.
func (s *serverCheck) checkParallel(ctx context.Context) {
	s.runShared(ctx, "parallel", func(ctx context.Context, c *rawClient) {
		// The serial requests come first: they warm the server up, and give the time that the parallel ones are compared with.
		n := s.o.Concurrency
		serial := time.Now()
		for range n {
			if _, err := c.callMethod(ctx, s.o.Answer, "tools/list", map[string]any{}); err != nil {
				s.addFinding("parallel", Fail, "asked tools/list "+fmt.Sprint(n)+" times one after the other, it "+failureText(err), "")
				return
			}
		}
		alone := time.Since(serial)
		within, cancel := context.WithTimeout(ctx, s.o.Answer+2*alone)
		defer cancel()
		began := time.Now()
		pending := make([]*pendingRequest, n)
		for i := range pending {
			pending[i] = c.sendRequest(within, "tools/list", "", map[string]any{})
		}
		lost := 0
		var cause error
		for _, f := range pending {
			if _, err := f.awaitReply(within); err != nil {
				lost, cause = lost+1, err
			}
		}
		together := time.Since(began)
		const fix = "keep requests apart by their id, and write each answer as one message"
		// c.answered counts over the whole shared conversation, so a repeated answer to an earlier check counts here, too.
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
			s.addFinding("parallel", Fail, fmt.Sprintf("of %d requests at once %d were not answered: it %s", n, lost, failureText(cause)), fix)
		case repeated > 0:
			s.addFinding("parallel", Fail, fmt.Sprintf("%d requests were answered more than once", repeated), fix)
		default:
			s.addFinding("parallel", Pass, fmt.Sprintf("%d requests at once take %s, one after the other %s", n, durationText(together), durationText(alone)),
				"", "requests", n, "togetherMs", together, "aloneMs", alone)
		}
	})
}
