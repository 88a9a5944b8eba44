package sent

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Of real processes a cancellation that comes seconds after the answer is no breach: on a busy machine a client took 3 s to read
// an answer of one huge line, and gave up in the middle of it.
func TestACancellationCrossesALongAnswer(t *testing.T) {
	for _, c := range []struct {
		name      string
		crossTime time.Duration
		after     string
		breach    bool
	}{
		{"virtual, soon", virtualCrossTime, "500ms", false},
		{"virtual, late", virtualCrossTime, "3s", true},
		{"real, as a busy machine is", realCrossTime, "3s", false},
		{"real, late", realCrossTime, "1m", true},
	} {
		violations := playStoryWithin(t, story{c.name, stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{}}
			wait ` + c.after + `
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""}, c.crossTime)
		if found := len(violations) > 0; found != c.breach {
			t.Errorf("%s: %q", c.name, violations)
		}
	}
}

// TestACancellationWaitsForTheServer: a server that reads nothing may still send what it had under way, and the client's cancellation comes
// when it reads again, seconds after the answer (seed 20004258: a stopped server over HTTP+SSE, whose answer dripped on). What came before
// the pause, or comes later, is no excuse.
func TestACancellationWaitsForTheServer(t *testing.T) {
	const (
		call   = `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}` + "\n"
		answer = `< {"jsonrpc":"2.0","id":2,"result":{}}` + "\n"
		cancel = `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`
	)
	for _, c := range []struct {
		name   string
		kind   messages.TransportKind
		story  string
		breach bool
	}{
		{"the answer in the pause", messages.SSE, "stop\nwait 2s\n" + answer + "wait 3s\nruns\n" + cancel, false},
		{"the answer on its way into the pause", messages.SSE, answer + "wait 500ms\nstop\nwait 5s\nruns\nwait 100ms\n" + cancel, false},
		{"a deaf server", messages.SSE, "deaf\nwait 2s\n" + answer + "wait 3s\nreads\n" + cancel, false},
		{"two pauses, one in the other", messages.SSE, "stop\nwait 1s\ndeaf\n" + answer + "wait 2s\nruns\nwait 3s\nreads\n" + cancel, false},
		{"the answer long before the pause", messages.SSE, answer + "wait 2s\nstop\nwait 1s\nruns\n" + cancel, true},
		{"the cancellation long after the pause", messages.SSE, "stop\nwait 2s\n" + answer + "runs\nwait 2s\n" + cancel, true},
		{"behind a cancellation that had its time in the pause", messages.SSE, "stop\nwait 2s\n" + answer + "wait 3s\n" + cancel, false},
		{"the answer long before the pause it is read in", messages.SSE, answer + "wait 2s\nstop\nwait 1s\n" + cancel, true},
		{"a pipe takes it in the pause", messages.Stdio, "stop\n" + answer + "wait 2s\n" + cancel, true},
		{"between two pauses", messages.SSE, "stop\nwait 1s\nruns\nwait 1s\ndeaf\nwait 1s\nreads\nwait 500ms\n" + answer + "wait 2s\n" + cancel, true},
	} {
		violations := playStory(t, story{c.name, scenario.Server{Name: "s", Kind: c.kind}, begun + call + c.story, ""})
		if found := len(violations) > 0; found != c.breach {
			t.Errorf("%s: %q", c.name, violations)
		}
	}
}

// TestACancellationOvertakesItsRequest: over HTTP each message is a request of its own, so that among real processes a cancellation may
// come first. In one stream of lines, and in virtual time, it cannot.
func TestACancellationOvertakesItsRequest(t *testing.T) {
	sse := scenario.Server{Name: "s", Kind: messages.SSE}
	for _, c := range []struct {
		name      string
		server    scenario.Server
		crossTime time.Duration
		breach    bool
	}{
		{"SSE, real", sse, realCrossTime, false},
		{"SSE, virtual", sse, virtualCrossTime, true},
		{"stdio, real", stdio, realCrossTime, true},
	} {
		violations := playStoryWithin(t, story{c.name, c.server, begun + `
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":28}}`, ""}, c.crossTime)
		if found := len(violations) > 0; found != c.breach {
			t.Errorf("%s: %q", c.name, violations)
		}
	}
}

// TestTheEndOfASessionOvertakesAMessage: over HTTP the end of a session is a request of its own, too, so that among real processes a
// message that was sent before it may come after it, and not much later.
func TestTheEndOfASessionOvertakesAMessage(t *testing.T) {
	web := scenario.Server{Name: "s", Kind: messages.HTTP}
	for _, c := range []struct {
		name      string
		server    scenario.Server
		crossTime time.Duration
		after     string
		breach    bool
	}{
		{"HTTP, real", web, realCrossTime, "1s", false},
		{"HTTP, real, late", web, realCrossTime, "1m", true},
		{"HTTP, virtual", web, virtualCrossTime, "1ms", true},
		{"stdio, real", stdio, realCrossTime, "1ms", true},
	} {
		violations := playStoryWithin(t, story{c.name, c.server, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}
			close
			wait ` + c.after + `
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""}, c.crossTime)
		if found := strings.Contains(strings.Join(violations, "; "), "the client had closed"); found != c.breach {
			t.Errorf("%s: %q", c.name, violations)
		}
	}
}

// TestAMessageThatCrossesTheEnd: what a client sent before it knew of the server's end is no breach, although it is read afterwards. A
// process that ended was taken for one that had not answered initialize.
func TestAMessageThatCrossesTheEnd(t *testing.T) {
	for name, end := range map[string]func(peer.Machine){
		"killed": func(m peer.Machine) { m.Killed(time.Second, 1) },
		"exited": func(m peer.Machine) { m.(*machine).observeActions(time.Second, []peer.Action{peer.Exit{Conn: 1}}) },
	} {
		m := NewRealMachine(peer.Config{Server: scenario.Server{Name: "s", Kind: messages.Stdio}})
		m.Open(0, 1)
		end(m)
		for _, a := range m.Receive(time.Second, 1, []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read"}}`), nil) {
			if note, ok := a.(peer.Note); ok && note.Event.Kind == history.Violation {
				t.Errorf("%s: %s", name, note.Event.Text)
			}
		}
	}
}
