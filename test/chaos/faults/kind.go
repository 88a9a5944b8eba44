// Package faults is the catalogue of what can break: every fault by its name, with what it does, its parameters, and the
// servers that it can befall. It says nothing of how a fault is done: package peer does it.
//
//	k, ok := faults.Find("throttle")
//	err := k.Check(map[string]string{"after": "30s"}, messages.HTTP, messages.EraLegacy)
//	after := k.With(values).Duration("after")
//
// A fault lasts from its begin to its end, and heals then. An instant happens at its begin and has no end.
package faults

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The tiers in which a fault can be done, in the words of package scenario.
const (
	// Sim is virtual time.
	Sim = "sim"
	// Real is processes and sockets.
	Real = "real"
)

// Kind is one fault.
type Kind struct {
	// Name is what a scenario calls it. ID is the row of the list of field reports that it makes happen first of all
	// ("P4"), Also are further ones.
	Name string
	ID   string
	Also []string
	// Description is one sentence: what the server does, or what is done to it.
	Description string
	Params      []Param
	// Kinds are the transports of the servers that it can befall, Eras their eras, Tiers where it can be done.
	Kinds []messages.TransportKind
	Eras  []messages.Era
	Tiers []string
	// Instant: it happens at its begin. Machine: it befalls the machine, not one server of it.
	Instant      bool
	WholeMachine bool
	// EndsConnections: it ends connections that stand, or makes them useless, so that the manager must connect again.
	EndsConnections bool
}

// All are all faults, sorted by name. The slice is the caller's.
func All() []Kind { return slices.Clone(catalogue) }

// Find finds a fault.
func Find(name string) (Kind, bool) {
	i, ok := slices.BinarySearchFunc(catalogue, name, func(k Kind, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return Kind{}, false
	}
	return catalogue[i], true
}

// Nearest is the name of a fault that a misspelt one may have meant, empty if none is near.
func Nearest(name string) string {
	names := make([]string, len(catalogue))
	for i, k := range catalogue {
		names[i] = k.Name
	}
	return messages.Nearest(name, names)
}

// Applies reports whether the fault can befall a server of that transport and era. An empty kind is stdio, an empty era
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

// Check says what is wrong with parameters, or that the fault cannot befall such a server. The error names the fault, the
// parameter, what was expected, and the nearest word if one is near.
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
	slices.Sort(names) // the same error each time
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

func (k Kind) findParam(name string) (Param, bool) {
	i := slices.IndexFunc(k.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return k.Params[i], true
}

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

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
