package score

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

var callCases = []Case{
	{Name: "a call without an answer", Over: "stdio", Faults: []string{"R1"}, play: hungCall,
		Story: "A call is never answered. It must end at its deadline, be cancelled, and cost nothing but itself."},
	{Name: "progress for ever", Over: "stdio", Faults: []string{"R3"}, play: progress,
		Story: "A call reports progress and never ends."},
	{Name: "a late answer", Over: "stdio", Faults: []string{"P11"}, play: lateAnswer,
		Story: "The answer to a call comes after its deadline, while the next call waits for its own."},
	{Name: "answers that nobody asked for", Over: "stdio", Faults: []string{"P11"}, play: oddAnswers,
		Story: "Every call is answered twice, and ids are answered that were never used."},
	{Name: "odd lines", Over: "stdio", Faults: []string{"P6", "P11"}, play: oddLines,
		Story: "Between its answers a server sends JSON that is no message, empty lines and batches."},
	{Name: "death in the middle of a call", Over: "stdio", Faults: []string{"R13"}, play: dieMidCall,
		Story: "The process exits with a call in its hands. Nobody knows whether it ran: it must not be sent again."},
	{Name: "half an answer", Over: "stdio", Faults: []string{"R13"}, play: halfLine,
		Story: "The process writes half of an answer and exits."},
	{Name: "a server that stops reading", Over: "stdio", Faults: []string{"R1"}, play: stopsReading,
		Story: "After its list a server never reads again, and the pipe to it fills."},
	{Name: "failures of tools", Over: "stdio", Faults: []string{"R12"}, play: toolErrors,
		Story: "Tools answer isError and JSON-RPC errors. That is no reason to reconnect."},
	{Name: "an ordinary day of 2026", Over: "stdio, modern", play: modernDay,
		Story: "A server that speaks only 2026-07-28 is connected, listed and called."},
	{Name: "odd answers of 2026", Over: "stdio, modern", Faults: []string{"R15", "P11"}, play: modernOdd,
		Story: "A server of 2026-07-28 answers twice, the second time with an error."},
	{Name: "subscriptions that end at once", Over: "stdio, modern", Faults: []string{"R15"}, play: modernFlaps,
		Story: "A server of 2026-07-28 agrees to each subscription and ends it. It must not be asked without a pause."},
}

func hungCall(a *arena) {
	p := a.server("hangs-on-call")
	a.connect(p)
	got := a.call(p, "echo", 2*time.Second, map[string]any{"text": "x"})
	a.must(!got.OK && !got.hung && got.took < 7*time.Second, "the call ends at its deadline of 2s", "%s after %s", got.why(),
		got.took.Round(time.Second))
	told := a.within(5*time.Second, func() bool { return a.count(p, "notifications/cancelled") > 0 })
	a.must(told, "the server is told that the call was cancelled", "it is not")
	list := a.list(p)
	a.must(list.OK && len(list.Tools) > 0, "the server answers other requests afterwards", "%s", list.why())
	a.must(len(a.starts(p)) == 1, "it is not restarted", "%d starts", len(a.starts(p)))
}

func progress(a *arena) {
	p := a.server("progress-forever")
	a.connect(p)
	got := a.call(p, "echo", 3*time.Second, map[string]any{"text": "x"})
	a.must(!got.OK && !got.hung, "the call ends", "%s", got.why())
	a.must(!got.hung && got.took < 10*time.Second, "it ends at its deadline of 3s", "it took %s", got.took.Round(time.Second))
}

func lateAnswer(a *arena) {
	p := a.server("late-answers", "after=3s")
	a.connect(p)
	got := a.call(p, "echo", time.Second, map[string]any{"text": "first"})
	a.must(!got.OK && !got.hung, "the first call ends at its deadline", "%s", got.why())
	second, ok := a.echoes(p, "second")
	a.must(ok, "the second call gets its own answer", "%q; %s", textOf(second), second.why())
	a.must(len(a.starts(p)) == 1, "the server is not restarted", "it is")
}

func oddAnswers(a *arena) {
	p := a.server("odd-answers")
	a.connect(p)
	a.fiveCalls(p)
}

