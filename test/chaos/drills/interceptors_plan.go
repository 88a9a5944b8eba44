package drills

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// errOfManager is that of a chain which returned what it may not.
var errOfManager = errors.New("the interceptors returned what they may not")

// notAnObject is the text of a result that is no object.
const notAnObject = "\x00"

// foreseenChain follows a request through the plans of the interceptors.
type foreseenChain struct {
	plans        []string
	kind, caller string

	seen              []string
	sends             int
	mayHaveRun        bool
	isStuck, isBroken bool
	lost              error // that of the send which ended last
}

// invoke returns what interceptor i, or behind the last one the server, makes of a request. Where an interceptor panics or does not return, what
// it returns counts for nothing.
func (f *foreseenChain) invoke(i int, q interceptedRequest) (end interceptedEnd) {
	if i == len(f.plans) {
		return f.send(q)
	}
	f.seen = append(f.seen, fmt.Sprintf("interceptor %d of %q got %+v", i, f.caller, q))
	switch f.plans[i] {
	case refuseBefore:
		return interceptedEnd{own: errOfInterceptor}
	case returnNothing:
		return interceptedEnd{own: errOfManager}
	case panicBefore:
		f.isBroken = true
		return end
	case stayBefore:
		f.isStuck = true
		return end
	case answerItself:
		return interceptedEnd{text: "by itself"}
	case changeParams:
		q.method, q.arguments, q.meta = "changed", fmt.Sprintf(`{"by":%d}`, i), fmt.Sprint(i)
	case redirect:
		r := redirectRequest(supervisor.Request{Server: q.server, Name: q.name})
		q.server, q.name = r.Server, r.Name
	case misdirect:
		q.server = "nowhere"
	case askInVain:
		r := askForNothing(supervisor.Request{Server: q.server, Name: q.name})
		q.server, q.name = r.Server, r.Name
	}
	end = f.invoke(i+1, q)
	if f.isStuck || f.isBroken {
		return end
	}
	switch f.plans[i] {
	case refuseAfter:
		return interceptedEnd{own: errOfInterceptor}
	case panicAfter:
		f.isBroken = true
	case stayAfter:
		f.isStuck = true
	case sendTwice:
		return f.invoke(i+1, q)
	case keepFirst, takeSecond:
		if end.own != nil || end.lost != nil {
			return end
		}
		q.server = "nowhere"
		second := f.invoke(i+1, q)
		if f.plans[i] == takeSecond {
			return second
		}
	case changeResult:
		if end.own == nil && end.lost == nil {
			return interceptedEnd{text: fmt.Sprintf("changed by %d", i), isError: !end.isError}
		}
	case breakResult:
		if end.own == nil && end.lost == nil {
			return interceptedEnd{text: notAnObject}
		}
	}
	return end
}

// isFixed reports whether no change of an interceptor counts for a method, which has no result object either.
func isFixed(method string) bool {
	return method == "completion/complete" || method == "ping" || method == "prompts/list"
}

// send is the manager and the server: which changes count depends on the kind of the request.
func (f *foreseenChain) send(q interceptedRequest) (end interceptedEnd) {
	f.sends++
	q.method = f.kind
	server, name := q.server, q.name
	if isFixed(f.kind) {
		server, name, q.arguments, q.meta = "north", "", "", ""
	}
	switch {
	case server == "" && strings.HasPrefix(name, "mcp__north__"):
		server, name = "north", strings.TrimPrefix(name, "mcp__north__")
	case server == "":
		server = "north"
	}
	if server == "nowhere" {
		f.lost = supervisor.ErrUnknownServer
		return interceptedEnd{lost: f.lost}
	}
	f.lost = nil
	if f.kind == "prompts/get" {
		q.arguments = `{"n":"1"}`
	}
	if f.kind == "resources/read" {
		q.arguments = ""
	}
	if f.kind == "prompts/list" { // the session keeps it
		f.mayHaveRun = true
		return end
	}
	f.seen = append(f.seen, fmt.Sprintf("server got %+v", interceptedRequest{q.method, server, name, q.arguments, q.meta}))
	if name == "drill://south/nothing" {
		f.lost = supervisor.ErrUnknownResource
		return interceptedEnd{lost: f.lost}
	}
	f.mayHaveRun = true
	switch f.kind {
	case "tools/call":
		if name == "fail" {
			return interceptedEnd{text: "it failed", isError: true}
		}
		return interceptedEnd{text: server + " " + q.arguments}
	case "prompts/get":
		return interceptedEnd{text: server + " " + name}
	case "resources/read":
		return interceptedEnd{text: server}
	}
	return end
}
