package main

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

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// checkTime bounds the check against one schema: a few hundred bytes of references can ask for years of it.
const checkTime = 2 * time.Second

// schemaURL is what the schema is called while it is compiled. Its scheme keeps relative references from becoming URLs
// that exist.
const schemaURL = "mcp-tool:///schema"

// noLoader refuses every reference to another document: a server must not make us fetch what it likes.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, &jsonschema.LoadURLError{URL: url, Err: errors.New("nothing is fetched")}
}

// unreadableRegexp stands in for a regular expression that Go cannot read (JavaScript has more of them). It finds nothing wrong.
type unreadableRegexp string

func (unreadableRegexp) MatchString(string) bool { return true }
func (a unreadableRegexp) String() string        { return string(a) }

func lenientRegexp(s string) (jsonschema.Regexp, error) {
	if re, err := regexp.Compile(s); err == nil {
		return re, nil
	}
	return unreadableRegexp(s), nil
}

// checkResult is what a check found: faults, each as a sentence that names the field; or why nothing could be checked.
type checkResult struct {
	faults    []string
	unchecked string
}

// checkValue compares a value with the schema. A schema that cannot be understood finds no fault and says why.
func (s *schema) checkValue(raw json.RawMessage) checkResult {
	if s.bad {
		return checkResult{unchecked: "it is no JSON"}
	}
	if s.doc == nil {
		return checkResult{}
	}
	done := make(chan checkResult, 1)
	go func() { // a check without end is left to itself, and ends with this process
		defer func() {
			// The library has met fewer schemas than there are.
			if recover() != nil {
				done <- checkResult{unchecked: "the library that reads it gave up"}
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
		return checkResult{unchecked: "a check against it takes too long"}
	}
}

func (s *schema) validateValue(raw json.RawMessage) checkResult {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020) // what the specification says of a schema without $schema
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	if err := c.AddResource(schemaURL, s.doc); err != nil {
		return checkResult{unchecked: s.unusableReason(err)}
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return checkResult{unchecked: s.unusableReason(err)}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return checkResult{faults: []string{s.whole + ": no JSON: " + messages.Line(err.Error(), 200)}}
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(value); err == nil {
		return checkResult{}
	} else if !errors.As(err, &invalid) {
		return checkResult{unchecked: messages.Line(err.Error(), 200)}
	}
	var faults []string
	s.collectFaults(invalid, &faults)
	slices.Sort(faults)
	return checkResult{faults: slices.Compact(faults)}
}

// unusableReason says why a schema cannot be used, as a clause.
func (s *schema) unusableReason(err error) string {
	var load *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	switch {
	case errors.As(err, &load) && load.URL == s.root["$schema"]:
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

// collectFaults goes down to the causes that a person can mend. Of alternatives (anyOf, oneOf) those are told that are about
// the same place; naming every branch helps nobody.
func (s *schema) collectFaults(e *jsonschema.ValidationError, out *[]string) {
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

// typeChoiceText says of a failed choice of types what they are, if nothing but the type is wrong.
func (s *schema) typeChoiceText(e *jsonschema.ValidationError) string {
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

var english = message.NewPrinter(language.English)

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

// fieldName names the place of a value: argument "a.b[2]".
func (s *schema) fieldName(path []string) string {
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

// missingHint describes a property that is missing at the top level: its type and the start of its description.
func (s *schema) missingHint(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	var parts []string
	if p, ok := s.propertySchema(name); ok {
		if types := s.allowedTypes(p); len(types) > 0 {
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

// suggestName suggests a name of the top level.
func (s *schema) suggestName(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	names := s.propertyNames()
	switch near := messages.Nearest(name, names); {
	case near != "":
		return fmt.Sprintf("; did you mean %q?", messages.Line(near, 80))
	case len(names) == 0:
		return "; it takes none"
	}
	return "; it knows " + joinNames(names)
}

// misspeltArg names an argument that was typed, that the tool does not know and that is nearly one which it knows and was not
// given; empty if there is none. Most schemas allow unknown names by saying nothing about them, so that a tool does something
// else than was meant and says nothing. A schema that speaks of further names is left to its own rules.
func (s *schema) misspeltArg(typed []typedArg, args json.RawMessage) string {
	for _, word := range []string{"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref"} {
		if _, ok := s.root[word]; ok {
			return ""
		}
	}
	all := s.propertyNames()
	names := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return rawjson.Member(args, name) != nil })
	for _, a := range typed {
		if slices.Contains(all, a.key) {
			continue
		}
		if near := messages.Nearest(a.key, names); near != "" {
			return fmt.Sprintf("%s is not known to the tool; did you mean %q? --args sends it all the same", s.fieldName([]string{a.key}),
				messages.Line(near, 80))
		}
	}
	return ""
}
