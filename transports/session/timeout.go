package session

import (
	"context"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/calltimeout"
	"time"
)

// CallTimeout is a context with two deadlines for one call: an idle timeout, which passes after a time without progress, and
// a longest time, which passes in any case. The idle timeout stands still while a person (or a model) answers a question of
// the server, and begins again with each progress notification; the longest time does neither, and neither does the parent
// context. Its Err is context.DeadlineExceeded when a deadline passed. Stop ends it.
type CallTimeout = calltimeout.Context

// NewCallTimeout starts both deadlines now. timeout is the idle timeout, longest the longest time; 0 or less disables either.
// The caller must call Stop, or the parent may keep the context alive.
func NewCallTimeout(ctx context.Context, timeout, longest time.Duration) *CallTimeout {
	return calltimeout.New(ctx, timeout, longest)
}

// CallTimeoutOf returns the CallTimeout that ctx was derived from, nil if there is none.
func CallTimeoutOf(ctx context.Context) *CallTimeout { return calltimeout.Of(ctx) }
