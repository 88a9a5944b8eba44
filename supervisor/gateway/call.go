package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
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
		return nil, v.unknownTool(shown)
	}
	within := v.scope.Load()
	if d := within.decide(to.server, to.name, args); d.Verdict != access.Allow {
		err := g.all.Of(to.server).RefuseCall(ctx, to.server, to.name, json.RawMessage(args), d)
		if e := g.forbidCall(r, to, args, in.state); e != nil {
			return nil, e
		}
		if within.showsTool(to.server, to.name) {
			return failedCall(err)
		}
		// What is hidden is not told from what does not exist.
		return nil, v.unknownTool(shown)
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
	return g.performRequest(ctx, r, to, in, args, sender{send, func(err error) ([]byte, *serve.Error) {
		if v.currentTools().find(shown) == nil && errors.Is(errorOf(err), messages.ErrUnknownTool) {
			return nil, v.unknownTool(shown)
		}
		return failedCall(err)
	}})
}

// unknownTool refuses a name that leads to no tool of the view, and names the nearest one that the view shows.
func (v *view) unknownTool(shown string) *serve.Error {
	text, list := "Unknown tool: "+messages.Line(shown, 200), v.currentTools()
	if near := messages.Nearest(shown, slices.Sorted(maps.Keys(list.entries))); near != "" && near != shown {
		text += fmt.Sprintf("; did you mean %q?", messages.Line(near, 200))
	}
	return serve.InvalidParams(text)
}
