package fault

import (
	"slices"
	"strings"
)

// Location is a place at which faults are performed. The values are bits, so that Kind.Where can name several.
type Location uint8

// The locations, and all of them together. A new location also needs a text in String, and a performer of
// dispositions.
const (
	// Program is [Wrap], inside of an embedding program.
	Program Location = 1 << iota
	// Stdio is a proxy between an agent and a server's standard input and output.
	Stdio
	// HTTP is a proxy in front of a server over HTTP.
	HTTP

	everywhere = Program | Stdio | HTTP
)

// String returns the location as the end of a sentence.
func (p Location) String() string {
	switch p {
	case Program:
		return "inside of a program"
	case Stdio:
		return "over stdio"
	case HTTP:
		return "over HTTP"
	case everywhere:
		return "anywhere"
	}
	return "here"
}

// Kind is one fault of the catalogue.
type Kind struct {
	Name string
	// Does describes the fault in one sentence without a full stop.
	Does string
	// Params are the fault's own parameters; those that all rules have (on, tool, chance …) are not among them.
	Params []Param
	// On are the methods that the fault is about if the rule names none; empty for all.
	On []string
	// Times counts how often the fault is done if the rule does not say; 0 for no limit.
	Times int
	// Instant is true for a fault that happens once when its time comes (and again by Every). A rule with on, tool,
	// chance or nth makes it happen on matching messages instead.
	Instant bool
	// Where are the locations at which the fault can be done, 0 if at none.
	Where Location
	// Why is the reason why it cannot be done at the other locations.
	Why string

	effect effect
}

// Param is a parameter of a fault. Default is written like a value in a rule.
type Param struct {
	Name, Default, Does string
	// Type is the form of the value: duration (2s), size (64k), number, yes (yes or no), text, jitter, or the allowed
	// words separated by |.
	Type string
}

// Kinds returns the catalogue, sorted by name.
func Kinds() []Kind { return slices.Clone(sortedKinds()) }

// Lookup returns the fault with a name.
func Lookup(name string) (Kind, bool) {
	i, ok := slices.BinarySearchFunc(sortedKinds(), name, func(k Kind, n string) int { return strings.Compare(k.Name, n) })
	if !ok {
		return Kind{}, false
	}
	return sortedKinds()[i], true
}

// ProblemAt returns the reason why the fault cannot be done at a location; empty if it can.
func (k Kind) ProblemAt(p Location) string {
	if k.Where&p != 0 {
		return ""
	}
	if k.Why != "" {
		return k.Name + " cannot be done " + p.String() + ": " + k.Why
	}
	return k.Name + " cannot be done " + p.String()
}

// findParam returns the fault's own parameter with a name.
func (k Kind) findParam(name string) (Param, bool) {
	i := slices.IndexFunc(k.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return k.Params[i], true
}
