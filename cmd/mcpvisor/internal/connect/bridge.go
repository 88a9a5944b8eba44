package connect

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A bridge carries the messages of one agent to the daemon and back, and survives the daemon. It is a value without a clock and
// without I/O: every method takes what has happened and returns the lines that are to be written. Its owner calls one at a time.
//
// It has two connections for a time if the agent's roots have led to another directory (former.go): what runs ends on the one of before.
//
// What it remembers is what a new daemon must be told: the agent's handshake, its log level, its subscriptions, and the requests
// that have no answer yet. A request that only reads is asked a second time; any other may have run, and is answered as unknown.
type bridge struct {
	// epoch counts the connections to daemons.
	epoch int
	phase phase
	// handshake is the agent's request initialize, answered says that it has a result, of which capabilities is a part, and ready
	// that the agent has sent notifications/initialized. An agent of the modern era has none.
	handshake       []byte
	answered, ready bool
	capabilities    []byte
	// level is the agent's last request of a log level, and subscribed are its requests of subscriptions by their URI.
	level      []byte
	subscribed map[string][]byte
	// open holds the requests of the agent without an answer, in their order.
	open []openRequest
	// waiting holds notifications and answers of the agent that wait for a daemon.
	waiting [][]byte
	// replayed counts the requests of the bridge itself that the daemon has not answered.
	replayed int
	// asked holds the ids of the daemon's requests that the agent has not answered, as the daemon wrote them.
	asked map[string]bool
	// former is the connection that was left with requests, so that these can end there; nil if there is none.
	former *formerConn
	// roots says where the agent works.
	roots rootsQuestion
}

// phase says what a bridge may send to the daemon.
type phase int

const (
	// disconnected: nothing can be sent.
	disconnected phase = iota
	// replaying: the daemon is told what the one before knew, and nothing else is sent.
	replaying
	// connected: everything is passed on.
	connected
	// draining: the daemon answers what it has got, and gets nothing more.
	draining
)

// openRequest is a request of the agent.
type openRequest struct {
	id     string
	method string
	line   []byte
	// epoch is that of the connection which has it, the present one or the former; 0 if none does.
	epoch int
}

// lines are the messages that the caller must write after a step of the bridge.
type lines struct {
	toAgent, toDaemon, toFormer [][]byte
	// rootsAsked says that the agent was asked for its roots, and may be asked again after a pause.
	rootsAsked bool
	// rootsKnown says that it has answered; directories are those of its roots, which may not be there.
	rootsKnown  bool
	directories []string
}

// addLines appends what another step wants.
func (l *lines) addLines(more lines) {
	l.toAgent, l.toDaemon = append(l.toAgent, more.toAgent...), append(l.toDaemon, more.toDaemon...)
	l.toFormer = append(l.toFormer, more.toFormer...)
	l.rootsAsked = l.rootsAsked || more.rootsAsked
	if more.rootsKnown {
		l.rootsKnown, l.directories = true, more.directories
	}
}

// replayPrefix begins the ids of the bridge's own requests.
const replayPrefix = "mcpvisor-connect-"

// readOnly are the requests that change nothing, or the same thing once more, so that they can be asked twice.
var readOnly = []string{"initialize", "server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "resources/read",
	"prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
	"subscriptions/listen", "tasks/get", "tasks/list", "tasks/result"}

// fromAgent takes a line of the agent; an empty one stands for one that was too long to be read.
func (b *bridge) fromAgent(line []byte) (out lines) {
	e := readEnvelope(line)
	if !utf8.Valid(line) {
		e = envelope{} // the daemon does not read its id
	}
	method := e.methodName()
	if len(line) == 0 || len(line) > maxMessage {
		problem := tooLargeAnswer(e.id)
		if !e.isAnswer() {
			if method == "" || e.isRequest() {
				out.toAgent = append(out.toAgent, problem)
			}
			return out
		}
		line = problem // who has asked learns that there is no answer
	}
	switch {
	case e.isRequest():
		r := openRequest{id: string(e.id), method: method, line: line}
		b.rememberRequest(method, e, line)
		if b.phase == connected {
			r.epoch = b.epoch
			out.toDaemon = append(out.toDaemon, line)
		}
		b.open = append(b.open, r)
		return out
	case method == "notifications/initialized":
		b.ready = true
	case method == "notifications/cancelled":
		epoch, known := b.cancelRequest(string(bytes.TrimSpace(rawjson.Member(e.params, "requestId"))))
		switch {
		case known && epoch == 0:
			return out // the daemon has never heard of it
		case known && epoch != b.epoch:
			out.toFormer = append(out.toFormer, line)
			return out
		}
	case e.isAnswer():
		if n, ours := rootsNumber(e.id); ours {
			return b.rootsAnswered(n, line)
		}
		return b.answerQuestion(e, line)
	}
	switch {
	case b.phase == connected:
		out.toDaemon = append(out.toDaemon, line)
	case method != "notifications/initialized": // a new daemon learns by the replay that the agent is ready
		b.waiting = append(b.waiting, line)
	}
	switch method {
	case "notifications/initialized":
		out.addLines(b.askFirstRoots())
	case "notifications/roots/list_changed":
		out.addLines(b.askRootsAgain())
	}
	return out
}

