package config

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// remoteWord is the type that leaves the choice among the remote kinds to the URL.
const remoteWord = "remote"

// knownTypes lists the main words in fixes.
const knownTypes = "stdio, http (streamable-http), sse, websocket (ws), sdk, claudeai-proxy"

// readType reads the transport under one of the keys type, transport and transportType. Two of them in one entry must agree,
// and "remote" agrees with every remote kind.
func readType(r *reader, e *Entry, v value) {
	var word string
	if !r.readText(v, &word) {
		return
	}
	kind, ok := messages.TransportKindOf(word)
	switch {
	// The URL decides, which may stand after this key.
	case word == remoteWord:
		e.remote = true
	case !ok:
		fix := "known are " + knownTypes
		words := []string{remoteWord}
		for _, kind := range messages.TransportKinds {
			words = append(words, kind.Words()...)
		}
		if near := nearestKey(word, words); near != "" {
			fix = "did you mean " + near + "? Known are " + knownTypes
		}
		r.addProblem(r.posOf(v.Value), v.key, "unknown type "+quoteShort(messages.Line(word, 40)), fix)
	// A key that was read before has set another type.
	case e.Spec.Type != "" && e.Spec.Type != kind:
		r.addProblem(r.posOf(v.Value), v.key, "it says "+word+", and another key says "+string(e.Spec.Type), "remove one")
	default:
		e.Spec.Type = kind
	}
	// Both keys have been seen only when the second one is read, in either order.
	if e.remote && (e.Spec.Type == messages.Stdio || e.Spec.Type == messages.SDK) {
		r.addProblem(r.posOf(v.Value), v.key, "one key says remote, another "+string(e.Spec.Type), "remove one")
	}
}

// readCommand reads a program as text, or a list of the program and its arguments, as opencode writes it.
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
	// A list holds the arguments as well; checkShape reports a further key args beside it.
	default:
		e.Spec.Command, e.Spec.Args = words[0], words[1:]
	}
}

// readArgs reads the arguments. Numbers and truth values are taken as text with a warning, because they have one meaning on a
// command line.
func readArgs(r *reader, e *Entry, v value) {
	if l, ok := r.readList(v, `write ["--flag", "value"]`, r.readLenient); ok {
		e.Spec.Args = l
	}
}

