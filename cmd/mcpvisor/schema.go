package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpvisor/mcpvisor/messages"
)

// schema is a tool's input or output schema, as far as this program understands it.
type schema struct {
	// part and whole are what sentences call a value inside of what is checked, and all of it.
	part, whole string
	// root is the schema as decoded JSON; nil if there is none or it is no object.
	root map[string]any
	// compiled is nil if the schema cannot be checked against; unusable says why then, unless there is none.
	compiled *jsonschema.Schema
	unusable string
}

// schemaURL is what the schema is called while it is compiled. Its scheme keeps relative references from becoming URLs
// that exist.
const schemaURL = "mcp-tool:///schema"

// errRemote is what every reference to another document gets: a server must not make us fetch what it likes.
var errRemote = errors.New("it refers to another document, and none is fetched")

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errRemote }

// readInput reads the schema of a tool's arguments, readOutput that of its structured content.
func readInput(raw json.RawMessage) *schema  { return readSchema(raw, "argument", "the arguments") }
func readOutput(raw json.RawMessage) *schema { return readSchema(raw, "field", "structuredContent") }

// readSchema compiles a schema. It never fails: what cannot be understood is not checked, and says so.
func readSchema(raw json.RawMessage, part, whole string) (s *schema) {
	s = &schema{part: part, whole: whole}
	defer func() {
		// The schema comes from a server, and the library has met fewer of them than there are.
		if p := recover(); p != nil {
			s.compiled, s.unusable = nil, "the library that reads it gave up"
		}
	}()
	if len(bytes.TrimSpace(raw)) == 0 {
		return s
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		s.unusable = "it is no JSON"
		return s
	}
	s.root, _ = doc.(map[string]any)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // what the specification says of a schema without $schema
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		s.unusable = reasonOf(err)
		return s
	}
	if s.compiled, err = c.Compile(schemaURL); err != nil {
		s.compiled, s.unusable = nil, reasonOf(err)
	}
	return s
}

// reasonOf says why a schema cannot be used, as a clause.
func reasonOf(err error) string {
	var draft *jsonschema.UnsupportedDraftError
	var regex *jsonschema.InvalidRegexError
	switch {
	case errors.Is(err, errRemote):
		return errRemote.Error()
	case errors.As(err, &draft):
		return "its $schema names a draft that is not known"
	case errors.As(err, &regex):
		return "it holds a regular expression that cannot be read"
	}
	return messages.Line(err.Error(), 200)
}

// check compares a value with the schema and returns what is wrong, each as a sentence that names the field; nothing if
// the schema is unusable.
func (s *schema) check(raw json.RawMessage) (faults []string) {
	if s.compiled == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			faults, s.unusable = nil, "the library that checks against it gave up"
		}
	}()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return []string{"it is no JSON: " + messages.Line(err.Error(), 200)}
	}
	var invalid *jsonschema.ValidationError
	if err := s.compiled.Validate(value); err == nil {
		return nil
	} else if !errors.As(err, &invalid) {
		return []string{messages.Line(err.Error(), 200)}
	}
	s.explain(invalid, &faults)
	slices.Sort(faults)
	return slices.Compact(faults)
}

// explain goes down to the causes that a person can mend. Of alternatives (anyOf, oneOf) those are told that are about
// the same place; naming every branch helps nobody.
func (s *schema) explain(e *jsonschema.ValidationError, out *[]string) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if text := s.alternatives(e); text != "" {
			*out = append(*out, text)
			return
		}
	case *kind.Required:
		for _, name := range k.Missing {
			*out = append(*out, fmt.Sprintf("%s is missing%s", s.field(append(slices.Clone(e.InstanceLocation), name)),
				s.hint(e.InstanceLocation, name)))
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*out = append(*out, fmt.Sprintf("%s is not known to the tool%s",
				s.field(append(slices.Clone(e.InstanceLocation), name)), s.knownAt(e.InstanceLocation, name)))
		}
		return
	}
	if len(e.Causes) == 0 {
		*out = append(*out, s.field(e.InstanceLocation)+": "+say(e.ErrorKind))
		return
	}
	for _, cause := range e.Causes {
		s.explain(cause, out)
	}
}

