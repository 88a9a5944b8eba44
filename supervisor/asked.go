package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// What servers ask of the program, and what it answers.
type (
	// ElicitRequest is a server's question to the person, ElicitResult the answer.
	ElicitRequest = messages.ElicitRequest
	ElicitResult  = messages.ElicitResult
	// SampleRequest is a server's request for an answer of the model.
	SampleRequest = messages.SampleRequest
	// Root is a place that servers may work in.
	Root = messages.Root
)

// handlers are what one server may ask: the program's functions, which are told who asks.
func (c *Config) handlers(server string) (h session.Handlers) {
	if c.Elicit != nil {
		h.ElicitURL = c.ElicitURL
		h.Elicit = func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
			r.Server = server
			return c.Elicit(ctx, r)
		}
	}
	if c.Sample != nil {
		h.SampleTools = c.SampleTools
		h.Sample = func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
			r.Server = server
			return c.Sample(ctx, r)
		}
	}
	if c.Roots != nil {
		h.Roots = func(ctx context.Context) ([]messages.Root, error) { return c.Roots(ctx, server) }
	}
	return h
}