// readEnv reads the variables of the process. A name that no operating system accepts is a problem of the entry.
func readEnv(r *reader, e *Entry, v value) {
	env := map[string]string{}
	if !r.readObject(v, `write {"NAME": "value"}`, func(name string, at Pos, m value) {
		var s string
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			r.addProblem(at, v.key, "the name of a variable cannot be empty or hold =", `write {"NAME": "value"}`)
		// A person may expect that null unsets an inherited variable, which this key cannot do.
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

// readHeaders reads the headers of a remote server. Names of headers have no case (RFC 9110, section 5.1), so that two
// spellings of one name are a problem.
func readHeaders(r *reader, e *Entry, v value) {
	// seen maps the name in lower case to the spelling in the file.
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

// warnPaddedName warns about space around the name of a variable. The name is used as written, because the operating system
// allows it.
func (r *reader) warnPaddedName(name string, at Pos, key string) {
	if name != strings.TrimSpace(name) {
		r.addWarning(at, key, "the name begins or ends with a space, and is used so", "remove it")
	}
}

// isToken reports whether s is a token, which the name of a header must be (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}) < 0
}

// readEnabled reads the opposite of disabled, under the key of other clients.
func readEnabled(r *reader, e *Entry, v value) {
	var b bool
	if r.readBool(v, &b) {
		e.Spec.Disabled = !b
	}
}

// readHTTPURL reads httpUrl, whose name already says that the endpoint is no SSE endpoint. Type HTTP without FallbackSSE
// follows, unless a type is written.
func readHTTPURL(r *reader, e *Entry, v value) {
	if r.readText(v, &e.Spec.URL) && e.Spec.Type == "" {
		e.Spec.Type = messages.HTTP
	}
}

// readPlain reads a key whose value is any text, a truth value or a duration that is not negative, into the field of the spec with
// an index. An absent truth value may differ from false: nil stands for the manager's default.
func readPlain(index int) readFunc {
	return func(r *reader, e *Entry, v value) {
		switch into := reflect.ValueOf(&e.Spec).Elem().Field(index).Addr().Interface().(type) {
		case *string:
			r.readText(v, into)
		case *bool:
			r.readBool(v, into)
		case **bool:
			var b bool
			if r.readBool(v, &b) {
				*into = &b
			}
		case *messages.Duration:
			r.readDuration(v, into)
		default:
			panic(fmt.Sprintf("nothing reads the key %s: it needs a row in specReaders", v.key))
		}
	}
}

// readMaxInstances reads how many instances a server may have at once, at least one.
func readMaxInstances(r *reader, e *Entry, v value) {
	const fix = "write 8 for eight principals at once"
	r.readBound(v, fix, &e.Spec.MaxInstances)
	if e.Spec.MaxInstances < 0 {
		e.Spec.MaxInstances = 0
		r.addProblem(r.posOf(v.Value), v.key, "no principal could have an instance", fix)
	}
}

// readInstanceIdle reads after how long without a use an instance ends.
func readInstanceIdle(r *reader, e *Entry, v value) {
	if r.readDuration(v, &e.Spec.InstanceIdle) && e.Spec.InstanceIdle == 0 {
		r.addProblem(r.posOf(v.Value), v.key, "an instance would end at once", "write a time such as \"10m\"")
	}
}

// readWord reads a key whose value is one of some words.
func readWord[T ~string](fieldOf func(*messages.Spec) *T, fix string, words ...T) readFunc {
	return func(r *reader, e *Entry, v value) {
		var word string
		if !r.readText(v, &word) {
			return
		}
		if !slices.Contains(words, T(word)) {
			r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(word, 40)), fix)
			return
		}
		*fieldOf(&e.Spec) = T(word)
	}
}

// readUnbounded reads a duration with 0 for no bound. A spec says that with a negative one, because its own 0 means the default.
func readUnbounded(fieldOf func(*messages.Spec) *messages.Duration) readFunc {
	return func(r *reader, e *Entry, v value) {
		if d, ok := r.signedDuration(v); ok {
			if d <= 0 {
				d = -1
			}
			*fieldOf(&e.Spec) = messages.Duration(d)
		}
	}
}

// readEra reads the era of the protocol. "auto" and an absent key mean the same.
func readEra(r *reader, e *Entry, v value) {
	readEraWord(r, e, v)
	if e.Spec.Era == messages.EraAutoWord {
		e.Spec.Era = messages.EraAuto
	}
}

var readEraWord = readWord(func(s *messages.Spec) *messages.Era { return &s.Era }, "write auto, legacy or modern",
	messages.EraAutoWord, messages.EraLegacy, messages.EraModern)

// readMaxMessage reads the bound of one incoming message: a whole number of bytes from 1 KiB to 1 TiB.
func readMaxMessage(r *reader, e *Entry, v value) {
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '0' {
		r.reportType(v, "a number of bytes", "write 16777216 for 16 MiB")
		return
	}
	// A float64 accepts 16e6 as well as 16000000, and the check refuses a fraction.
	var f float64
	if err := json.Unmarshal(l, &f); err != nil || f != math.Trunc(f) || f < 1024 || f > 1<<40 {
		r.addProblem(r.posOf(v.Value), v.key, "it must be a whole number of bytes of at least 1024", "write 16777216 for 16 MiB")
		return
	}
	e.Spec.MaxMessage = int64(f)
}

// readMaxInFlight reads how many calls may be under way at once. 0 in a file means no bound, which a spec says with a negative
// number.
func readMaxInFlight(r *reader, e *Entry, v value) {
	r.readBound(v, "write 8 for eight calls at once, or 0 for no bound", &e.Spec.MaxInFlight)
}

// readMaxQueued reads how many calls may wait. 0 in a file means that none may, which a spec says with a negative number.
func readMaxQueued(r *reader, e *Entry, v value) {
	r.readBound(v, "write 100 for a hundred calls that wait, or 0 if none may", &e.Spec.MaxQueued)
}

// readBound reads a whole number from 0 to maxBound and stores -1 for 0, because a 0 in a spec means the manager's default.
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

// maxBound is far beyond the number of calls or files that one server can use; a larger number is a typing mistake.
const maxBound = 1_000_000
