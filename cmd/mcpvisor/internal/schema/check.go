package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// checkTime bounds the check against one schema, because a few hundred bytes of nested references can take years to check.
const checkTime = 2 * time.Second

// schemaURL is the URL under which a schema is compiled. Its scheme keeps relative references from becoming URLs that exist.
const schemaURL = "mcp-tool:///schema"

// noLoader refuses every reference to another document: a server must not make this program fetch what it likes.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, &jsonschema.LoadURLError{URL: url, Err: errors.New("nothing is fetched")}
}

// unreadableRegexp takes the place of a regular expression that Go cannot compile; JavaScript, which schemas are written for,
// knows more. It matches everything, so that it finds no fault.
type unreadableRegexp string

func (unreadableRegexp) MatchString(string) bool { return true }
func (a unreadableRegexp) String() string        { return string(a) }

// lenientRegexp compiles a regular expression, and accepts any.
func lenientRegexp(s string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(s); err == nil {
		return re, nil
	}
	return unreadableRegexp(s), nil
}

// checkResult is the outcome of a check: faults, each a sentence that names the field, or in unchecked why nothing could be
// checked. Both are empty if all is well.
type checkResult struct {
	Faults    []string
	Unchecked string
}

// CheckValue checks a value against the schema, for at most checkTime. A schema that cannot be used finds no fault and says
// why, because the server knows better than this program what it accepts.
func (s *Schema) CheckValue(raw json.RawMessage) checkResult {
	if s.bad {
		return checkResult{Unchecked: "it is no JSON"}
	}
	if s.doc == nil {
		return checkResult{}
	}
	done := make(chan checkResult, 1)
	go func() { // a check that does not end cannot be cancelled, and ends with this process
		defer func() {
			// The library may panic on schemas that it has not met in its tests.
			if recover() != nil {
				done <- checkResult{Unchecked: "the library that reads it gave up"}
			}
		}()
		done <- s.validateValue(raw)
	}()
	t := time.NewTimer(checkTime)
	defer t.Stop()
	select {
	case v := <-done:
		return v
	case <-t.C:
		return checkResult{Unchecked: "a check against it takes too long"}
	}
}

// validateValue compiles the schema and validates the value.
func (s *Schema) validateValue(raw json.RawMessage) checkResult {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // the specification's default for a schema without $schema
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	if err := c.AddResource(schemaURL, s.doc); err != nil {
		return checkResult{Unchecked: s.unusableReason(err)}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return checkResult{Unchecked: s.unusableReason(err)}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return checkResult{Faults: []string{s.whole + ": no JSON: " + messages.Line(err.Error(), 200)}}
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(value); err == nil {
		return checkResult{}
	} else if !errors.As(err, &invalid) {
		return checkResult{Unchecked: messages.Line(err.Error(), 200)}
	}
	var faults []string
	s.collectFaults(invalid, &faults)
	slices.Sort(faults)
	return checkResult{Faults: slices.Compact(faults)}
}

// unusableReason says why a schema cannot be used, as a clause.
func (s *Schema) unusableReason(err error) string {
	var load *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	switch {
	case errors.As(err, &load) && load.URL == s.Root["$schema"]:
		return "its $schema names a draft that is not known"
	case errors.As(err, &load):
		return "it refers to another document, and none is fetched"
	case errors.As(err, &invalid):
		return "it breaks the rules of JSON Schema"
	case errors.As(err, &pointer), errors.As(err, &anchor):
		return "it refers to a part of itself that is not there"
	}
	return messages.Line(err.Error(), 200)
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
