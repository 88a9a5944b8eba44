package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// effect is what a fault does. Each function says in a few words what it did, and nothing if it found nothing to do.
type effect struct {
	// out acts on what the client sends, in on the answer of a request that was hit.
	out, in func(*effectContext) string
	// serverMessages: in acts on the server's own messages too, if the rule names them.
	serverMessages bool
	// everyMessage: a rule hits every message by itself when it passes, not an answer by its request.
	everyMessage bool
	clock        *clockEffect
}

const crashLoop = "crash-loop"

// The words of which the table is made.
var (
	callMethods      = []string{"tools/call"}
	handshakeMethods = []string{"initialize", "server/discover"}
	toolListMethods  = []string{"tools/list"}
	listMethods      = []string{"*/list"}
)

func durationParam(name, value, description string) Param {
	return Param{name, value, description, "duration"}
}
func sizeParam(name, value, description string) Param { return Param{name, value, description, "size"} }
func numberParam(name, value, description string) Param {
	return Param{name, value, description, "number"}
}
func boolParam(name, value, description string) Param { return Param{name, value, description, "yes"} }
func textParam(name, value, description string) Param { return Param{name, value, description, "text"} }

// jitterParam varies by.
var jitterParam = Param{"jitter", "0", "up to so much more, drawn evenly; a number from 0 to 1: by such a part more or less", "jitter"}

func choiceParam(name, value, description, choices string) Param {
	return Param{name, value, description, choices}
}

var sortedKinds = sync.OnceValue(func() []Kind {
	all := slices.Concat(timeKinds(), deathKinds(), streamKinds(), callKinds(), listKinds(), protocolKinds(), httpKinds(), impossibleKinds())
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// impossibleKinds are faults of the catalogue that nothing in the middle can do. They are known, so that who asks is told why.
func impossibleKinds() []Kind {
	return []Kind{
		{Name: "grandchild", Does: "the server starts a process that outlives it",
			Why: "it would leave a process behind in a place that is not a test's; chaos run does it to servers of its own"},
		{Name: "sleep", Does: "the machine sleeps",
			Why: "that is the whole machine's; stop does it to one process, black-hole to one conversation"},
	}
}

// dropEffect keeps a message from arriving.
func dropEffect(what string) func(*effectContext) string {
	return func(a *effectContext) string {
		a.disposition.Drop = true
		return what
	}
}

// replaceAnswer replaces the answer. member is "result" or "error".
func (a *effectContext) replaceAnswer(member string, value []byte) {
	a.m.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, a.m.id, member, value)
	a.disposition.Changed = true
}

// changeResult changes a member of the result. It does nothing to an answer that is an error.
func (a *effectContext) changeResult(change func(json.RawMessage) json.RawMessage, path ...string) bool {
	if memberValue(readObject(a.m.body), "result") == nil {
		return false
	}
	return a.changeMember(change, append([]string{"result"}, path...)...)
}

// changeTools changes the tools of a list, or those of another list by the member that holds them.
func (a *effectContext) changeTools(change func([]json.RawMessage) []json.RawMessage) bool {
	changed := false
	ok := a.changeResult(func(raw json.RawMessage) json.RawMessage {
		all := readArray(raw)
		if all == nil {
			return raw
		}
		changed = true
		return encodeArray(change(all))
	}, "tools")
	return ok && changed
}

// changeFirstTool changes one tool of a list: the one that the rule's parameter "which" names, or the first.
func (a *effectContext) changeFirstTool(change func([]member) []member) bool {
	toolName, found := a.rule.values.text("which"), false
	ok := a.changeTools(func(all []json.RawMessage) []json.RawMessage {
		for i, raw := range all {
			o := readObject(raw)
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

// constantValue is a constant; empty is nothing.
func constantValue(raw string) func(json.RawMessage) json.RawMessage {
	return func(json.RawMessage) json.RawMessage {
		if raw == "" {
			return nil
		}
		return json.RawMessage(raw)
	}
}

// drawDelay draws by + U(0, jitter), or by × (1 ± jitter).
func (a *effectContext) drawDelay() time.Duration {
	delay := a.rule.values.duration("by")
	switch j := a.rule.values["jitter"].(type) {
	case time.Duration:
		if j > 0 {
			delay += time.Duration(a.rng.Int64N(int64(j)))
		}
	case float64:
		delay += time.Duration((2*a.rng.Float64() - 1) * j * float64(delay))
	}
	return delay
}

// longText is a text of so many bytes that compresses and reads badly, and is the same each time.
func longText(size int) string {
	const line = "the quick brown fox jumps over the lazy dog "
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func newNotification(method, params string) []byte {
	if params == "" {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

var listChanged = newNotification("notifications/tools/list_changed", "")
