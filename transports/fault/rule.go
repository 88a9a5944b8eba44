package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Direction is the side to which a message goes.
type Direction string

const (
	// Both leaves the direction to the fault: most change answers.
	Both Direction = ""
	// ToServer are the messages of the client.
	ToServer Direction = "server"
	// ToClient are the messages of the server: answers, by the method of their request, and its own requests and
	// notifications.
	ToClient Direction = "client"
)

// Rule names a fault, the messages that it is about, how often it happens and when. The zero value of a field has the
// meaning that its comment gives. [Rule.Check] validates one, [Parse] and [Rule.String] convert it from and to text.
type Rule struct {
	// Name identifies the rule, for Remove; Control.Add gives one if it is empty.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Fault is a name of the catalogue ([Kinds]), With its parameters as text; those that are absent have their
	// defaults.
	Fault string            `json:"fault" yaml:"fault"`
	With  map[string]string `json:"with,omitempty" yaml:"with,omitempty"`

	// Server, On and Tool are patterns, or several separated by commas: * stands for any text. Server is compared
	// with the name given to [Control.Named], On with the method, Tool with the tool, prompt or URI that the request
	// names. Empty matches all, or the methods of the kind. Over HTTP the methods GET and DELETE are the stream and
	// the end of a session; "dial" is the opening of a connection.
	Server string `json:"server,omitempty" yaml:"server,omitempty"`
	On     string `json:"on,omitempty" yaml:"on,omitempty"`
	Tool   string `json:"tool,omitempty" yaml:"tool,omitempty"`
	// Direction limits the rule to messages that go one way.
	Direction Direction `json:"direction,omitempty" yaml:"direction,omitempty"`

	// Chance is the probability that a matching message is hit; 0 means 1. Nth hits only every n-th matching message;
	// Times hits at most so many in all, 0 for no limit.
	Chance float64 `json:"chance,omitempty" yaml:"chance,omitempty"`
	Nth    int     `json:"nth,omitempty" yaml:"nth,omitempty"`
	Times  int     `json:"times,omitempty" yaml:"times,omitempty"`

	// At is the time from the adding of the rule to its beginning; For is how long it lasts then, 0 for no end; Every
	// is the time from one beginning to the next, 0 for no repetition.
	At    Duration `json:"at,omitempty" yaml:"at,omitempty"`
	For   Duration `json:"for,omitempty" yaml:"for,omitempty"`
	Every Duration `json:"every,omitempty" yaml:"every,omitempty"`

	// problem is why the words that made the rule cannot be used; empty for a rule of a text.
	problem string
}

// Duration is a time.Duration whose text form is that of Go: 1m30s.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It refuses negative durations.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration; write a number with its unit, such as 10s or 2m", string(b))
	}
	*d = Duration(v)
	return nil
}

// RuleError is the error of a rule that cannot be used.
type RuleError struct {
	// Text says what is wrong; Fix says what to do, or is empty. At is the character in the rule's text, from 1; 0 if
	// the rule was not read from a text.
	Text, Fix string
	At        int
}

