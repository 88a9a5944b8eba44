package score

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// callCases are the cases about calls.
var callCases = []Case{
	{Name: "a call without an answer", Over: "stdio", Faults: []string{"R1"}, Plays: []string{"hang-call"}, play: hungCall,
		Story: "A call is never answered. It must end at its deadline, be cancelled, and cost nothing but itself."},
	{Name: "progress for ever", Over: "stdio", Faults: []string{"R3"}, Plays: []string{"endless-progress"}, play: endlessProgress,
		Story: "A call reports progress and never ends."},
	{Name: "a late answer", Over: "stdio", Faults: []string{"P11"}, Plays: []string{"late-response"}, play: lateAnswer,
		Story: "The answer to a call comes after its deadline, while the next call waits for its own."},
	{Name: "answers that nobody asked for", Over: "stdio", Faults: []string{"P11"}, Plays: []string{"duplicate-response", "unknown-response"}, play: oddAnswers,
		Story: "Every call is answered twice, and ids are answered that were never used."},
	{Name: "odd lines", Over: "stdio", Faults: []string{"P6", "P11"}, Plays: []string{"noise"}, play: oddLines,
		Story: "Between its answers a server sends JSON that is no message, empty lines and batches."},
	{Name: "death in the middle of a call", Over: "stdio", Faults: []string{"R13"}, Plays: []string{"die-mid-call"}, play: dieMidCall,
		Story: "The process exits with a call in its hands. Nobody knows whether it ran: it must not be sent again."},
	{Name: "half an answer", Over: "stdio", Faults: []string{"R13", "P8"}, Plays: []string{"half-line"}, play: halfLine,
		Story: "The process writes half of an answer and exits."},
	{Name: "a server that stops reading", Over: "stdio", Faults: []string{"R1", "L5"}, Plays: []string{"deaf"}, play: stopsReading,
		Story: "After its list a server never reads again, and the pipe to it fills."},
	{Name: "failures of tools", Over: "stdio", Faults: []string{"R12"}, Plays: []string{"tool-error"}, play: toolErrors,
		Story: "Tools answer isError and JSON-RPC errors. That is no reason to reconnect."},
	{Name: "an ordinary day of 2026", Over: "stdio, modern", play: modernDay,
		Story: "A server that speaks only 2026-07-28 is connected, listed and called."},
	{Name: "odd answers of 2026", Over: "stdio, modern", Faults: []string{"R15", "P11"}, Plays: []string{"duplicate-response"}, play: modernOdd,
		Story: "A server of 2026-07-28 answers twice, the second time with an error."},
	{Name: "subscriptions that end at once", Over: "stdio, modern", Faults: []string{"R15"}, Plays: []string{"modern-breach"}, play: modernFlaps,
		Story: "A server of 2026-07-28 agrees to each subscription and ends it. It must not be asked without a pause."},
}

// The server of hungCall takes the call and stays silent. A client without a deadline of its own waits for ever, and one that
// closes the connection to end the call loses the server for all other callers.
func hungCall(a *caseRun) {
	p := a.newServer("hangs-on-call")
	a.connectServer(p)
	got := a.callTool(p, "echo", 2*time.Second, map[string]any{"text": "x"})
	a.scorePoint(!got.OK && !got.hung && got.took < 7*time.Second, "the call ends at its deadline of 2s", "%s after %s", got.errorText(),
		got.took.Round(time.Second))
	// The specification wants notifications/cancelled, so that the server can stop its work.
	notified := a.waitFor(5*time.Second, func() bool { return a.countRequests(p, "notifications/cancelled") > 0 })
	a.scorePoint(notified, "the server is told that the call was cancelled", "it is not")
	list := a.listTools(p)
	a.scorePoint(list.OK && len(list.Tools) > 0, "the server answers other requests afterwards", "%s", list.errorText())
	a.scorePoint(len(a.startTimes(p)) == 1, "it is not restarted", "%d starts", len(a.startTimes(p)))
}

// endlessProgress shows whether progress may extend a call without end: the specification lets it reset a timeout, and asks for
// a maximum all the same.
func endlessProgress(a *caseRun) {
	p := a.newServer("progress-forever")
	a.connectServer(p)
	got := a.callTool(p, "echo", 3*time.Second, map[string]any{"text": "x"})
	a.scorePoint(!got.OK && !got.hung, "the call ends", "%s", got.errorText())
	a.scorePoint(!got.hung && got.took < 10*time.Second, "it ends at its deadline of 3s", "it took %s", got.took.Round(time.Second))
}

// lateAnswer sends the answer of the first call 3 s after it was asked, two seconds after its deadline, when the second call is
// already waiting. A client that does not compare ids gives it to the second caller.
func lateAnswer(a *caseRun) {
	p := a.newServer("late-answers", "after=3s")
	a.connectServer(p)
	got := a.callTool(p, "echo", time.Second, map[string]any{"text": "first"})
	a.scorePoint(!got.OK && !got.hung, "the first call ends at its deadline", "%s", got.errorText())
	second, ok := a.callEcho(p, "second")
	a.scorePoint(ok, "the second call gets its own answer", "%q; %s", textOf(second), second.errorText())
	a.scorePoint(len(a.startTimes(p)) == 1, "the server is not restarted", "it is")
}

// oddAnswers shows what a client does with responses whose id is not, or no longer, open: it should drop them and go on.
func oddAnswers(a *caseRun) {
	p := a.newServer("odd-answers")
	a.connectServer(p)
	a.fiveCalls(p)
}

// fiveCalls gives points for five right answers, and for a single start of the server.
// Calls come one after the other, so that a misplaced answer meets the next caller.
func (a *caseRun) fiveCalls(p *testServer) {
	right := 0
	for i := range 5 {
		if _, ok := a.callEcho(p, fmt.Sprintf("call %d", i)); ok {
			right++
		}
	}
	a.scorePoint(right == 5, "five calls get their own answers", "%d do", right)
	a.scorePoint(len(a.startTimes(p)) == 1, "the server is not restarted", "it is")
}

