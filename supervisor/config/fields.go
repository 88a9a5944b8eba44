package config

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// types are the words for a transport. An empty kind is a hint only.
var types = map[string]messages.TransportKind{
	"stdio": messages.Stdio, "local": messages.Stdio,
	"http": messages.HTTP, "streamable-http": messages.HTTP, "streamableHttp": messages.HTTP,
	"streamable_http": messages.HTTP, "sse": messages.SSE, "remote": "",
	"sdk": messages.SDK, "ws": messages.WebSocket, "websocket": messages.WebSocket,
	"claudeai-proxy": messages.ClaudeAIProxy,
}

const knownTypes = "stdio, http (streamable-http), sse, websocket (ws), sdk, claudeai-proxy"

func readType(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	kind, ok := types[word]
	switch {
	case !ok:
		fix := "known are " + knownTypes
		if near := nearestKey(word, []string{"stdio", "http", "streamable-http", "sse", "sdk", "websocket", "ws",
			"claudeai-proxy", "local", "remote"}); near != "" {
			fix = "did you mean " + near + "? Known are " + knownTypes
		}
		r.addProblem(r.posOf(v.Value), v.key, "unknown type "+quoteShort(messages.Line(word, 40)), fix)
	case kind == "":
		e.remote = true
	case e.Spec.Type != "" && e.Spec.Type != kind:
		r.addProblem(r.posOf(v.Value), v.key, "it says "+word+", and another key says "+string(e.Spec.Type), "remove one")
	default:
		e.Spec.Type = kind
	}
	if e.remote && (e.Spec.Type == messages.Stdio || e.Spec.Type == messages.SDK) {
		r.addProblem(r.posOf(v.Value), v.key, "one key says remote, another "+string(e.Spec.Type), "remove one")
	}
}

// readCommand reads a program, or a program with its arguments as a list.
func readCommand(r *reader, e *Entry, v value) {
	if v.Value.Value.Kind() != '[' {
		r.readText(v, &e.Spec.Command)
		return
	}
	words, ok := r.readList(v, "", r.readLenient)
	switch {
	case !ok:
	case len(words) == 0:
		r.addProblem(r.posOf(v.Value), v.key, "the list is empty", `write ["program", "argument"]`)
	default:
		e.Spec.Command, e.Spec.Args = words[0], words[1:]
	}
}

func readArgs(r *reader, e *Entry, v value) {
	if l, ok := r.readList(v, `write ["--flag", "value"]`, r.readLenient); ok {
		e.Spec.Args = l
	}
}

func readEnv(r *reader, e *Entry, v value) {
	env := map[string]string{}
	if !r.readObject(v, `write {"NAME": "value"}`, func(name string, at Pos, m value) {
		var s string
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			r.addProblem(at, v.key, "the name of a variable cannot be empty or hold =", `write {"NAME": "value"}`)
		case isNull(m):
			r.addWarning(r.posOf(m.Value), m.key, "null sets nothing", "remove it")
		case r.readLenient(m, &s):
			env[name] = s
		}
		r.warnPaddedName(name, at, m.key)
	}) {
		return
	}
	e.Spec.Env = env
}

func readHeaders(r *reader, e *Entry, v value) {
	headers, seen := map[string]string{}, map[string]string{}
	if !r.readObject(v, `write {"Name": "value"}`, func(name string, at Pos, m value) {
		lower := strings.ToLower(name)
		var s string
		switch {
		case !isToken(name):
			r.addProblem(at, v.key, "this cannot be the name of a header", `write {"Name": "value"}`)
		case seen[lower] != "":
			r.addProblem(at, m.key, "it is the same header as "+seen[lower], "remove one")
		case isNull(m):
			r.addWarning(r.posOf(m.Value), m.key, "null sets nothing", "remove it")
		case r.readLenient(m, &s):
			headers[name], seen[lower] = s, name
		}
	}) {
		return
	}
	e.Spec.Headers = headers
}

func (r *reader) warnPaddedName(name string, at Pos, key string) {
	if name != strings.TrimSpace(name) {
		r.addWarning(at, key, "the name begins or ends with a space, and is used so", "remove it")
	}
}