// Error implements error: the place, the fault, and what to do.
func (e *RuleError) Error() string {
	text := e.Text
	if e.At > 0 {
		text = fmt.Sprintf("at character %d: %s", e.At, text)
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Check returns the error of a rule that cannot be used at a location, nil if it can. The location 0 accepts kinds of
// any location.
func (r Rule) Check(location Location) error {
	_, err := compileRule(r, location)
	return err
}

// compileRule checks a rule and parses its parameters. An error is a *RuleError. A location of 0 is any one of rules.
func compileRule(r Rule, location Location) (*rule, error) {
	if r.problem != "" {
		return nil, &RuleError{Text: r.problem}
	}
	k, ok := Lookup(r.Fault)
	if !ok {
		return nil, unknownFault(r.Fault, location)
	}
	// A kind of no location of rules is refused even without a check of the location: Why says what to use instead.
	if problem := k.ProblemAt(location); problem != "" {
		return nil, &RuleError{Text: problem, Fix: insteadOf(r.Fault, location)}
	}
	read, problem := k.readParams(location, r.With)
	if problem != nil {
		return nil, problem
	}
	c := &rule{Rule: r, kind: k, values: read, seenCounts: map[string]int{}}
	switch {
	case r.Chance < 0 || r.Chance > 1 || r.Chance != r.Chance: // the last condition is true of NaN
		return nil, &RuleError{Text: fmt.Sprintf("chance=%v is no probability", r.Chance), Fix: "write a number above 0, at most 1"}
	case r.Nth < 0 || r.Times < 0:
		return nil, &RuleError{Text: "nth and times are not negative"}
	case r.At < 0 || r.For < 0 || r.Every < 0:
		return nil, &RuleError{Text: "at, for and every are not negative"}
	case r.Every > 0 && r.For > r.Every:
		return nil, &RuleError{Text: fmt.Sprintf("it lasts for %v and is repeated every %v", time.Duration(r.For), time.Duration(r.Every)),
			Fix: "let for be shorter than every"}
	case r.Direction != Both && r.Direction != ToServer && r.Direction != ToClient:
		return nil, &RuleError{Text: fmt.Sprintf("the direction %q is unknown", r.Direction), Fix: "write server or client"}
	}
	c.methods = splitPatterns(r.On)
	// A direction in which the fault has no effect would be a rule that never hits.
	if e := k.effect; r.Direction == ToServer && e.out == nil || r.Direction == ToClient && e.in == nil {
		return nil, &RuleError{Text: fmt.Sprintf("%s does nothing to what goes to the %s", k.Name, r.Direction), Fix: "leave direction out"}
	}
	// A rule that names a tool and no method is about the three methods that name one. A kind with its own methods,
	// or with the parameter when, keeps those.
	if len(c.methods) == 0 && r.Tool != "" && len(k.On) == 0 && c.values["when"] == nil {
		c.methods = []string{"tools/call", "prompts/get", "resources/read"} // a tool is named by nothing else
	}
	// Then the parameter when, or the kind, decides.
	if len(c.methods) == 0 {
		switch c.values.Text("when") {
		case "handshake":
			c.methods = handshakeMethods
		case "call":
			c.methods = callMethods
		default:
			c.methods = k.On
		}
	}
	c.tools, c.servers = splitPatterns(r.Tool), splitPatterns(r.Server)
	// Server alone does not need a message: an instant can happen to one server's connection.
	c.needsMessage = r.On != "" || r.Tool != "" || r.Chance > 0 || r.Nth > 0 || r.Direction != Both
	// Such a rule would wait for a message that its fault is not about, and never do anything.
	if e := k.effect; c.needsMessage && e.clock != nil && e.in == nil && e.out == nil {
		return nil, &RuleError{Text: k.Name + " happens by the clock and is about no message", Fix: "leave on, tool, chance and nth out"}
	}
	// The rule's own limit wins over the kind's.
	if c.maxHits = r.Times; c.maxHits == 0 {
		c.maxHits = k.Times
	}
	return c, nil
}

// String returns the rule as [Parse] reads it. Double quotes inside a value become single ones, because Parse knows
// no escape.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Fault)
	// Values with blanks or quotes are quoted, as splitWords reads them.
	word := func(key, value string) {
		if strings.ContainsAny(value, " \t\"'") || value == "" {
			value = `"` + strings.ReplaceAll(value, `"`, `'`) + `"`
		}
		b.WriteString(" " + key + "=" + value)
	}
	// Sorted, so that equal rules have equal texts: Control.Set compares them.
	for _, k := range slices.Sorted(keysOf(r.With)) {
		word(k, r.With[k])
	}
	for _, f := range fields {
		if v := f.get(&r); v != "" {
			word(f.name, v)
		}
	}
	return b.String()
}

// splitPatterns splits a list of patterns at its commas; nil if there are none.
func splitPatterns(s string) []string {
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// matchesAny reports whether one of the patterns matches s; an empty list matches everything.
func matchesAny(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return messages.MatchPattern(p, s) })
}
