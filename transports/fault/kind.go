package fault

import (
	"slices"
	"strings"
)

// Location is where faults are done.
type Location uint8

const (
	// Program is Wrap, inside of an embedding program.
	Program Location = 1 << iota
	// Stdio is a proxy between an agent and a server's standard input and output.
	Stdio
	// HTTP is a proxy in front of a server over HTTP.
	HTTP

	everywhere = Program | Stdio | HTTP
)

// String is for messages.
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
	// Does is what happens, in one sentence without a full stop.
	Does string
	// Params are its own; what rules have in common (on, tool, chance …) is not among them.
	Params []Param
	// On are the methods that it is about if the rule names none; empty: all.
	On []string
	// Times is how often it is done if the rule does not say; 0: without a limit.
	Times int
	// Instant faults happen once when their time comes (and again by Every), unless the rule says on, tool, chance or
	// nth: then they happen on messages that match.
	Instant bool
	// Where it can be done.
	Where Location
	// Why is the reason where it cannot.
	Why string

	effect effect
}

// Param is a parameter of a fault.
type Param struct {
	Name, Default, Does string
	// Type says how it is written: duration (2s), size (64k), number, yes (yes or no), text, or words separated by |.
	Type string
}

// Kinds is the catalogue, sorted by name.
func Kinds() []Kind { return slices.Clone(sortedKinds()) }

// Lookup finds a fault by its name.
func Lookup(name string) (Kind, bool) {
	i, ok := slices.BinarySearchFunc(sortedKinds(), name, func(k Kind, n string) int { return strings.Compare(k.Name, n) })
	if !ok {
		return Kind{}, false
	}
	return sortedKinds()[i], true
}

// ProblemAt says why the fault cannot be done at a place; empty if it can.
func (k Kind) ProblemAt(p Location) string {
	if k.Where&p != 0 {
		return ""
	}
	if k.Why != "" {
		return k.Name + " cannot be done " + p.String() + ": " + k.Why
	}
	return k.Name + " cannot be done " + p.String()
}

func (k Kind) findParam(name string) (Param, bool) {
	i := slices.IndexFunc(k.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return k.Params[i], true
}
