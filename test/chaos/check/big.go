package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// checkBigMessages sends requests that are large and mean little: the padding stands in _meta, which every request may have. It
// sends a quarter of the size first, so that a server with a low limit fails on a message that is still common.
func (s *serverCheck) checkBigMessages(ctx context.Context) {
	small, big := s.o.BigMessage/4, s.o.BigMessage
	for _, size := range []int{small, big} {
		worthMore := false
		s.runHarmful(ctx, "big-message", func(ctx context.Context, c *rawClient) { worthMore = s.sendBigMessage(ctx, c, size, size == big) })
		if !worthMore {
			return
		}
	}
}

// sendBigMessage sends one large request and judges the answer. It returns true if a larger one is worth trying, and records a
// Pass only for the last.
func (s *serverCheck) sendBigMessage(ctx context.Context, c *rawClient, size int, last bool) bool {
	method := "ping"
	// The modern era has no ping.
	if s.era == messages.EraModern {
		method = "tools/list"
	}
	began := time.Now()
	// The allowance is for the transfer of megabytes over a slow network, whatever the time for a small answer is.
	within := s.o.Answer + 10*time.Second
	r, err := c.callMethod(ctx, within, method, map[string]any{"_meta": map[string]any{"mcpvisor/pad": strings.Repeat("x", size)}})
	took := time.Since(began)
	// The server may have dropped the message and gone on, or may have died of it: only a second request tells.
	lives := c.checkAlive(ctx, s.o.Answer)
	const fix = "read messages of any reasonable length (agents send whole files as arguments), and refuse longer ones with " +
		"an error instead of silence"
	var n *noAnswerError
	switch {
	case lives != nil:
		// A smaller message must pass; the largest is beyond what most agents send.
		verdict := Fail
		if last {
			verdict = Warn
		}
		s.addFinding("big-message", verdict, fmt.Sprintf("after a message of %s it %s when it is asked for a sign of life", sizeText(size),
			failureText(lives)), fix, "bytes", size)
		return false
	case errors.As(err, &n) && n.status != 0:
		s.addFinding("big-message", Warn, fmt.Sprintf("a message of %s is %s", sizeText(size), n.text),
			"let larger bodies through if tools take files or texts", "bytes", size)
		return false
	case err != nil:
		s.addFinding("big-message", Fail, fmt.Sprintf("asked %s in a message of %s, it %s", method, sizeText(size), failureText(err)), fix,
			"bytes", size)
		return false
	case r.Error != nil:
		s.addFinding("big-message", Warn, fmt.Sprintf("it answers a message of %s with error %d: %s", sizeText(size), r.Error.Code,
			messages.Line(r.Error.Message, 80)), "let larger messages through if tools take files or texts", "bytes", size)
		return false
	case last:
		s.addFinding("big-message", Pass, fmt.Sprintf("it answers a message of %s after %s", sizeText(size), durationText(took)), "", "bytes", size)
	}
	return true
}

// sizeText writes a size as a person says it; the sizes that are tried are whole KiB or MiB.
func sizeText(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
