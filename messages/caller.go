package messages

import "context"

type callerKey struct{}

// WithCaller names the caller on whose behalf the calls and reads with this context are made: a sub-agent, a
// conversation, a person. Where calls wait for a slot at a server (Spec.MaxInFlight), the slots go to the callers in
// turn, so that one with a thousand calls does not keep another with a single one waiting. The key goes all the way: to
// the Authorizer of a remote server (each request carries its own caller's credentials), to transports
// (transports.Message.Caller), to the handlers of in-process servers, and to the functions that answer servers' questions;
// and a server whose spec has share "principal" has one instance per key. An empty key is the same as none.
func WithCaller(ctx context.Context, key string) context.Context {
	if key == CallerOf(ctx) {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, key)
}

// CallerOf returns the key that WithCaller gave, empty if there is none, or no context. All calls without a key belong to one caller.
func CallerOf(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	key, _ := ctx.Value(callerKey{}).(string)
	return key
}

// PeerHeader is the header of an actor's message that was passed on for a peer on another machine. It holds the identity of
// the peer's certificate, and the address of the actor that asked.
const PeerHeader = "mcpvisor-peer"
