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

// reader collects what is wrong while a file, or one entry of it, is read.
type reader struct {
	file string
	src  *sourceText
	// program is whose file it is, if it is not in our own form.
	program string
	// spelled holds the name of a key in the text, by its offset, where it has another name here.
	spelled  map[int]string
	server   string
	problems []Problem
	// positions is where the values of the entry stand, by their path of keys.
	positions map[string]Pos
	// likelyFix is an unknown key that was probably meant as command or url.
	likelyFix string
	// full says that the file has more servers than are read, and that it was said.
	full bool
	// unknownKeys are the unknown keys of the entry.
	unknownKeys []unknownKey
}

// value is a JSON value with the path of keys that leads to it inside its entry: "env.PATH", "args[2]".
type value struct {
	hujson.Value
	key string
}

func (r *reader) addProblem(at Pos, key, text, fix string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.Line, Col: at.Col, Server: r.server, Key: key,
		Text: text, Fix: fix})
}

func (r *reader) addWarning(at Pos, key, text, fix string) {
	r.addProblem(at, key, text, fix)
	r.problems[len(r.problems)-1].Warning = true
}

func (r *reader) posOf(v hujson.Value) Pos { return r.src.posAt(v.StartOffset) }

// reportType reports a value of the wrong JSON type.
func (r *reader) reportType(v value, what, fix string) {
	r.addProblem(r.posOf(v.Value), v.key, "found "+kindName(v.Value.Value.Kind())+" instead of "+what, fix)
}

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

// literalOf is the text of a string, number or truth value.
func literalOf(v hujson.Value) (hujson.Literal, bool) {
	l, ok := v.Value.(hujson.Literal)
	return l, ok
}

// readText reads text and warns about space at its ends, which stays.
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

// readLenient reads text and takes a number or truth value for its own text, with a warning: "PORT": 8080 has one meaning.
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

func (r *reader) warnPadding(v value) {
	// A text of several lines, as a key in PEM form is, ends with a line break.
	if s := v.Value.Value.(hujson.Literal).String(); s != strings.TrimSpace(s) && !strings.Contains(strings.TrimSpace(s), "\n") {
		r.addWarning(r.posOf(v.Value), v.key, "the text begins or ends with a space or line break, and is used so", "remove it")
	}
}

func (r *reader) readBool(v value, into *bool) bool {
	switch v.Value.Value.Kind() {
	case 't', 'f':
		*into = v.Value.Value.Kind() == 't'
		return true
	}
	r.reportType(v, "true or false", "")
	return false
}

// readDuration reads text with a unit ("30s") or a number of milliseconds, not negative.
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

// readSeconds reads a number of seconds, not negative, for the keys that have the unit in their name.
func (r *reader) readSeconds(v value, into *messages.Duration) {
	const fix = "write a number of seconds"
	l, ok := literalOf(v.Value)
	var s float64
	switch {
	case !ok || l.Kind() != '0':
		r.reportType(v, "a number of seconds", fix)
	case json.Unmarshal(l, &s) != nil || math.Abs(s) > float64(math.MaxInt64/int64(time.Second)/2):
		r.addProblem(r.posOf(v.Value), v.key, "the number is too large", fix)
	case s < 0:
		r.addProblem(r.posOf(v.Value), v.key, "a duration cannot be negative here", "")
	default:
		*into = messages.Duration(math.Round(s * float64(time.Second)))
	}
}

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
		var ms float64
		if err := json.Unmarshal(l, &ms); err != nil || math.Abs(ms) > float64(math.MaxInt64/int64(time.Millisecond)/2) {
			r.addProblem(r.posOf(v.Value), v.key, "the number is too large", fix)
			return 0, false
		}
		if ms > 0 && ms < 1000 {
			r.addWarning(r.posOf(v.Value), v.key, fmt.Sprintf("%v means milliseconds", ms),
				fmt.Sprintf(`if seconds are meant, write "%vs"`, ms))
		}
		return time.Duration(math.Round(ms * float64(time.Millisecond))), true
	}
	r.reportType(v, "a duration", fix)
	return 0, false
}

// The bounds of what a file may hold. MaxList is for one list of texts: the arguments of a command. MaxServers is for the
// servers of one file, and maxProblems for what is said about one of them.
const (
	MaxList     = 4096
	MaxServers  = 1000
	maxProblems = 100
)

// readList reads a list of texts, each by read. Its result is not nil.
func (r *reader) readList(v value, fix string, read func(value, *string) bool) ([]string, bool) {
	a, ok := v.Value.Value.(*hujson.Array)
	if !ok {
		r.reportType(v, "a list", fix)
		return nil, false
	}
	if len(a.Elements) > MaxList {
		r.addProblem(r.posOf(v.Value), v.key, fmt.Sprintf("the list has %d values, and %d are read at most", len(a.Elements), MaxList), "shorten it")
		return nil, false
	}
	out := make([]string, len(a.Elements))
	for i, el := range a.Elements {
		m := value{el, fmt.Sprintf("%s[%d]", v.key, i)}
		r.positions[m.key] = r.posOf(el)
		if !read(m, &out[i]) {
			ok = false
		}
	}
	return out, ok
}

// readToolNames reads a list of tool names.
func (r *reader) readToolNames(v value, into *[]string) {
	if l, ok := r.readList(v, `write ["name", "other_*"]`, r.readText); ok {
		*into = l
	}
}

// readObject calls each for every member of an object, in order. A key that stands twice is reported with both places, and
// the first counts.
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

func isNull(v value) bool { return v.Value.Value.Kind() == 'n' }
