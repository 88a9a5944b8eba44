// Package schema reads the JSON schemas of tools and forms, makes the JSON arguments of a call from what a person typed, and
// checks them before anything is sent.
//
// How it fits: call and permissions read the schema of a tool with [ReadInput], make its arguments with [SplitArgs] and
// [BuildArgs], and check them with [Schema.CheckValue]. The forms of servers (package ask) use the same checks. A schema comes
// from a stranger: one that cannot be read checks nothing and says so, and package output bounds the
// check of one value.
//
// Guarantees: what is sent is what the person typed or a value that the schema demands in its place (a number, a boolean, a list); no
// default is filled in. The check of one value ends after a bounded time, whatever the schema says.
//
// Not promised: that a server accepts what the schema accepts, and a check by a schema that this program cannot read.
package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a tool's input or output schema, as far as this program understands it. A server sent it, so that nothing about its
// form is certain: it may be invalid, cyclic or huge.
type Schema struct {
	// part and whole are the words in errors for a value inside of what is checked ("argument"), and for all of it.
	part, whole string
	// raw is the schema as the server sent it, nil if there is none; Root is the same, decoded, if it is an object.
	raw  json.RawMessage
	Root map[string]any
}

// ReadInput reads the schema of a tool's arguments.
func ReadInput(raw json.RawMessage) *Schema {
	return Read(raw, "argument", "the arguments")
}

// Read reads a schema; part and whole are its words for errors. It does not fail: a schema that cannot be read checks
// nothing.
func Read(raw json.RawMessage, part, whole string) *Schema {
	s := &Schema{part: part, whole: whole}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return s
	}
	s.raw = raw
	// CheckValue reports a text that is no JSON.
	if doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw)); err == nil {
		s.Root, _ = doc.(map[string]any)
	}
	return s
}

// PropertySchema returns the schema of a top-level property.
func (s *Schema) PropertySchema(name string) (map[string]any, bool) {
	props, _ := s.Root["properties"].(map[string]any)
	p, ok := props[name].(map[string]any)
	return p, ok
}

// PropertyNames returns the names of the top-level properties, sorted.
func (s *Schema) PropertyNames() []string {
	props, _ := s.Root["properties"].(map[string]any)
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// AllowedTypes returns the JSON types that a part of the schema allows; nil if it does not restrict them. It follows references
// within the document and alternatives, for at most 1000 steps, so that cyclic references end.
func (s *Schema) AllowedTypes(at map[string]any) []string {
	steps := 1000
	return typesOf(s.Root, at, &steps)
}

// typesOf does the work of AllowedTypes. steps is shared by all branches.
func typesOf(root, at map[string]any, steps *int) []string {
	if *steps--; *steps < 0 {
		return nil
	}
	if ref, ok := at["$ref"].(string); ok {
		if target, ok := resolveRef(root, ref); ok {
			return typesOf(root, target, steps)
		}
		return nil
	}
	switch t := at["type"].(type) {
	case string:
		// "type" may be a list by the specification of JSON Schema.
		return []string{t}
	case []any:
		var types []string
		for _, v := range t {
			if word, ok := v.(string); ok {
				types = append(types, word)
			}
		}
		return types
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		branches, ok := at[key].([]any)
		if !ok {
			continue
		}
		var types []string
		for _, b := range branches {
			branch, _ := b.(map[string]any)
			branchTypes := typesOf(root, branch, steps)
			if len(branchTypes) == 0 {
				return nil // one branch allows anything
			}
			types = append(types, branchTypes...)
		}
		slices.Sort(types)
		return slices.Compact(types)
	}
	if constant, ok := at["const"]; ok {
		return valueTypes([]any{constant})
	}
	if enum, ok := at["enum"].([]any); ok {
		return valueTypes(enum)
	}
	return nil
}

// resolveRef follows a reference within the document, such as #/$defs/name. References to other documents are not followed.
func resolveRef(root map[string]any, ref string) (map[string]any, bool) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	at := root
	for part := range strings.SplitSeq(path, "/") {
		next, ok := at[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// valueTypes returns the types of constant values, sorted and without duplicates.
func valueTypes(values []any) []string {
	var types []string
	for _, v := range values {
		types = append(types, typeOf(v))
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// typeOf returns the JSON type of a decoded value. An integer is a "number"; only the schema knows the difference.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
