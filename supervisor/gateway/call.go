package gateway

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// callTool runs a tool. What the agent gave as arguments goes to the server as it is.
func (g *Gateway) callTool(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	var name, args []byte
	var in input
	if r.Params != nil {
		for o := rawjson.ObjectAt(r.Params, 0, 0); o.Next(); {
			switch value := o.Skip(); string(o.Name) {
			case "name":
				name = value
			case "arguments":
				args = value
			default:
				in.takeMember(o.Name, value)
			}
		}
	}
	shown, ok := rawjson.Text(name)
	if !ok || shown == "" {
		return nil, serve.InvalidParams("tools/call names no tool")
	}
	if len(args) > 0 && !rawjson.IsObject(args) {
		return nil, serve.InvalidParams("the arguments must be an object")
	}
	to, ok := v.findTool(shown)
	if !ok {
		return nil, serve.InvalidParams("Unknown tool: " + messages.Line(shown, 200))
	}
	if why := v.scope.Load().refusalOf(to.server, to.name, args); why != "" {
		return failedCall(&messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: to.server,
			Tool: to.name, Text: "the call is not allowed: " + why, Err: messages.ErrDenied})
	}
	if e := v.checkParamHeaders(r, shown, args); e != nil {
		return nil, e
	}
	var e *serve.Error
	if in.wish, e = v.taskWishOf(r, shown, to, in.task); e != nil {
		return nil, e
	}
	send := func(ctx context.Context, wishes wire.Options, args []byte) ([]byte, error) {
		m, ctx := g.all.Owner(ctx, to.server)
		res, err := m.CallServerTool(ctx, to.server, to.name, json.RawMessage(args), func(o *wire.Options) {
			*o = wishes
			o.OmitArguments = true
			o.ArgumentsWritten = len(args) > 0 && bytes.IndexByte(args, '\n') < 0 && bytes.IndexByte(args, '\r') < 0
		})
		if err != nil {
			return nil, err
		}
		return res.Raw, nil
	}
	return g.performRequest(ctx, r, to, in, args, sender{send, failedCall})
}
