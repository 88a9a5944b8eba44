// Package faults is the catalogue of everything that can break: every fault by its name, with its effect, its parameters, and
// the servers that it applies to. How a fault is done is in package peer.
//
//	k, ok := faults.Find("throttle")
//	err := k.Check(map[string]string{"after": "30s"}, messages.HTTP, messages.EraLegacy)
//	after := k.With(values).Duration("after")
//
// # How it fits
//
// Package scenario checks the faults of a scenario against the catalogue, package generate draws from it, package peer reads
// the parameters while a fault lasts, and the schema of scenarios and the help of the command are printed from it. It imports
// no other package of the harness and owns nothing that changes.
//
// A fault lasts from its begin to its end. An instant fault happens at its begin and has no end.
//
// # Where a new fault goes
//
// A row in the file of its subject (calls.go, http.go, lists.go, output.go, process.go, protocol.go, trust.go), and hooks of the same
// name in package peer, a test of which plays every fault. If it needs an event to have an effect, effectNeeds of package generate
// names that.
//
// # Guarantees
//
// A name in a scenario keeps its meaning, and each parameter has a default, which is the most telling value. The catalogue does not
// change while a program runs.
//
// # Not promised
//
// That every fault has an effect on every day: one that lasts while no call is made changes no call.
package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The tiers in which a fault can be done, by the names of package scenario.
const (
	// Sim is the simulation in virtual time.
	Sim = "sim"
	// Real is the tier of real processes and sockets.
	Real = "real"
)

// Kind describes one fault.
type Kind struct {
	// Name is its name in scenarios. ID is the row of the list of field reports ("P4") that the fault makes happen in the first
	// place; Also holds further rows.
	Name string
	ID   string
	Also []string
	// Description is one sentence that says what the server does, or what is done to it.
	Description string
	Params      []Param
	// Kinds and Eras are the transports and eras of the servers that the fault applies to; Tiers are where it can be done.
	Kinds []messages.TransportKind
	Eras  []messages.Era
	Tiers []string
	// Instant faults happen at their begin. WholeMachine faults strike the machine, and with it every server.
	Instant      bool
	WholeMachine bool
	// EndsConnections is set if the fault ends open connections, or makes them unusable, so that the manager must connect
	// again.
	EndsConnections bool
}

// All returns all faults, sorted by name. The caller may change the slice.
func All() []Kind { return slices.Clone(catalogue) }

// Find returns the fault with a name, false if there is none.
func Find(name string) (Kind, bool) {
	i, ok := slices.BinarySearchFunc(catalogue, name, func(k Kind, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return Kind{}, false
	}
	return catalogue[i], true
}

// Nearest returns the name of a fault that is nearest to a misspelled one, empty if none is near.
func Nearest(name string) string {
	names := make([]string, len(catalogue))
	for i, k := range catalogue {
		names[i] = k.Name
	}
	return messages.Nearest(name, names)
}

// Applies reports whether the fault applies to a server of that transport and era. An empty kind is stdio and an empty era
// legacy, as in a scenario.
func (k Kind) Applies(kind messages.TransportKind, era messages.Era) bool {
	if kind == "" {
		kind = messages.Stdio
	}
	if era == messages.EraAuto {
		era = messages.EraLegacy
	}
	return slices.Contains(k.Kinds, kind) && slices.Contains(k.Eras, era)
}

// In reports whether the fault can be done in a tier.
func (k Kind) In(tier string) bool { return slices.Contains(k.Tiers, tier) }

// Check returns what is wrong with the parameters, or that the fault does not apply to such a server. The error names the
// fault, the parameter, what was expected, and the nearest word if one is near.
func (k Kind) Check(params map[string]string, kind messages.TransportKind, era messages.Era) error {
	if !k.Applies(kind, era) {
		return fmt.Errorf("the fault %q cannot befall a server of kind %s and era %s: it belongs to kind %s, era %s", k.Name,
			orDefault(string(kind), string(messages.Stdio)), orDefault(string(era), string(messages.EraLegacy)), joinWords(k.Kinds), joinWords(k.Eras))
	}
	if err := k.CheckParams(params); err != nil {
		return err
	}
	if kind == messages.WebSocket && k.With(params).Text("when") == "call" {
		return fmt.Errorf("parameter %q of the fault %q: a websocket has no statuses after it was opened: say handshake", "when", k.Name)
	}
	return nil
}

// CheckParams is the part of Check that needs no server.
func (k Kind) CheckParams(params map[string]string) error {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	// In sorted order the same mistakes give the same error each time.
	slices.Sort(names)
	for _, name := range names {
		p, ok := k.findParam(name)
		if !ok {
			return k.unknownParamError(name)
		}
		if problem := p.valueProblem(params[name]); problem != "" {
			return fmt.Errorf("parameter %q of the fault %q: %s", name, k.Name, problem)
		}
	}
	return nil
}

// findParam returns the parameter with a name, false if the fault has none.
func (k Kind) findParam(name string) (Param, bool) {
	i := slices.IndexFunc(k.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return k.Params[i], true
}

// unknownParamError names the nearest parameter, or all of them.
func (k Kind) unknownParamError(name string) error {
	if len(k.Params) == 0 {
		return fmt.Errorf("the fault %q has no parameter %q: it has none", k.Name, name)
	}
	names := make([]string, len(k.Params))
	for i, p := range k.Params {
		names[i] = p.Name
	}
	if near := messages.Nearest(name, names); near != "" {
		return fmt.Errorf("the fault %q has no parameter %q: did you mean %q?", k.Name, name, near)
	}
	return fmt.Errorf("the fault %q has no parameter %q: it has %s", k.Name, name, strings.Join(names, ", "))
}

// orDefault returns fallback for an empty text.
func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// joinWords joins words by commas, for an error.
func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
