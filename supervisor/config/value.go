package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
)

// reader reads a file or one entry of it, and collects the problems. A file has one, and readEntry makes one for each
// entry.
type reader struct {
	file string
	src  *sourceText
	// program is the program in whose form the file is; empty for mcpvisor's own form.
	program string
	// spelled is Tree.Spelled: the name of a key in the text, by its offset, where it has another name here.
	spelled  map[int]string
	server   string
	problems []Problem
	// positions maps paths of keys to the places of their values. It is nil in the reader of a file; readObject and
	// readList need it.
	positions map[string]Pos
	// likelyFix proposes to rename an unknown key to command or url, for an entry that has neither.
	likelyFix string
	// full means that the file has more servers than are read, and that the problem was reported.
	full bool
	// unknownKeys collects the unknown keys of the entry for warnUnknownKeys.
	unknownKeys []unknownKey
}

// value is a JSON value with the path of keys that leads to it inside its entry: "env.PATH", "args[2]".
type value struct {
	hujson.Value
	key string
}

// addProblem reports a problem of the file, or of the server that r reads.
func (r *reader) addProblem(at Pos, key, text, fix string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.Line, Col: at.Col, Server: r.server, Key: key,
		Text: text, Fix: fix})
}

// addWarning reports a problem that does not make the server invalid.
func (r *reader) addWarning(at Pos, key, text, fix string) {
	r.addProblem(at, key, text, fix)
	r.problems[len(r.problems)-1].Warning = true
}

// posOf returns the place of a value in the text.
func (r *reader) posOf(v hujson.Value) Pos { return r.src.posAt(v.StartOffset) }

// reportType reports a value of the wrong JSON type; what names the expected one.
func (r *reader) reportType(v value, what, fix string) {
	r.addProblem(r.posOf(v.Value), v.key, "found "+kindName(v.Value.Value.Kind())+" instead of "+what, fix)
}

// kindName returns the name of a JSON type for the middle of a sentence.
func kindName(k hujson.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't':
		return "true"
	case 'f':
		return "false"
	case '"':
		return "text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "a list"
	}
}

// literalOf returns v as a string, number, truth value or null; false for an object or a list.
func literalOf(v hujson.Value) (hujson.Literal, bool) {
	l, ok := v.Value.(hujson.Literal)
	return l, ok
}

// readText reads text into into. Space at the ends stays, with a warning.
func (r *reader) readText(v value, into *string) bool {
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '"' {
		r.reportType(v, "text", "")
		return false
	}
	*into = l.String()
	r.warnPadding(v)
	return true
}

// readLenient reads text, and accepts a number or truth value as its own text with a warning: "PORT": 8080 has one
// meaning.
func (r *reader) readLenient(v value, into *string) bool {
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() == 'n' {
		r.reportType(v, "text", "")
		return false
	}
	*into = l.String()
	if l.Kind() != '"' {
		r.addWarning(r.posOf(v.Value), v.key, "found "+kindName(l.Kind())+" instead of text; it is taken as written",
			"put it in quotes")
	}
	r.warnPadding(v)
	return true
}

// warnPadding warns about space or a line break at the ends of a text, which usually came from copying.
func (r *reader) warnPadding(v value) {
	// A text of several lines, such as a key in PEM form, ends with a line break legitimately.
	if s := v.Value.Value.(hujson.Literal).String(); s != strings.TrimSpace(s) && !strings.Contains(strings.TrimSpace(s), "\n") {
		r.addWarning(r.posOf(v.Value), v.key, "the text begins or ends with a space or line break, and is used so", "remove it")
	}
}

// readBool reads true or false. The texts "true" and "false" are problems.
func (r *reader) readBool(v value, into *bool) bool {
	switch v.Value.Value.Kind() {
	case 't', 'f':
		*into = v.Value.Value.Kind() == 't'
		return true
	}
	r.reportType(v, "true or false", "")
	return false
}

// readDuration reads a duration that is not negative: text with a unit ("30s") or a number of milliseconds.
func (r *reader) readDuration(v value, into *messages.Duration) bool {
	d, ok := r.signedDuration(v)
	if ok && d < 0 {
		r.addProblem(r.posOf(v.Value), v.key, "a duration cannot be negative here", "")
		return false
	}
	if ok {
		*into = messages.Duration(d)
	}
	return ok
}