// rememberRequest keeps what a later daemon must be told.
func (b *bridge) rememberRequest(method string, e envelope, line []byte) {
	uri := string(bytes.TrimSpace(rawjson.Member(e.params, "uri")))
	switch method {
	case "initialize":
		if b.handshake == nil {
			b.handshake = line
		}
	case "logging/setLevel":
		b.level = line
	case "resources/subscribe":
		if b.subscribed == nil {
			b.subscribed = map[string][]byte{}
		}
		b.subscribed[uri] = line
	case "resources/unsubscribe":
		delete(b.subscribed, uri)
	}
}

// cancelRequest forgets a request that the agent takes back, and returns the epoch of the connection that has it.
func (b *bridge) cancelRequest(id string) (epoch int, known bool) {
	i := slices.IndexFunc(b.open, func(r openRequest) bool { return r.id == id })
	if i < 0 {
		return 0, false
	}
	epoch = b.open[i].epoch
	b.open = slices.Delete(b.open, i, i+1)
	return epoch, true
}

// answerQuestion passes the agent's answer on to the connection on which it was asked; one to a connection of before is dropped.
func (b *bridge) answerQuestion(e envelope, line []byte) (out lines) {
	text, _ := rawjson.Text(e.id)
	if id, ok := cutAsked(b.asked, b.epoch, text); ok {
		out.toDaemon = append(out.toDaemon, withID(line, id))
	} else if b.former != nil {
		if id, ok := cutAsked(b.former.asked, b.former.epoch, text); ok {
			out.toFormer = append(out.toFormer, withID(line, id))
		}
	}
	return out
}

// cutAsked returns the id by which a connection knows a question that the agent answers, and forgets it.
func cutAsked(asked map[string]bool, epoch int, text string) ([]byte, bool) {
	id, ours := strings.CutPrefix(text, fmt.Sprintf("%d:", epoch))
	if !ours || !asked[id] {
		return nil, false
	}
	delete(asked, id)
	return []byte(id), true
}

// fromDaemon takes a line of the daemon.
func (b *bridge) fromDaemon(line []byte) (out lines) {
	e := readEnvelope(line)
	switch method := e.methodName(); {
	case e.isRequest():
		if b.asked == nil {
			b.asked = map[string]bool{}
		}
		b.asked[string(e.id)] = true
		out.toAgent = append(out.toAgent, withID(line, questionID(b.epoch, e.id)))
		return out
	case method == "notifications/cancelled":
		if id := bytes.TrimSpace(rawjson.Member(e.params, "requestId")); b.asked[string(id)] {
			delete(b.asked, string(id))
			out.toAgent = append(out.toAgent, cancelNotice(questionID(b.epoch, id)))
			return out
		}
	case method == "" && e.id != nil:
		if text, ok := rawjson.Text(e.id); ok && strings.HasPrefix(text, replayPrefix) {
			return b.replayAnswered()
		}
		if b.finishRequest(string(e.id), line) == "initialize" {
			out.toAgent = append(out.toAgent, b.withAllCapabilities(line))
			out.addLines(b.askFirstRoots())
			return out
		}
	}
	out.toAgent = append(out.toAgent, line)
	return out
}

// finishRequest forgets a request that has its answer, and returns its method.
func (b *bridge) finishRequest(id string, line []byte) (method string) {
	i := slices.IndexFunc(b.open, func(r openRequest) bool { return r.id == id })
	if i < 0 {
		return ""
	}
	if method = b.open[i].method; method == "initialize" {
		if result := rawjson.Member(line, "result"); rawjson.IsObject(result) {
			b.answered, b.capabilities = true, rawjson.Member(result, "capabilities")
		} else {
			b.handshake = nil // the agent may try once more
		}
	}
	b.open = slices.Delete(b.open, i, i+1)
	return method
}

// beginDaemon begins with a new daemon: with the handshake if the agent has had one, else with what waits.
func (b *bridge) beginDaemon() (out lines) {
	b.epoch++
	b.asked = nil
	if !b.answered {
		b.phase = connected
		return b.sendWaiting()
	}
	b.phase, b.replayed = replaying, 0
	out.toDaemon = append(out.toDaemon, b.replayRequest(b.handshake))
	return out
}