// isToken is the grammar of a header's name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}) < 0
}

func readInheritEnv(r *reader, e *Entry, v value) {
	var b bool
	if r.readBool(v, &b) {
		e.Spec.InheritEnv = &b
	}
}

func readEnabled(r *reader, e *Entry, v value) {
	var b bool
	if r.readBool(v, &b) {
		e.Spec.Disabled = !b
	}
}

// readHTTPURL reads a URL that says by its key that it is no SSE endpoint.
func readHTTPURL(r *reader, e *Entry, v value) {
	if r.readText(v, &e.Spec.URL) && e.Spec.Type == "" {
		e.Spec.Type = messages.HTTP
	}
}

// readName reads the name under which an SDK server is registered. The same key repeats the id in a list of servers.
func readName(r *reader, e *Entry, v value) { r.readText(v, &e.Spec.Name) }

func readConnect(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	switch c := messages.Connect(word); c {
	case messages.Eager, messages.Lazy:
		e.Spec.Connect = c
	default:
		r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(word, 40)), "write eager or lazy")
	}
}

// readCallTimeout reads a duration whose zero means no bound, which a spec says with a negative one.
func readCallTimeout(r *reader, e *Entry, v value) {
	if d, ok := r.signedDuration(v); ok {
		if d <= 0 {
			d = -1
		}
		e.Spec.CallTimeout = messages.Duration(d)
	}
}

func readMaxCallTimeout(r *reader, e *Entry, v value) {
	if d, ok := r.signedDuration(v); ok {
		if d <= 0 {
			d = -1
		}
		e.Spec.MaxCallTimeout = messages.Duration(d)
	}
}

func readEra(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	switch era := messages.Era(word); era {
	case messages.EraAutoWord:
		e.Spec.Era = messages.EraAuto
	case messages.EraLegacy, messages.EraModern:
		e.Spec.Era = era
	default:
		r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(word, 40)), "write auto, legacy or modern")
	}
}

func readLogLevel(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	if !slices.Contains(messages.LogLevels, word) {
		r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(word, 40)),
			"write one of "+strings.Join(messages.LogLevels, ", "))
		return
	}
	e.Spec.LogLevel = word
}

func readMaxMessage(r *reader, e *Entry, v value) {
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '0' {
		r.reportType(v, "a number of bytes", "write 16777216 for 16 MiB")
		return
	}
	var f float64
	if err := json.Unmarshal(l, &f); err != nil || f != math.Trunc(f) || f < 1024 || f > 1<<40 {
		r.addProblem(r.posOf(v.Value), v.key, "it must be a whole number of bytes of at least 1024", "write 16777216 for 16 MiB")
		return
	}
	e.Spec.MaxMessage = int64(f)
}

// readMaxInFlight reads a bound whose zero means that there is none, which a spec says with a negative one.
func readMaxInFlight(r *reader, e *Entry, v value) {
	r.readBound(v, "write 8 for eight calls at once, or 0 for no bound", &e.Spec.MaxInFlight)
}

// readMaxQueued reads a bound whose zero means that no call waits, which a spec says with a negative one.
func readMaxQueued(r *reader, e *Entry, v value) {
	r.readBound(v, "write 100 for a hundred calls that wait, or 0 if none may", &e.Spec.MaxQueued)
}

func (r *reader) readBound(v value, fix string, into *int) {
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '0' {
		r.reportType(v, "a number of calls", fix)
		return
	}
	var f float64
	if err := json.Unmarshal(l, &f); err != nil || f != math.Trunc(f) || f < 0 || f > maxBound {
		r.addProblem(r.posOf(v.Value), v.key, "it must be a whole number of calls from 0 to 1000000", fix)
		return
	}
	if *into = int(f); f == 0 {
		*into = -1
	}
}

// maxBound is far beyond what one server is asked at once.
const maxBound = 1_000_000

func readPin(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	switch word {
	case messages.PinOff, messages.PinWarn, messages.PinHold:
		e.Spec.Pin = word
	default:
		r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(word, 40)), "write off, warn or hold")
	}
}
