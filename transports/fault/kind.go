package fault

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Location is a place at which faults are performed. The values are bits, so that Kind.Where can name several.
type Location uint8

// The locations. The first three are those of rules, which stand between a client and a server; the last two are those of
// scenarios, in which a server itself behaves so. A new location also needs a text in String, and a performer.
const (
	// Program is [Wrap], inside of an embedding program.
	Program Location = 1 << iota
	// Stdio is a proxy between an agent and a server's standard input and output.
	Stdio
	// HTTP is a proxy in front of a server over HTTP.
	HTTP
	// Sim is "mcpvisor chaos sim": servers in memory and virtual time.
	Sim
	// Real is "mcpvisor chaos run": servers that are processes and sockets.
	Real

	rules     = Program | Stdio | HTTP
	scenarios = Sim | Real
)

// Has reports whether two sets of locations have one in common.
func (p Location) Has(o Location) bool { return p&o != 0 }

// String returns the location as the end of a sentence.
func (p Location) String() string {
	switch p {
	case Program:
		return "inside of a program"
	case Stdio:
		return "over stdio"
	case HTTP:
		return "over HTTP"
	case rules:
		return "between a client and a server"
	case Sim:
		return "in a simulation"
	case Real:
		return "to a real server"
	default:
		return "here"
	}
}

// Kind is one fault of the catalogue: one row, which rules, scenarios, the listings of the command and the schema of scenarios
// are drawn from.
type Kind struct {
	Name string
	// Does says in half a sentence what the server does, or what is done to it. InRule says what a rule does if that is
	// something else, because it can change only what passes between a client and a server; else it is empty. See DoesAt.
	Does, InRule string
	// Reports are the rows of the list of field reports ("P4") that the fault comes from, the most important one first.
	Reports []string
	// Params are the fault's own parameters at all locations; see ParamsAt.
	Params []Param
	// Where are the locations at which the fault can be done.
	Where Location
	// Why is the reason why a rule cannot do it at the other locations of rules.
	Why string
	// Instant are the locations at which the fault happens once when its time comes (and again by Every), and has no end. A
	// rule with on, tool, chance or nth makes it happen on matching messages instead.
	Instant Location

	// On are the methods that the fault is about if a rule names none; empty for all. Times counts how often the fault is done
	// if a rule does not say; 0 for no limit.
	On    []string
	Times int

	// Servers and Eras are the transports and eras of the servers that can behave so, in a scenario.
	Servers []messages.TransportKind
	Eras    []messages.Era
	// WholeMachine faults strike the machine, and with it every server. EndsConnections is set if the fault ends open
	// connections, or makes them unusable, so that a client must connect again.
	WholeMachine, EndsConnections bool

	effect effect
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

// Nearest returns the name of the fault that is nearest to a misspelled one, empty if none is near.
func Nearest(name string) string { return messages.Nearest(name, kindNames(rules|scenarios)) }

// sortedKinds is the catalogue with the effects of rules, sorted by name for Lookup. It is built on first use, because most
// programs never have a rule.
var sortedKinds = sync.OnceValue(func() []Kind {
	// The order of the groups does not matter: a kind stands with those of its subject.
	all := slices.Concat(processKinds(), outputKinds(), messageKinds(), callKinds(), listKinds(), protocolKinds(), httpKinds(), networkKinds(), trustKinds(), machineKinds())
	effects := allEffects()
	for i := range all {
		all[i].effect = effects[all[i].Name]
	}
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
})

// DoesAt returns what the fault does at a location; 0 is any location of rules.
func (k Kind) DoesAt(p Location) string {
	if k.InRule != "" && !p.Has(scenarios) {
		return k.InRule
	}
	return k.Does
}

// ParamsAt returns the parameters that the fault has at a location, with the defaults that they have there; 0 is any location
// of rules.
func (k Kind) ParamsAt(p Location) (params []Param) {
	for _, param := range k.Params {
		if p.Has(scenarios) {
			param.inRule = nil
		} else if p = rules; param.inRule != nil {
			param.Default = *param.inRule
		}
		if param.where.Has(p) {
			params = append(params, param)
		}
	}
	return params
}

// ProblemAt returns the reason why the fault cannot be done at a location; empty if it can. The location 0 is any one of rules.
func (k Kind) ProblemAt(p Location) string {
	if p == 0 {
		p = rules
	}
	if k.Where.Has(p) {
		return ""
	}
	if k.Why != "" && !p.Has(scenarios) {
		return k.Name + " cannot be done " + p.String() + ": " + k.Why
	}
	return k.Name + " cannot be done " + p.String()
}

// Applies reports whether a server of a transport and an era can behave so. An empty transport is stdio and an empty era legacy,
// as in a scenario.
func (k Kind) Applies(server messages.TransportKind, era messages.Era) bool {
	if server == "" {
		server = messages.Stdio
	}
	if era == messages.EraAuto {
		era = messages.EraLegacy
	}
	return slices.Contains(k.Servers, server) && slices.Contains(k.Eras, era)
}

// CheckParams returns the error of the first parameter, in the order of their names, that the fault does not have at a location,
// or whose value cannot be read; nil if there is none. The error is a *RuleError.
func (k Kind) CheckParams(p Location, with map[string]string) error {
	if _, err := k.readParams(p, with); err != nil {
		return err
	}
	return nil
}

// With returns the fault's parameters at a location, with the defaults for those that are absent or cannot be read.
func (k Kind) With(p Location, with map[string]string) Values {
	v := Values{}
	for _, param := range k.ParamsAt(p) {
		if text, ok := with[param.Name]; !ok || v.readParam(param, p, text) != nil {
			_ = v.readParam(param, p, param.Default) // the defaults of the catalogue can be read: TestDefaultsAreValid
		}
	}
	return v
}

// readParams reads the parameters that a rule or a scenario gives. A parameter that is absent has its default.
func (k Kind) readParams(p Location, with map[string]string) (Values, *RuleError) {
	params := k.ParamsAt(p)
	// In sorted order the same mistakes give the same error each time.
	for _, name := range slices.Sorted(keysOf(with)) {
		param, ok := findParam(params, name)
		if !ok {
			return nil, k.unknownParam(p, name, paramNames(params))
		}
		if err := (Values{}).readParam(param, p, with[name]); err != nil {
			return nil, err
		}
	}
	return k.With(p, with), nil
}

// unknownParam returns the error for a parameter that the fault does not have; known are those that may have been meant.
func (k Kind) unknownParam(p Location, name string, known []string) *RuleError {
	err := &RuleError{Text: fmt.Sprintf("%s has no parameter %q", k.Name, name)}
	if _, elsewhere := findParam(k.Params, name); elsewhere {
		if err.Text += " in a rule"; p.Has(scenarios) {
			err.Text = fmt.Sprintf("%s has no parameter %q in a scenario", k.Name, name)
		}
	}
	if err.Fix = "it has none"; len(known) > 0 {
		err.Fix = suggestFix(name, known)
	}
	return err
}

// kindNames returns the names of the faults that can be done at a location, for suggestions.
func kindNames(at Location) (names []string) {
	for _, k := range sortedKinds() {
		if k.Where.Has(at) {
			names = append(names, k.Name)
		}
	}
	return names
}