// readSeconds reads a number of seconds, not negative and possibly with a fraction, for keys that have the unit in
// their name.
func (r *reader) readSeconds(v value, into *messages.Duration) {
	const fix = "write a number of seconds"
	l, ok := literalOf(v.Value)
	var s float64
	switch {
	case !ok || l.Kind() != '0':
		r.reportType(v, "a number of seconds", fix)
	// The bound keeps the product within a time.Duration.
	case json.Unmarshal(l, &s) != nil || math.Abs(s) > float64(math.MaxInt64/int64(time.Second)/2):
		r.addProblem(r.posOf(v.Value), v.key, "the number is too large", fix)
	case s < 0:
		r.addProblem(r.posOf(v.Value), v.key, "a duration cannot be negative here", "")
	default:
		*into = messages.Duration(math.Round(s * float64(time.Second)))
	}
}

// signedDuration reads text with a unit ("30s") or a number of milliseconds, with any sign.
func (r *reader) signedDuration(v value) (time.Duration, bool) {
	const fix = `write "30s", "1m30s", or a number of milliseconds`
	l, ok := literalOf(v.Value)
	switch {
	case ok && l.Kind() == '"':
		d, err := time.ParseDuration(l.String())
		if err != nil {
			r.addProblem(r.posOf(v.Value), v.key, quoteShort(messages.Line(l.String(), 40))+" is no duration with a unit", fix)
		}
		return d, err == nil
	case ok && l.Kind() == '0':
		// Half of the range leaves room for sums of durations.
		var ms float64
		if err := json.Unmarshal(l, &ms); err != nil || math.Abs(ms) > float64(math.MaxInt64/int64(time.Millisecond)/2) {
			r.addProblem(r.posOf(v.Value), v.key, "the number is too large", fix)
			return 0, false
		}
		// Other clients count seconds in keys of the same name.
		if ms > 0 && ms < 1000 {
			r.addWarning(r.posOf(v.Value), v.key, fmt.Sprintf("%v means milliseconds", ms),
				fmt.Sprintf(`if seconds are meant, write "%vs"`, ms))
		}
		return time.Duration(math.Round(ms * float64(time.Millisecond))), true
	}
	r.reportType(v, "a duration", fix)
	return 0, false
}

// The bounds of what a file may hold: MaxList for one list of texts, such as the arguments of a command, MaxServers for
// the servers of one file, and maxProblems for the problems that are kept of one server.
const (
	MaxList     = 4096
	MaxServers  = 1000
	maxProblems = 100
)

// readList reads a list of texts, each of them by read. The list is not nil if ok is true. An element that cannot be
// read makes ok false, after the others have been read for their problems.
func (r *reader) readList(v value, fix string, read func(value, *string) bool) ([]string, bool) {
	a, ok := v.Value.Value.(*hujson.Array)
	if !ok {
		r.reportType(v, "a list", fix)
		return nil, false
	}
	// The whole list is refused, because a part of it would mean something else.
	if len(a.Elements) > MaxList {
		r.addProblem(r.posOf(v.Value), v.key, fmt.Sprintf("the list has %d values, and %d are read at most", len(a.Elements), MaxList), "shorten it")
		return nil, false
	}
	out := make([]string, len(a.Elements))
	for i, el := range a.Elements {
		m := value{el, fmt.Sprintf("%s[%d]", v.key, i)}
		// The place is kept for problems of the expanded value.
		r.positions[m.key] = r.posOf(el)
		if !read(m, &out[i]) {
			ok = false
		}
	}
	return out, ok
}

// readToolNames reads a list of tool names and patterns; an empty list is kept, because it allows no tool.
func (r *reader) readToolNames(v value, into *[]string) {
	if l, ok := r.readList(v, `write ["name", "other_*"]`, r.readText); ok {
		*into = l
	}
}

// readObject calls each for every member of an object, in the order of the file. A key that stands twice is reported
// with both places, and the first one counts. It returns false, after a problem, if v is no object.
func (r *reader) readObject(v value, fix string, each func(name string, at Pos, m value)) bool {
	o, ok := v.Value.Value.(*hujson.Object)
	if !ok {
		r.reportType(v, "an object", fix)
		return false
	}
	seen := make(map[string]Pos, len(o.Members))
	for _, m := range o.Members {
		l, _ := literalOf(m.Name)
		name, at := l.String(), r.posOf(m.Name)
		// The path in problems is the text's own, which differs from the tree's in a translated file.
		key := name
		if said, ok := r.spelled[m.Name.StartOffset]; ok {
			key = said
		} else if v.key != "" {
			key = v.key + "." + name
		}
		if first, twice := seen[name]; twice {
			r.addProblem(at, key, "the key stands twice, first at "+first.String(), "remove one")
			continue
		}
		seen[name] = at
		r.positions[key] = r.posOf(m.Value)
		each(name, at, value{m.Value, key})
	}
	return true
}

// isNull reports whether v is null, which counts as an absent key.
func isNull(v value) bool { return v.Value.Value.Kind() == 'n' }