// fiveCalls are points for right answers and for one process.
func (a *arena) fiveCalls(p *peer) {
	right := 0
	for i := range 5 {
		if _, ok := a.echoes(p, fmt.Sprintf("call %d", i)); ok {
			right++
		}
	}
	a.must(right == 5, "five calls get their own answers", "%d do", right)
	a.must(len(a.starts(p)) == 1, "the server is not restarted", "it is")
}

func oddLines(a *arena) {
	p := a.server("odd-lines")
	a.connects(p)
	a.fiveCalls(p)
}

// written counts the calls of a tool that reached a server, over all of its processes.
func (a *arena) written(p *peer, text string) (n int) {
	for _, e := range a.record(p) {
		if e.Method == "tools/call" && strings.Contains(e.Params, text) {
			n++
		}
	}
	return n
}

func dieMidCall(a *arena) {
	p := a.server("dies-mid-call")
	a.connect(p)
	got := a.call(p, "append", 30*time.Second, map[string]any{"file": a.dir + "/never", "line": "only-once"})
	a.must(!got.OK && !got.hung, "the call ends with an error", "%s", got.why())
	a.must(got.took < 10*time.Second, "it ends when the process does", "it took %s", got.took.Round(time.Second))
	a.pause(5 * time.Second)
	n := a.written(p, "only-once")
	a.must(n == 1, "the call was sent once", "%d times", n)
}

func halfLine(a *arena) {
	p := a.server("half-line")
	a.connect(p)
	got := a.call(p, "echo", 30*time.Second, map[string]any{"text": "x"})
	a.must(!got.OK && !got.hung, "the call ends with an error", "%s", got.why())
	a.must(got.took < 10*time.Second, "it ends when the process does", "it took %s", got.took.Round(time.Second))
}

func stopsReading(a *arena) {
	p, other := a.server("stops-reading"), a.server("good")
	a.connect(other)
	a.connect(p)
	a.list(p)
	waiting := a.calling(p, "echo", 3*time.Second, map[string]any{"text": strings.Repeat("x", 1<<20)})
	_, ok := a.echoes(other, "x")
	a.must(ok, "the other server is called meanwhile", "no answer")
	got := <-waiting
	a.must(!got.OK && !got.hung && got.took < 10*time.Second, "the call ends at its deadline of 3s", "%s after %s", got.why(),
		got.took.Round(time.Second))
	closed := a.close(p)
	a.must(!closed.hung, "close ends", "%s", closed.why())
	a.endsSoon(p)
}

func toolErrors(a *arena) {
	p := a.server("good")
	a.connect(p)
	failed := a.call(p, "fail", enough, map[string]any{"text": "no such file"})
	var r struct {
		IsError bool `json:"isError"`
	}
	a.must(failed.OK && json.Unmarshal(failed.Result, &r) == nil && r.IsError, "a tool's failure is a result", "%s", failed.why())
	refused := a.call(p, "refuse", enough, map[string]any{"code": -32603})
	a.must(!refused.OK && !refused.hung, "a refusal is an error", "%s", refused.why())
	_, ok := a.echoes(p, "x")
	a.must(ok, "the next call is answered", "no answer")
	a.must(len(a.starts(p)) == 1 && a.count(p, "initialize") == 1, "nothing is reconnected", "%d starts, %d handshakes",
		len(a.starts(p)), a.count(p, "initialize"))
	a.must(a.written(p, `"refuse"`) == 1, "the refused call is not repeated", "%d times", a.written(p, `"refuse"`))
}

func modernDay(a *arena) {
	p := a.server("modern")
	a.connects(p)
	list := a.list(p)
	a.must(len(list.Tools) >= len(servers.GoodTools()), "its tools are listed", "%d tools; %s", len(list.Tools), list.why())
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}

func modernOdd(a *arena) {
	p := a.server("modern-odd-answers")
	a.connect(p)
	a.fiveCalls(p)
}

func modernFlaps(a *arena) {
	p := a.server("modern-listen-flaps")
	a.connects(p)
	a.pause(5 * time.Second)
	n := a.count(p, "subscriptions/listen")
	a.must(n <= 20, "it is asked for subscriptions at most 20 times in 5s", "%d times", n)
	_, ok := a.echoes(p, "x")
	a.must(ok, "a call is answered", "no answer")
}
