package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/output"
)

// checkResult is the outcome of a check: faults, each a sentence that names the field, or in unchecked why nothing could be
// checked. Both are empty if all is well.
type checkResult struct {
	Faults    []string
	Unchecked string
}

// CheckValue checks a value against the schema, within the bounds of package output. A schema that cannot be used finds no fault
// and says why, because the server knows better than this program what it accepts.
func (s *Schema) CheckValue(raw json.RawMessage) checkResult {
	if s.raw == nil {
		return checkResult{}
	}
	if !rawjson.Valid(raw) {
		return checkResult{Faults: []string{s.whole + ": no JSON: " + messages.Line(JSONProblem(raw), 200)}}
	}
	unchecked, invalid := output.Validate(s.raw, raw)
	if invalid == nil {
		return checkResult{Unchecked: unchecked}
	}
	var faults []string
	s.collectFaults(invalid, &faults)
	slices.Sort(faults)
	return checkResult{Faults: slices.Compact(faults)}
}

// collectFaults collects the causes of a failed validation that a person can correct, at the leaves of the tree of errors. Of
// alternatives it names the types together if only the type is wrong; one fault for every branch would confuse.
func (s *Schema) collectFaults(e *jsonschema.ValidationError, out *[]string) {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if text := s.typeChoiceText(e); text != "" {
			*out = append(*out, text)
			return
		}
	case *kind.Required:
		for _, name := range k.Missing {
			*out = append(*out, fmt.Sprintf("%s is missing%s", s.fieldName(append(slices.Clone(e.InstanceLocation), name)),
				s.missingHint(e.InstanceLocation, name)))
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*out = append(*out, fmt.Sprintf("%s is not known to the tool%s",
				s.fieldName(append(slices.Clone(e.InstanceLocation), name)), s.suggestName(e.InstanceLocation, name)))
		}
		return
	}
	if len(e.Causes) == 0 {
		*out = append(*out, s.fieldName(e.InstanceLocation)+": "+violationText(e.ErrorKind))
		return
	}
	for _, cause := range e.Causes {
		s.collectFaults(cause, out)
	}
}

// typeChoiceText describes failed alternatives that differ only in the type of the same value; "" if they differ in more.
func (s *Schema) typeChoiceText(e *jsonschema.ValidationError) string {
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
	return s.fieldName(e.InstanceLocation) + ": got " + got + ", want " + strings.Join(want, " or ")
}

// english prints the library's messages, which are made for translation.
var english = message.NewPrinter(language.English)

// violationText describes one violated rule of the schema.
func violationText(k jsonschema.ErrorKind) string {
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

// fieldName names the place of a value in dots and brackets: argument "a.b[2]".
func (s *Schema) fieldName(path []string) string {
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

// missingHint describes a missing property of the top level by its type and the beginning of its description.
func (s *Schema) missingHint(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	var parts []string
	if p, ok := s.PropertySchema(name); ok {
		if types := s.AllowedTypes(p); len(types) > 0 {
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

// suggestName returns the nearest property for a name that the schema does not know, or the list of its properties.
func (s *Schema) suggestName(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	names := s.PropertyNames()
	switch near := messages.Nearest(name, names); {
	case near != "":
		return fmt.Sprintf("; did you mean %q?", messages.Line(near, 80))
	case len(names) == 0:
		return "; it takes none"
	}
	return "; it knows " + terminal.JoinNames(names)
}

// MisspeltArg describes a typed argument that the tool does not know and that is nearly a property which was not given; "" if
// there is none. Most schemas allow unknown names because they say nothing about them, so that the tool would silently do
// something else than was meant. A schema that has a rule for further names is left to that rule.
func (s *Schema) MisspeltArg(typed []TypedArg, args json.RawMessage) string {
	for _, word := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref"} {
		if _, ok := s.Root[word]; ok {
			return ""
		}
	}
	all := s.PropertyNames()
	names := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return rawjson.Member(args, name) != nil })
	for _, a := range typed {
		if slices.Contains(all, a.Key) {
			continue
		}
		if near := messages.Nearest(a.Key, names); near != "" {
			return fmt.Sprintf("%s is not known to the tool; did you mean %q? --args sends it all the same", s.fieldName([]string{a.Key}),
				messages.Line(near, 80))
		}
	}
	return ""
}