// oddLines mixes JSON that is no message between the answers. Closing the connection for it would be allowed by the letter of
// JSON-RPC, and costs the user a server that works.
func oddLines(a *caseRun) {
	p := a.newServer("odd-lines")
	a.scoreConnect(p)
	a.fiveCalls(p)
}

// countCalls returns how many calls whose params hold a text reached a server, over all of its processes.
func (a *caseRun) countCalls(p *testServer, text string) (n int) {
	for _, e := range a.readRecord(p) {
		if e.Method == "tools/call" && strings.Contains(e.Params, text) {
			n++
		}
	}
	return n
}

// dieMidCall uses the tool append, which has an effect: a client that repeats the call after the restart has run it twice. The
// limit of 30 s is far above the 10 s that are expected, so that a call which ends by its deadline shows.
func dieMidCall(a *caseRun) {
	p := a.newServer("dies-mid-call")
	a.connectServer(p)
	got := a.callTool(p, "append", 30*time.Second, map[string]any{"file": a.dir + "/never", "line": "only-once"})
	a.scorePoint(!got.OK && !got.hung, "the call ends with an error", "%s", got.errorText())
	a.scorePoint(got.took < 10*time.Second, "it ends when the process does", "it took %s", got.took.Round(time.Second))
	// A client that retries does so within a few seconds.
	a.sleepContext(5 * time.Second)
	n := a.countCalls(p, "only-once")
	a.scorePoint(n == 1, "the call was sent once", "%d times", n)
}

// halfLine leaves the start of an answer in the client's buffer. The client must not take it for a message, nor join it with
// the first line of the next process.
func halfLine(a *caseRun) {
	p := a.newServer("half-line")
	a.connectServer(p)
	got := a.callTool(p, "echo", 30*time.Second, map[string]any{"text": "x"})
	a.scorePoint(!got.OK && !got.hung, "the call ends with an error", "%s", got.errorText())
	a.scorePoint(got.took < 10*time.Second, "it ends when the process does", "it took %s", got.took.Round(time.Second))
}

// stopsReading fills the pipe to a server. A client that writes while it holds a lock for all servers, or in its only thread,
// stands still for the other server, too.
func stopsReading(a *caseRun) {
	p, other := a.newServer("stops-reading"), a.newServer("good")
	a.connectServer(other)
	a.connectServer(p)
	a.listTools(p)
	// 1 MiB exceeds the buffer of the pipe, so that the write blocks.
	waiting := a.beginCall(p, "echo", 3*time.Second, map[string]any{"text": strings.Repeat("x", 1<<20)})
	_, ok := a.callEcho(other, "x")
	a.scorePoint(ok, "the other server is called meanwhile", "no answer")
	got := <-waiting
	a.scorePoint(!got.OK && !got.hung && got.took < 10*time.Second, "the call ends at its deadline of 3s", "%s after %s", got.errorText(),
		got.took.Round(time.Second))
	closed := a.closeServer(p)
	a.scorePoint(!closed.hung, "close ends", "%s", closed.errorText())
	a.scoreEnd(p)
}

// toolErrors tells apart what the protocol tells apart: isError is a result that the model shall see, a JSON-RPC error is a
// refusal. Neither says anything about the connection.
func toolErrors(a *caseRun) {
	p := a.newServer("good")
	a.connectServer(p)
	failed := a.callTool(p, "fail", ampleTime, map[string]any{"text": "no such file"})
	var r struct {
		IsError bool `json:"isError"`
	}
	a.scorePoint(failed.OK && json.Unmarshal(failed.Result, &r) == nil && r.IsError, "a tool's failure is a result", "%s", failed.errorText())
	refused := a.callTool(p, "refuse", ampleTime, map[string]any{"code": -32603})
	a.scorePoint(!refused.OK && !refused.hung, "a refusal is an error", "%s", refused.errorText())
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "the next call is answered", "no answer")
	a.scorePoint(len(a.startTimes(p)) == 1 && a.countRequests(p, "initialize") == 1, "nothing is reconnected", "%d starts, %d handshakes",
		len(a.startTimes(p)), a.countRequests(p, "initialize"))
	a.scorePoint(a.countCalls(p, `"refuse"`) == 1, "the refused call is not repeated", "%d times", a.countCalls(p, `"refuse"`))
}

// modernDay has no initialize to fall back to: a client that speaks only the legacy era gets no point here, and none is counted
// against it elsewhere.
func modernDay(a *caseRun) {
	p := a.newServer("modern")
	a.scoreConnect(p)
	list := a.listTools(p)
	a.scorePoint(len(list.Tools) >= len(servers.GoodTools()), "its tools are listed", "%d tools; %s", len(list.Tools), list.errorText())
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}

// The second answer of modernOdd is an error with the id of an answered request, so that a client which replaces results shows
// it.
func modernOdd(a *caseRun) {
	p := a.newServer("modern-odd-answers")
	a.connectServer(p)
	a.fiveCalls(p)
}

// modernFlaps bounds the requests at four a second: a client that opens the next subscription at the end of the last one has
// thousands.
func modernFlaps(a *caseRun) {
	p := a.newServer("modern-listen-flaps")
	a.scoreConnect(p)
	a.sleepContext(5 * time.Second)
	n := a.countRequests(p, "subscriptions/listen")
	a.scorePoint(n <= 20, "it is asked for subscriptions at most 20 times in 5s", "%d times", n)
	_, ok := a.callEcho(p, "x")
	a.scorePoint(ok, "a call is answered", "no answer")
}
