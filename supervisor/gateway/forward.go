package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// reserved is the beginning of the keys of _meta that belong to one hop.
const reserved = "io.modelcontextprotocol/"

// input are the members of params that are not read here: what an agent of the modern era sends again with a request, after a server
// has asked for it, and others, which the server may know.
type input struct {
	responses, state []byte
	others           []byte // as they came, without braces
	// task is the agent's wish for one; wish is what becomes of it, nil for a call that stays one.
	task []byte
	wish *taskWish
}

// takeMember takes a member of params.
func (in *input) takeMember(name, value []byte) {
	switch string(name) {
	case "_meta":
	case "inputResponses":
		in.responses = value
	case "requestState":
		in.state = value
	case "task":
		in.task = value
	default:
		in.others = append(rawjson.AppendText(appendComma(in.others), name), ':')
		in.others = append(in.others, value...)
	}
}

// takeParams takes all members of params but those that are written anew.
func takeParams(params []byte, written ...string) (in input) {
	if params == nil {
		return in
	}
	for o := rawjson.ObjectAt(params, 0, 0); o.Next(); {
		name := o.Name
		if value := o.Skip(); !slices.Contains(written, string(name)) {
			in.takeMember(name, value)
		}
	}
	return in
}

// outgoing is one request of an agent on its way to its server.
type outgoing struct {
	r  *serve.Request
	to named
	// arguments are those that the agent gave; of another request than a call, the members of params that name its subject.
	arguments []byte
	input
	// capabilities tell the server which questions the agent answers.
	capabilities []byte
	// send sends it and returns the result, fail makes an answer of the error.
	send func(context.Context, *wire.Options) ([]byte, error)
	fail func(error) ([]byte, *serve.Error)
}

// forwardOptions returns what goes to the server beside the request itself: what of _meta is not of this hop, the wish of a session for
// progress, what the agent can be asked, and what it answers.
func (g *Gateway) forwardOptions(q *outgoing) (*wire.Options, *serve.Error) {
	r, o := q.r, &wire.Options{Input: q.others}
	keepMeta(r.Meta, o)
	// "Never more, never less" than the agent itself can be asked: servers of the modern era read it with each request.
	if o.Capabilities = q.capabilities; len(o.Capabilities) == 0 {
		o.Capabilities = json.RawMessage("{}")
	}
	if q.wish != nil {
		o.Task = &wire.TaskOptions{Want: true, TTL: q.wish.ttl}
	}
	if !r.Modern() {
		if token := progressToken(r.Meta); token != nil {
			o.ProgressParams = func(params json.RawMessage) {
				if params = withToken(params, token); params != nil {
					r.Notify("notifications/progress", params)
				}
			}
		}
		if st := stateOf(r.Session); st.leveled.Load() {
			o.LogLevel = messages.LogLevels[st.level.Load()]
		}
		return o, nil
	}
	o.LogLevel, o.PassInput = r.LogLevel, true
	if q.responses != nil {
		o.Input = append(append(appendComma(o.Input), `"inputResponses":`...), q.responses...)
	}
	if q.state != nil {
		state, ok := g.openState(r, q.to, q.state)
		if !ok {
			return nil, serve.InvalidParams("requestState is not one that was given for this request, or it is too old")
		}
		o.Input = append(append(appendComma(o.Input), `"requestState":`...), state...)
	}
	return o, nil
}

// progressToken returns the agent's token for progress, nil for none.
func progressToken(meta []byte) []byte {
	value := rawjson.Member(meta, "progressToken")
	if rawjson.IsText(value) || len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9') {
		return value
	}
	return nil
}

// keepMeta puts what of an agent's _meta goes on into o.
func keepMeta(meta []byte, o *wire.Options) {
	if len(meta) <= 2 {
		return
	}
	var kept []byte
	for m := rawjson.ObjectAt(meta, 0, 0); m.Next(); {
		value := m.Skip()
		switch name := string(m.Name); {
		case name == "progressToken", strings.HasPrefix(name, reserved):
		default:
			if kept == nil {
				kept = append(kept, '{')
			} else {
				kept = append(kept, ',')
			}
			kept = append(rawjson.AppendText(kept, name), ':')
			kept = append(kept, value...)
		}
	}
	if kept != nil {
		o.Meta = append(kept, '}')
	}
}

