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
	out, in func(*act) string
	// own: in acts on the server's own messages too, if the rule names them.
	own bool
	// passing: a rule hits every message by itself when it passes, not an answer by its request.
	passing bool
	clock   *clock
}

const crashLoop = "crash-loop"

// The words of which the table is made.
var (
	calls      = []string{"tools/call"}
	handshakes = []string{"initialize", "server/discover"}
	toolLists  = []string{"tools/list"}
	lists      = []string{"*/list"}
)

func duration(name, value, does string) Param { return Param{name, value, does, "duration"} }
func size(name, value, does string) Param     { return Param{name, value, does, "size"} }
func number(name, value, does string) Param   { return Param{name, value, does, "number"} }
func yes(name, value, does string) Param      { return Param{name, value, does, "yes"} }
func text(name, value, does string) Param     { return Param{name, value, does, "text"} }

// jitter varies by.
var jitter = Param{"jitter", "0", "up to so much more, drawn evenly; a number from 0 to 1: by such a part more or less", "jitter"}

func words(name, value, does, all string) Param {
	return Param{name, value, does, all}
}

var sortedKinds = sync.OnceValue(func() []Kind {
	all := slices.Concat(timeKinds(), deathKinds(), streamKinds(), callKinds(), listKinds(), protocolKinds(), httpKinds(), notHere())
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// notHere are faults of the catalogue that nothing in the middle can do. They are known, so that who asks is told why.
func notHere() []Kind {
	return []Kind{
		{Name: "grandchild", Does: "the server starts a process that outlives it",
			Why: "it would leave a process behind in a place that is not a test's; chaos run does it to servers of its own"},
		{Name: "sleep", Does: "the machine sleeps",
			Why: "that is the whole machine's; stop does it to one process, black-hole to one conversation"},
	}
}

// dropped keeps a message from arriving.
func dropped(what string) func(*act) string {
	return func(a *act) string {
		a.fate.Drop = true
		return what
	}
}

// answerWith replaces the answer. member is "result" or "error".
func (a *act) answerWith(member string, value []byte) {
	a.m.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%q:%s}`, a.m.id, member, value)
	a.fate.Changed = true
}

// result changes a member of the result. It does nothing to an answer that is an error.
func (a *act) result(to func(json.RawMessage) json.RawMessage, path ...string) bool {
	if get(object(a.m.body), "result") == nil {
		return false
	}
	return a.change(to, append([]string{"result"}, path...)...)
}

// tools changes the tools of a list, or those of another list by the member that holds them.
func (a *act) tools(to func([]json.RawMessage) []json.RawMessage) bool {
	changed := false
	ok := a.result(func(raw json.RawMessage) json.RawMessage {
		all := elements(raw)
		if all == nil {
			return raw
		}
		changed = true
		return array(to(all))
	}, "tools")
	return ok && changed
}

// firstTool changes one tool of a list: the one that the rule's parameter "which" names, or the first.
func (a *act) firstTool(to func([]member) []member) bool {
	which, found := a.rule.values.text("which"), false
	ok := a.tools(func(all []json.RawMessage) []json.RawMessage {
		for i, raw := range all {
			o := object(raw)
			if o == nil || which != "" && string(get(o, "name")) != string(quote(which)) {
				continue
			}
			all[i], found = encode(to(o)), true
			break
		}
		return all
	})
	return ok && found
}

// value is a constant; empty is nothing.
func value(raw string) func(json.RawMessage) json.RawMessage {
	return func(json.RawMessage) json.RawMessage {
		if raw == "" {
			return nil
		}
		return json.RawMessage(raw)
	}
}

// jitter draws by + U(0, jitter), or by × (1 ± jitter).
func (a *act) jitter() time.Duration {
	by := a.rule.values.duration("by")
	switch j := a.rule.values["jitter"].(type) {
	case time.Duration:
		if j > 0 {
			by += time.Duration(a.rng.Int64N(int64(j)))
		}
	case float64:
		by += time.Duration((2*a.rng.Float64() - 1) * j * float64(by))
	}
	return by
}

// longText is a text of so many bytes that compresses and reads badly, and is the same each time.
func longText(size int) string {
	const line = "the quick brown fox jumps over the lazy dog "
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func note(method, params string) []byte {
	if params == "" {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q}`, method)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

var listChanged = note("notifications/tools/list_changed", "")
