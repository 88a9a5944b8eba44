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
	q, shown, e := readCall(r)
	if e != nil {
		return nil, e
	}
	to, ok := v.findTool(shown)
	if !ok {
		return nil, v.unknownTool(shown)
	}
	q.to = to
	if isRefused, result, e := g.refuseCall(ctx, v, q, shown); isRefused {
		return result, e
	}
	if e = v.checkParamHeaders(r, shown, q.arguments); e != nil {
		return nil, e
	}
	if q.wish, e = v.taskWishOf(r, shown, to, q.task); e != nil {
		return nil, e
	}
	q.send = func(ctx context.Context, wishes *wire.Options) ([]byte, error) {
		wishes.OmitArguments = true
		wishes.ArgumentsWritten = len(q.arguments) > 0 && bytes.IndexByte(q.arguments, '\n') < 0 && bytes.IndexByte(q.arguments, '\r') < 0
		m, ctx := g.all.Owner(ctx, to.server)
		res, err := m.CallServerTool(ctx, to.server, to.name, json.RawMessage(q.arguments), func(o *wire.Options) { *o = *wishes })
		if err != nil {
			return nil, err
		}
		return res.Raw, nil
	}
	q.fail = func(err error) ([]byte, *serve.Error) {
		if v.currentTools().find(shown) == nil && errors.Is(errorOf(err), messages.ErrUnknownTool) {
			return nil, v.unknownTool(shown)
		}
		return failedCall(err)
	}
	return g.performRequest(ctx, q)
}

// readCall reads the params of tools/call. shown is the name of the tool as the agent knows it.
func readCall(r *serve.Request) (q *outgoing, shown string, e *serve.Error) {
	q = &outgoing{r: r}
	var name []byte
	if r.Params != nil {
		for o := rawjson.ObjectAt(r.Params, 0, 0); o.Next(); {
			switch value := o.Skip(); string(o.Name) {
			case "name":
				name = value
			case "arguments":
				q.arguments = value
			default:
				q.takeMember(o.Name, value)
			}
		}
	}
	shown, ok := rawjson.Text(name)
	if !ok || shown == "" {
		return nil, "", serve.InvalidParams("tools/call names no tool")
	}
	if len(q.arguments) > 0 && !rawjson.IsObject(q.arguments) {
		return nil, "", serve.InvalidParams("the arguments must be an object")
	}
	return q, shown, nil
}

// refuseCall answers a call that the scope of a view does not allow.
func (g *Gateway) refuseCall(ctx context.Context, v *view, q *outgoing, shown string) (isRefused bool, result []byte, e *serve.Error) {
	within, to := v.scope.Load(), q.to
	if d := within.decide(to.server, to.name, q.arguments); d.Verdict != access.Allow {
		err := g.all.Of(to.server).RefuseCall(ctx, to.server, to.name, q.arguments, d)
		if e := g.forbidCall(q); e != nil {
			return true, nil, e
		}
		if within.showsTool(to.server, to.name) {
			result, e = failedCall(err)
			return true, result, e
		}
		// An agent must not tell a hidden tool from one that does not exist.
		return true, nil, v.unknownTool(shown)
	}
	return false, nil, nil
}

// unknownTool refuses a name that leads to no tool of the view, and names the nearest one that the view shows.
func (v *view) unknownTool(shown string) *serve.Error {
	text, list := "Unknown tool: "+messages.Line(shown, 200), v.currentTools()
	if near := messages.Nearest(shown, slices.Sorted(maps.Keys(list.entries))); near != "" && near != shown {
		text += fmt.Sprintf("; did you mean %q?", messages.Line(near, 200))
	}
	return serve.InvalidParams(text)
}
