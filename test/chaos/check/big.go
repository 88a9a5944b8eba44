package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// bigMessages sends requests that are large and mean little: the weight stands in _meta, which every request may have.
func (s *subject) bigMessages(ctx context.Context) {
	small, big := s.o.BigMessage/4, s.o.BigMessage
	for _, size := range []int{small, big} {
		again := false
		s.alone(ctx, "big-message", func(ctx context.Context, c *conversation) { again = s.bigMessage(ctx, c, size, size == big) })
		if !again {
			return
		}
	}
}

// bigMessage sends one, and reports whether a bigger one is worth trying. Only the last notes that all is well.
func (s *subject) bigMessage(ctx context.Context, c *conversation, size int, last bool) bool {
	method := "ping"
	if s.era == messages.EraModern {
		method = "tools/list"
	}
	began := time.Now()
	within := s.o.Answer + 10*time.Second
	r, err := c.ask(ctx, within, method, map[string]any{"_meta": map[string]any{"mcpvisor/pad": strings.Repeat("x", size)}})
	took := time.Since(began)
	lives := c.alive(ctx, s.o.Answer)
	const fix = "read messages of any reasonable length (agents send whole files as arguments), and refuse longer ones with " +
		"an error instead of silence"
	var n *noAnswer
	switch {
	case lives != nil:
		verdict := Fail
		if last {
			verdict = Warn
		}
		s.add("big-message", verdict, fmt.Sprintf("after a message of %s it %s when it is asked for a sign of life", sizeOf(size),
			said(lives)), fix, "bytes", size)
		return false
	case errors.As(err, &n) && n.status != 0:
		s.add("big-message", Warn, fmt.Sprintf("a message of %s is %s", sizeOf(size), n.text),
			"let larger bodies through if tools take files or texts", "bytes", size)
		return false
	case err != nil:
		s.add("big-message", Fail, fmt.Sprintf("asked %s in a message of %s, it %s", method, sizeOf(size), said(err)), fix,
			"bytes", size)
		return false
	case r.Error != nil:
		s.add("big-message", Warn, fmt.Sprintf("it answers a message of %s with error %d: %s", sizeOf(size), r.Error.Code,
			messages.Line(r.Error.Message, 80)), "let larger messages through if tools take files or texts", "bytes", size)
		return false
	case last:
		s.add("big-message", Pass, fmt.Sprintf("it answers a message of %s after %s", sizeOf(size), ms(took)), "", "bytes", size)
	}
	return true
}

func sizeOf(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
