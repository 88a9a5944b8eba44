package output

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A form is what a server asks of a person (elicitation), as a schema: checked within the same bounds as an answer.
//
// 2025-11-25, Elicitation: "Clients SHOULD validate all responses against the provided schema".

// UnusableForm says why a form cannot be used; it is empty if it can.
func (c *Checker) UnusableForm(schema json.RawMessage) string { return c.schema(schema).unusable }

// Misfit says how what a person gave does not fit a form; it is empty if it does. What the content lacks and the form has
// a default for is filled in first, as it is before the server sees it. The text names places and rules and holds nothing
// of what was typed.
func (c *Checker) Misfit(schema, content json.RawMessage) string {
	s := c.schema(schema)
	if s.unusable != "" {
		return "the form cannot be used: " + s.unusable
	}
	if len(content) > maxContent {
		return "it is too large"
	}
	filled, ok := withDefaults(schema, content)
	if !ok {
		return "it is not an object"
	}
	unchecked, err := s.validate(filled)
	if unchecked != "" {
		return "it cannot be checked"
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return ""
	}
	places := rules(invalid, nil)
	slices.Sort(places)
	places = slices.Compact(places)
	return strings.Join(places[:min(len(places), maxFaults)], "; ")
}

// withDefaults adds the members that a form has a default for.
func withDefaults(schema, content json.RawMessage) (json.RawMessage, bool) {
	if len(content) == 0 || string(content) == "null" {
		content = json.RawMessage(`{}`)
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(content, &given) != nil || given == nil {
		return nil, false
	}
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &form) // a form without properties has no defaults
	for name, raw := range form.Properties {
		var part struct {
			Default json.RawMessage `json:"default"`
		}
		if _, there := given[name]; there || json.Unmarshal(raw, &part) != nil || part.Default == nil {
			continue
		}
		given[name] = part.Default
	}
	filled, err := json.Marshal(given)
	return filled, err == nil
}

// rules are the places where which rule of a form is broken.
func rules(e *jsonschema.ValidationError, out []string) []string {
	if len(out) >= maxCauses {
		return out
	}
	if len(e.Causes) == 0 {
		rule := strings.Join(e.ErrorKind.KeywordPath(), "/")
		if missing, ok := e.ErrorKind.(*kind.Required); ok {
			rule = "it has no " + names(missing.Missing)
		}
		return append(out, place(e.InstanceLocation)+": "+rule)
	}
	for _, cause := range e.Causes {
		out = rules(cause, out)
	}
	return out
}
