package check_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
)

// Every check can fail: each of these servers is bad in one way, and that check alone must say so.
func TestEachCheckSeesTheServerThatFailsIt(t *testing.T) {
	t.Parallel()
	calls := func(calls ...check.Call) func(*check.Options) {
		return func(o *check.Options) { o.Calls = map[string][]check.Call{"it": calls} }
	}
	call := func(tool, args string) check.Call { return check.Call{Tool: tool, Args: json.RawMessage(args)} }
	impatient := func(o *check.Options) { o.Grace = 300 * time.Millisecond } // who never ends needs no time for it
	quick := func(o *check.Options) { o.CallTimeout = 2 * time.Second; calls(call("echo", `{"text":"x"}`))(o) }
	cases := []struct {
		name    string
		spec    messages.Spec
		change  func(*check.Options)
		id      string
		verdict check.Verdict
	}{
		{"missing", messages.Spec{Command: "no-such-program-of-mcpvisor"}, nil, "start", check.Fail},
		{"silent", fixture("silent"), func(o *check.Options) { o.Connect = 2 * time.Second }, "start", check.Fail},
		{"exits at once", fixture("exits-at-once"), nil, "start", check.Fail},
		{"knows no other version", fixture("echoes-version"), nil, "handshake", check.Fail},
		{"old version", fixture("good", "version=2024-11-05"), nil, "protocol", check.Warn},
		{"dies on the question for the era", fixture("dies-on-probe"), nil, "probe", check.Warn},
		{"deaf after the question for the era", fixture("deaf-before-initialize"), nil, "probe", check.Fail},
		{"noise", fixture("noise"), nil, "noise", check.Fail},
		{"loud", fixture("stderr-flood", "size=200000"), nil, "stderr", check.Warn},
		{"bad schemas", fixture("bad-schemas"), nil, "tools", check.Fail},
		{"one name twice", fixture("duplicates"), nil, "tools", check.Fail},
		{"long names", fixture("long-names"), nil, "tools", check.Warn},
		{"another list each time", fixture("changes-while-listing", "times=100"), nil, "list", check.Warn},
		{"another order each time", fixture("shuffles"), nil, "list", check.Warn},
		{"pages without end", fixture("endless-pages"), nil, "start", check.Fail},
		{"no ping", fixture("ignores", "method=ping"), nil, "ping", check.Fail},
		{"silence for what it does not know", fixture("ignores", "method=mcpvisor/no-such-method"), nil, "unknown-method", check.Fail},
		{"a result for everything", fixture("agrees"), nil, "unknown-method", check.Fail},
		{"dies of a broken message", fixture("dies-of-nonsense"), nil, "malformed", check.Warn},
		{"dies of a second initialize", fixture("dies-of-second-initialize"), nil, "second-initialize", check.Warn},
		{"one at a time", fixture("drops-while-busy", "takes=1s"), nil, "parallel", check.Fail},
		{"short lines", fixture("short-lines", "most=30000"), nil, "big-message", check.Fail},
		{"never answers a call", fixture("hangs-on-call"), quick, "call", check.Fail},
		{"dies of a call", fixture("dies-mid-call"), quick, "call", check.Fail},
		{"results without content", fixture("bad-results"), calls(call("empty", `{}`)), "call", check.Fail},
		{"a call that fails", fixture("good"), calls(call("fail", `{"text":"no"}`)), "call", check.Warn},
		{"a call that is refused", fixture("good"), calls(call("refuse", `{"code":-32602}`)), "call", check.Warn},
		{"answers what was cancelled", fixture("late-answers", "after=2s"), calls(call("echo", `{"text":"x"}`)), "cancel", check.Warn},
		{"slow in its first call only", fixture("late-answers", "after=3s", "times=1"), calls(call("echo", `{"text":"x"}`)), "cancel", check.NotTried},
		{"deaf while it works", fixture("blocks", "after=6s"), func(o *check.Options) {
			o.Concurrency = 1
			o.Answer = time.Second
			calls(call("echo", `{"text":"x"}`))(o)
		}, "cancel", check.Fail},
		{"starts once", fixture("starts-once", "file="+t.TempDir()+"/lock"), func(o *check.Options) { o.Connect = 3 * time.Second }, "start", check.Fail},
		{"ignores the end of its input", fixture("ignores-eof"), impatient, "shutdown", check.Fail},
		{"ignores SIGTERM", fixture("ignores-signals"), impatient, "signal", check.Warn},
		{"a child of its own session", fixture("own-session"), nil, "children", check.Fail},
		{"a grandchild", fixture("grandchild"), nil, "children", check.Fail},
	}
	results := together(len(cases), func(i int) check.Server { return one(t, cases[i].spec, cases[i].change) })
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := <-results[i]
			if f := finding(t, s, c.id); f.Verdict != c.verdict {
				t.Errorf("%s: %s: %s; all:%s", c.id, f.Verdict, f.Text, findingsText(s))
			}
		})
	}
}
