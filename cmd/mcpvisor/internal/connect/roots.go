package connect

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// This file asks an agent of the legacy era where it works: its roots. An agent of the modern era is asked nothing outside of a request.
//
// 2025-11-25: "Servers can request the list of roots from supporting clients". Nothing waits for the answer, which may never come.

// rootsQuestion is the state of the bridge's question for the agent's roots.
type rootsQuestion struct {
	// follow says that the roots choose the directory: none was given by hand.
	follow bool
	// asked is the number of the newest question; an answer to an older one does not count.
	asked int
	// paused says that the agent was asked a moment ago, and askAgain that its roots have changed since.
	paused, askAgain bool
}

const (
	// rootsPrefix begins the ids of the questions.
	rootsPrefix = replayPrefix + "roots-"
	// maxRoots bounds the roots that are looked at, and maxRootURI each of them in bytes.
	maxRoots   = 64
	maxRootURI = 4096
)

// hasRoots reports whether the directory follows the roots of this agent.
func (b *bridge) hasRoots() bool {
	capabilities := rawjson.Member(rawjson.Member(b.handshake, "params"), "capabilities")
	return b.roots.follow && rawjson.IsObject(rawjson.Member(capabilities, "roots"))
}

// askFirstRoots asks for the roots when the agent is ready for requests.
//
// 2025-11-25: "The server SHOULD NOT send requests other than pings and logging before receiving the initialized notification."
func (b *bridge) askFirstRoots() (out lines) {
	if b.answered && b.ready && b.roots.asked == 0 && b.hasRoots() {
		return b.askRoots()
	}
	return out
}

// askRootsAgain asks for roots that have changed: at once, or after the pause.
func (b *bridge) askRootsAgain() (out lines) {
	switch {
	case b.roots.asked == 0: // the first question is still to come, or none is
	case b.roots.paused:
		b.roots.askAgain = true
	default:
		return b.askRoots()
	}
	return out
}

// endRootsPause is called some time after each question.
func (b *bridge) endRootsPause() (out lines) {
	b.roots.paused = false
	if b.roots.askAgain {
		return b.askRoots()
	}
	return out
}

// askRoots asks.
func (b *bridge) askRoots() (out lines) {
	b.roots.asked++
	b.roots.paused, b.roots.askAgain = true, false
	question := rawjson.AppendText([]byte(`{"jsonrpc":"2.0","id":`), rootsPrefix+strconv.Itoa(b.roots.asked))
	out.toAgent = append(out.toAgent, append(question, `,"method":"roots/list"}`...))
	out.rootsAsked = true
	return out
}

// rootsNumber returns the number of the question that a message with this id answers.
func rootsNumber(id []byte) (n int, ours bool) {
	text, _ := rawjson.Text(id)
	number, ours := strings.CutPrefix(text, rootsPrefix)
	if !ours {
		return 0, false
	}
	n, _ = strconv.Atoi(number) // what is no number is no question
	return n, true
}

// rootsAnswered takes an answer. An error, and what is no list, changes nothing.
func (b *bridge) rootsAnswered(n int, line []byte) (out lines) {
	roots := rawjson.Member(rawjson.Member(line, "result"), "roots")
	if n != b.roots.asked || n == 0 || !rawjson.IsArray(roots) {
		return out
	}
	out.rootsKnown = true
	count := 0
	for a := rawjson.ArrayAt(roots, 0, 0); count < maxRoots && a.Next(); count++ {
		uri := rawjson.Member(a.Skip(), "uri")
		if len(uri) > maxRootURI {
			continue
		}
		if text, ok := rawjson.Text(uri); ok {
			if dir, ok := directoryOf(text); ok {
				out.directories = append(out.directories, dir)
			}
		}
	}
	return out
}

// directoryOf returns the path that a root names on this machine. A root elsewhere has none: vscode-remote:, or a file of another host.
func directoryOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	path := u.Path
	if filepath.Separator == '\\' { // file:///C:/Users
		path = strings.TrimPrefix(path, "/")
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) || strings.Contains(path, "\x00") {
		return "", false
	}
	return filepath.Clean(path), true
}

// allCapabilities is what an agent is told whose roots may lead to other servers: it is told once. taskCapabilities are among it since
// tasksSince, unless the daemon says more of tasks.
const (
	allCapabilities = `"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},` +
		`"completions":{},"logging":{}`
	taskCapabilities = `{"cancel":{},"requests":{"tools":{"call":{}}}}`
	tasksSince       = "2025-11-25"
)

// withAllCapabilities returns the answer to the handshake of an agent whose roots choose the directory. Of servers that have not started
// the gateway says the same.
func (b *bridge) withAllCapabilities(line []byte) []byte {
	result := rawjson.Member(line, "result")
	if !b.answered || !b.hasRoots() || !rawjson.IsObject(result) {
		return line
	}
	b.capabilities = []byte("{" + allCapabilities)
	if version, _ := rawjson.Text(rawjson.Member(result, "protocolVersion")); version >= tasksSince {
		tasks := rawjson.Member(rawjson.Member(result, "capabilities"), "tasks")
		if !rawjson.IsObject(tasks) {
			tasks = []byte(taskCapabilities)
		}
		b.capabilities = append(append(b.capabilities, `,"tasks":`...), tasks...)
	}
	b.capabilities = append(b.capabilities, '}')
	return rawjson.With(line, "result", rawjson.With(result, "capabilities", b.capabilities))
}
