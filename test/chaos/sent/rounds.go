package sent

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A round is a request that the server wants to have back with input (2026-07-28, multi round-trip requests).
type round struct {
	method string
	params map[string]json.RawMessage // of the request that was answered
	state  json.RawMessage            // requestState, nil if there is none
	inputs map[string]json.RawMessage // the server's questions, by key
}

// maxRounds bounds the rounds that are remembered of one connection.
const maxRounds = 256

// observeRound remembers a request that the client is to send again.
func (c *conversation) observeRound(r *request, result map[string]json.RawMessage) {
	o := &round{method: r.method, params: r.params, state: result["requestState"]}
	_ = json.Unmarshal(result["inputRequests"], &o.inputs) // a value that is no object asks no question
	if len(c.knownRounds) < keptRequests {
		c.knownRounds[string(o.state)] = c
	}
	if c.rounds = append(c.rounds, o); len(c.rounds) > maxRounds {
		c.rounds = c.rounds[1:]
	}
}

// receiveRound judges a request that comes back: with the unchanged state, with an answer to each question and no other, and
// with the same params otherwise.
//
// 2026-07-28: the client "MUST echo back the exact value" of requestState, and "MUST NOT" send one that it was not given.
func (c *conversation) receiveRound(m *message, r *request) {
	state, responses := m.params["requestState"], m.params["inputResponses"]
	// Only such a server may ask for another round, and then the params are compared.
	if c.server.Offers && m.meta[metaPrefix+"protocolVersion"] != nil {
		r.params = m.params
	}
	// The input of a task is no round of a request: receiveTaskRequest judges it.
	if state == nil && responses == nil || r.method == "tasks/update" {
		return
	}
	// The state identifies the round; a round without a state is found by its params.
	at := slices.IndexFunc(c.rounds, func(o *round) bool {
		return o.method == r.method && bytes.Equal(o.state, state) && (state != nil || sameParams(o.params, m.params))
	})
	// The state of a server is opaque, and is meant for the server that is started in its place as well.
	if given := c.knownRounds[string(state)]; at < 0 && state != nil && given != nil && given != c {
		return
	}
	if at < 0 {
		c.reportProblem("%s came back with the state %s, and that is not what was to come back", r.method, messages.Line(string(state), 60))
		return
	}
	// A round is answered once. If the server refuses the request, or the connection is lost before its answer, the round is open again.
	o := c.rounds[at]
	c.rounds = slices.Delete(c.rounds, at, at+1)
	reopen := func() { c.rounds = append(c.rounds, o) }
	r.takeBacks = append(r.takeBacks, reopen)
	r.abandoned = reopen
	var given map[string]json.RawMessage
	if responses != nil && json.Unmarshal(responses, &given) != nil {
		c.reportProblem("the inputResponses of %s are no object: %s", r.method, messages.Line(string(responses), 120))
	}
	for _, key := range slices.Sorted(maps.Keys(o.inputs)) {
		if given[key] == nil {
			c.reportProblem("%s came back without an answer to %q", r.method, messages.Line(key, 60))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if o.inputs[key] == nil {
			c.reportProblem("%s came back with an answer to %q, which was not asked", r.method, messages.Line(key, 60))
		}
	}
	if !sameParams(o.params, m.params) {
		c.reportProblem("%s came back with other params than before: %s", r.method, messages.Line(string(m.Params), 120))
	}
}

// sameParams compares the params of two rounds of one request, without the members that belong to a round.
func sameParams(a, b map[string]json.RawMessage) bool {
	// The values are compared as bytes: a client sends back what it has kept, and has no reason to write it anew.
	count := func(params map[string]json.RawMessage) (n int) {
		for key := range params {
			if !isOfRound(key) {
				n++
			}
		}
		return n
	}
	if count(a) != count(b) {
		return false
	}
	for key, value := range a {
		if !isOfRound(key) && !bytes.Equal(value, b[key]) {
			return false
		}
	}
	return true
}

// isOfRound reports whether a member of the params belongs to one round and not to the request.
func isOfRound(key string) bool {
	return key == "_meta" || key == "requestState" || key == "inputResponses"
}
