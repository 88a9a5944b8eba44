package messages

import "context"

type callerKey struct{}

// WithCaller says on whose behalf the calls and reads are made that use the context: the name of a sub-agent, of a
// conversation, of a person. Where calls wait for their turn at a server (Spec.MaxInFlight), callers take turns, so that
// one with a thousand calls does not keep another with a single one waiting. An empty key is what a context without one
// has.
func WithCaller(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, callerKey{}, key)
}

// CallerOf is the key that WithCaller gave, empty if there is none. All without a key are one caller.
func CallerOf(ctx context.Context) string {
	key, _ := ctx.Value(callerKey{}).(string)
	return key
}

// PeerHeader is the header of an actor's message that was passed on for a peer on another machine. It holds the identity of
// the peer's certificate, and the address of the actor that asked.
const PeerHeader = "mcpvisor-peer"