// withToken returns the params of a progress notification with another token, and all else byte for byte.
func withToken(params, token []byte) []byte {
	if rawjson.Member(params, "progressToken") == nil {
		return nil
	}
	return rawjson.With(params, "progressToken", token)
}

// requestKey leads from the context of a request to the agent's request, for the questions about it.
type requestKey struct{}

// performRequest sends a request to its server in the name of its agent, who is asked what the server asks about it, as soon as there is
// room in the agent's window.
func (g *Gateway) performRequest(ctx context.Context, q *outgoing) (result []byte, e *serve.Error) {
	p, err := g.enterWindow(ctx, q.r, q.to)
	if err != nil {
		return q.fail(err)
	}
	q.capabilities = q.r.Capabilities
	switch {
	case q.r.Modern():
		result, e = g.performModern(ctx, q)
	case q.wish != nil:
		result, e = g.performTask(ctx, q)
	default:
		result, e = g.performLegacy(ctx, q)
	}
	p.noteAnswer(int64(len(result)))
	return result, e
}

// performLegacy performs a request of the legacy era that does not become a task.
func (g *Gateway) performLegacy(ctx context.Context, q *outgoing) ([]byte, *serve.Error) {
	wishes, e := g.forwardOptions(q)
	if e != nil {
		return nil, e
	}
	ctx, done := g.sessionContext(ctx, q.r, q.to.server)
	defer done()
	return g.sendRequest(ctx, q, wishes)
}

// sendRequest sends a request, and makes an answer of what comes of it; the state that a server of the modern era gives is sealed. Of the
// agent's request it needs what outlives that.
func (g *Gateway) sendRequest(ctx context.Context, q *outgoing, wishes *wire.Options) ([]byte, *serve.Error) {
	result, err := q.send(ctx, wishes)
	if err != nil {
		return g.answerFailure(ctx, q, err)
	}
	g.sizes.learnSize(sizeKey(q.r, q.to), int64(len(result)))
	return g.sealInput(q.r, q.to, result)
}

// sessionContext returns the context in which a request of a session is made, with the one who answers the questions about it. done
// must be called when the request has ended.
func (g *Gateway) sessionContext(ctx context.Context, r *serve.Request, server string) (_ context.Context, done func()) {
	ctx = context.WithValue(ctx, requestKey{}, r)
	st := stateOf(r.Session)
	st.beginRequest(runningRequest{r, server, lastRequest.Add(1)})
	return messages.WithAnswerer(ctx, &st.answerer), func() { st.endRequest(r) }
}

// lastRequest numbers the requests of all gateways: several may have agents at one server.
var lastRequest atomic.Int64

// runningRequest is a request of a session that its server has not answered; of two the later one has the larger number.
type runningRequest struct {
	*serve.Request
	server string
	number int64
}

func (st *session) beginRequest(r runningRequest) {
	st.mu.Lock()
	st.running = append(st.running, r)
	st.mu.Unlock()
}

func (st *session) endRequest(r *serve.Request) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, other := range st.running {
		if other.Request == r {
			st.running = append(st.running[:i], st.running[i+1:]...)
			break
		}
	}
	if len(st.running) == 0 {
		st.running = nil
	}
}

// requestOf returns the request to which a question or a log message belongs: that of its context, or the newest of the session at the
// server, where only the session is known; at any server for "".
func (st *session) requestOf(ctx context.Context, server string) *serve.Request {
	if r, ok := ctx.Value(requestKey{}).(*serve.Request); ok {
		return r
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range slices.Backward(st.running) {
		if server == "" || r.server == server {
			return r.Request
		}
	}
	return nil
}