// replayRequest returns a request of the agent as one of the bridge itself.
func (b *bridge) replayRequest(line []byte) []byte {
	b.replayed++
	return withID(line, rawjson.AppendText(nil, replayPrefix+strconv.Itoa(b.epoch)+"-"+strconv.Itoa(b.replayed)))
}

// replayAnswered is called for each answer to a request of the bridge. The first one is that of the handshake; after it follow the
// rest of what the daemon must know and what has waited. The lists may be others than those of the daemon before.
func (b *bridge) replayAnswered() (out lines) {
	if b.phase != replaying {
		return out // an answer to a level or a subscription, which nobody has asked for
	}
	b.phase = connected
	if b.ready {
		out.toDaemon = append(out.toDaemon, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
	if b.level != nil && !b.isOpen(b.level) {
		out.toDaemon = append(out.toDaemon, b.replayRequest(b.level))
	}
	for _, uri := range sortedKeys(b.subscribed) {
		if line := b.subscribed[uri]; !b.isOpen(line) {
			out.toDaemon = append(out.toDaemon, b.replayRequest(line))
		}
	}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if b.ready && string(rawjson.Member(rawjson.Member(b.capabilities, kind), "listChanged")) == "true" {
			out.toAgent = append(out.toAgent, []byte(`{"jsonrpc":"2.0","method":"notifications/`+kind+`/list_changed"}`))
		}
	}
	out.addLines(b.sendWaiting())
	return out
}

// isOpen reports whether a request has no answer, and is therefore sent by itself.
func (b *bridge) isOpen(line []byte) bool {
	return slices.ContainsFunc(b.open, func(r openRequest) bool { return bytes.Equal(r.line, line) })
}

// stopSending is called when the daemon wants nothing more: it is told where the end is, and what comes waits for the next daemon.
func (b *bridge) stopSending(confirm []byte) (out lines) {
	if b.phase == disconnected || b.phase == draining {
		return out
	}
	b.phase = draining
	out.toDaemon = append(out.toDaemon, confirm)
	return out
}

// waitingBytes returns the bytes that wait for a daemon or its answer.
func (b *bridge) waitingBytes() (n int) {
	for _, r := range b.open {
		n += len(r.line)
	}
	for _, line := range b.waiting {
		n += len(line)
	}
	return n
}

// sendWaiting sends the requests and notifications that wait for a daemon.
func (b *bridge) sendWaiting() (out lines) {
	for i := range b.open {
		if b.open[i].epoch == 0 {
			b.open[i].epoch = b.epoch
			out.toDaemon = append(out.toDaemon, b.open[i].line)
			// Without an answer to the handshake there was no replay, and the agent may have gone on.
			if b.open[i].method == "initialize" && b.ready {
				out.toDaemon = append(out.toDaemon, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			}
		}
	}
	out.toDaemon = append(out.toDaemon, b.waiting...)
	b.waiting = nil
	return out
}

// loseDaemon is called when the daemon has gone. Requests that it had are asked a second time if they only read; the others
// are answered: they may have run. Questions of the daemon are taken back.
func (b *bridge) loseDaemon() (out lines) {
	if b.phase == disconnected {
		return out
	}
	b.phase = disconnected
	out = b.loseConn(b.epoch, b.asked)
	b.asked = nil
	return out
}

// loseConn is called when a connection has gone that had these questions.
func (b *bridge) loseConn(epoch int, asked map[string]bool) (out lines) {
	b.open = slices.DeleteFunc(b.open, func(r openRequest) bool {
		if r.epoch == epoch && !slices.Contains(readOnly, r.method) {
			out.toAgent = append(out.toAgent, unknownAnswer(r))
			return true
		}
		return false
	})
	for i := range b.open {
		if b.open[i].epoch == epoch {
			b.open[i].epoch = 0
		}
	}
	for _, id := range sortedKeys(asked) {
		out.toAgent = append(out.toAgent, cancelNotice(questionID(epoch, []byte(id))))
	}
	return out
}

// refuseWaiting answers what waits for a daemon that cannot be had: nothing of it was sent.
func (b *bridge) refuseWaiting(reason string) (out lines) {
	b.open = slices.DeleteFunc(b.open, func(r openRequest) bool {
		if r.epoch != 0 {
			return false
		}
		out.toAgent = append(out.toAgent, refusedAnswer(r, reason))
		if r.method == "initialize" {
			b.handshake = nil
		}
		return true
	})
	b.waiting = nil
	return out
}

// questionID returns the id under which the agent knows a question that came on a connection: daemons count anew, and an answer to one
// must not reach the next.
func questionID(epoch int, id []byte) []byte {
	return rawjson.AppendText(nil, fmt.Sprintf("%d:%s", epoch, id))
}

// sortedKeys returns the keys of a map in their order, so that a replay is the same each time.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
