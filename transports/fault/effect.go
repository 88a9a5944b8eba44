package fault

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// An effect is the implementation of a fault. Each function changes the disposition in its context and returns a few
// words about it, or "" if it found nothing to do: then the fault counts as not done. All run while Flow.mu is held.
type effect struct {
	// out acts on a message of the client, in on the answer to a request that was hit; nil for none.
	out, in func(*effectContext) string
	// serverMessages lets in act on the server's own requests and notifications too, if the rule names them.
	serverMessages bool
	// everyMessage makes the rule decide about every message when it passes; otherwise an answer is hit because its
	// request was.
	everyMessage bool
	// clock is nil for a fault that needs a message.
	clock *clockEffect
	// byProxy is set for a fault that is a state and no decision about messages: the proxy asks Flow.FaultActive.
	byProxy bool
}

// crashLoop is the one kind whose first period does not come at once: see advanceRule.
const crashLoop = "crash-loop"

// allEffects returns the effects of rules by the names of their faults. A row of the catalogue that a rule can do has one here.
func allEffects() map[string]effect {
	all := map[string]effect{}
	for _, group := range []map[string]effect{
		messageEffects(), delayEffects(), deathEffects(), streamEffects(), callEffects(), listEffects(), protocolEffects(), httpEffects(),
	} {
		maps.Copy(all, group)
	}
	return all
}

// dropEffect returns an effect that keeps a message from arriving.
func dropEffect(what string) func(*effectContext) string {
	return func(a *effectContext) string {
		a.disposition.Drop = true
		return what
	}
}

// replaceAnswer replaces the whole answer by one with the same id. member is "result" or "error".
func (a *effectContext) replaceAnswer(member string, value []byte) {
	a.m.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, a.m.id, member, value)
	a.disposition.Changed = true
}

// changeResult changes the member of the result to which path leads. It reports false, and does nothing, for an
// answer that is an error.
func (a *effectContext) changeResult(change func(json.RawMessage) json.RawMessage, path ...string) bool {
	// An error has no result to change.
	if memberValue(readObject(a.m.body), "result") == nil {
		return false
	}
	return a.changeMember(change, append([]string{"result"}, path...)...)
}

// changeTools changes the tools of an answer to tools/list. It reports false if the answer holds no array of tools.
func (a *effectContext) changeTools(change func([]json.RawMessage) []json.RawMessage) bool {
	changed := false
	ok := a.changeResult(func(raw json.RawMessage) json.RawMessage {
		// A list of an unexpected form is left alone, and the fault counts as not done.
		all := readArray(raw)
		if all == nil {
			return raw
		}
		changed = true
		return encodeArray(change(all))
	}, "tools")
	return ok && changed
}

// changeFirstTool changes one tool of a list: the one that the rule's parameter "which" names, or the first. It
// reports false if there is no such tool.
func (a *effectContext) changeFirstTool(change func([]member) []member) bool {
	toolName, found := a.rule.values.Text("which"), false
	ok := a.changeTools(func(all []json.RawMessage) []json.RawMessage {
		for i, raw := range all {
			o := readObject(raw)
			// Names are compared in their JSON form, so escapes that a server chose differently do not match.
			if o == nil || toolName != "" && string(memberValue(o, "name")) != string(quoteJSON(toolName)) {
				continue
			}
			all[i], found = encodeObject(change(o)), true
			break
		}
		return all
	})
	return ok && found
}

// constantValue returns a change that puts raw in the place of any value; an empty raw removes the member.
func constantValue(raw string) func(json.RawMessage) json.RawMessage {
	return func(json.RawMessage) json.RawMessage {
		if raw == "" {
			return nil
		}
		return json.RawMessage(raw)
	}
}

// drawDelay draws a delay from the parameters by and jitter: evenly from [by, by+jitter) if jitter is a duration, or
// from by × (1 ± jitter) if it is a number.
func (a *effectContext) drawDelay() time.Duration {
	delay := a.rule.values.Duration("by")
	switch j := a.rule.values["jitter"].(type) {
	// The type of the parameter decides which kind of jitter was written: see readParam.
	case time.Duration:
		if j > 0 {
			delay += time.Duration(a.rng.Int64N(int64(j)))
		}
	case float64:
		delay += time.Duration((2*a.rng.Float64() - 1) * j * float64(delay))
	}
	return delay
}

// longText returns a text of size bytes, the same each time. It is readable, so that its origin is known wherever it
// turns up.
func longText(size int) string {
	const line = "the quick brown fox jumps over the lazy dog "
	return strings.Repeat(line, size/len(line)+1)[:size]
}

// newNotification returns a notification as JSON; params is an object as JSON, or empty for none.
func newNotification(method, params string) []byte {
	if params == "" {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

// listChanged announces a change of the tools. The slice is shared and must not be changed.
var listChanged = newNotification("notifications/tools/list_changed", "")