// alternatives says of a failed choice of types what they are, if nothing but the type is wrong.
func (s *schema) alternatives(e *jsonschema.ValidationError) string {
	var want []string
	got := ""
	for _, c := range e.Causes {
		for len(c.Causes) == 1 {
			c = c.Causes[0]
		}
		t, ok := c.ErrorKind.(*kind.Type)
		if !ok || !slices.Equal(c.InstanceLocation, e.InstanceLocation) {
			return ""
		}
		got = t.Got
		want = append(want, t.Want...)
	}
	if len(want) == 0 {
		return ""
	}
	return s.field(e.InstanceLocation) + ": got " + got + ", want " + strings.Join(want, " or ")
}

var english = message.NewPrinter(language.English)

func say(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "got " + k.Got + ", want " + strings.Join(k.Want, " or ")
	case *kind.FalseSchema:
		return "it is not allowed"
	case *kind.Not:
		return "it is what the schema excludes"
	}
	return messages.Line(k.LocalizedString(english), 200)
}

// field names the place of a value: argument "a.b[2]".
func (s *schema) field(path []string) string {
	if len(path) == 0 {
		return s.whole
	}
	var b strings.Builder
	for i, p := range path {
		_, err := strconv.Atoi(p)
		switch {
		case err == nil && i > 0:
			b.WriteString("[" + p + "]")
		case i > 0:
			b.WriteString("." + p)
		default:
			b.WriteString(p)
		}
	}
	return s.part + " " + strconv.Quote(messages.Line(b.String(), 80))
}

// hint describes a property that is missing at the top level: its type and the start of its description.
func (s *schema) hint(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	var parts []string
	if p, ok := s.property(name); ok {
		if types := typesOf(s.root, p, 0); len(types) > 0 {
			parts = append(parts, strings.Join(types, " or "))
		}
		if d, ok := p["description"].(string); ok && d != "" {
			parts = append(parts, messages.Line(d, 80))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ": ") + ")"
}

// knownAt suggests a name of the top level.
func (s *schema) knownAt(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	names := s.properties()
	switch near := nearest(name, names); {
	case near != "":
		return fmt.Sprintf("; did you mean %q?", messages.Line(near, 80))
	case len(names) == 0:
		return "; it takes none"
	}
	return "; it knows " + enumeration(names)
}

// property is the schema of a top-level property.
func (s *schema) property(name string) (map[string]any, bool) {
	props, _ := s.root["properties"].(map[string]any)
	p, ok := props[name].(map[string]any)
	return p, ok
}

// properties are the names of the top-level properties, sorted.
func (s *schema) properties() []string {
	props, _ := s.root["properties"].(map[string]any)
	names := make([]string, 0, len(props))
	for name := range props {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// typesOf are the JSON types that a schema allows, in its order; nil if it does not say. References within the document
// and alternatives are followed, to a depth that no sensible schema reaches.
func typesOf(root, at map[string]any, depth int) []string {
	if depth > 8 {
		return nil
	}
	if ref, ok := at["$ref"].(string); ok {
		if target, ok := lookup(root, ref); ok {
			return typesOf(root, target, depth+1)
		}
		return nil
	}
	switch t := at["type"].(type) {
	case string:
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
			of := typesOf(root, branch, depth+1)
			if len(of) == 0 {
				return nil // one branch allows anything
			}
			types = append(types, of...)
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

// lookup follows a reference within the document: #/$defs/name.
func lookup(root map[string]any, ref string) (map[string]any, bool) {
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

func valueTypes(values []any) []string {
	var types []string
	for _, v := range values {
		types = append(types, typeOf(v))
	}
	slices.Sort(types)
	return slices.Compact(types)
}

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
