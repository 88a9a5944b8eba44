package actors

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// turnsKey leads to the key of WithTurns.
type turnsKey struct{}

// WithTurns gives the calls of a context turns of their own among those of the same caller, where calls wait for a slot at a server: for one
// of several programs that a person runs. The key must not be the name of a caller.
func WithTurns(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, turnsKey{}, key)
}

// turnsOf returns the key by which the calls of a context take turns: that of WithTurns, else the name of the caller.
func turnsOf(ctx context.Context) string {
	if key, ok := ctx.Value(turnsKey{}).(string); ok {
		return key
	}
	return messages.CallerOf(ctx)
}
