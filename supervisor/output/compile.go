package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/mcpvisor/mcpvisor/messages"
)

// schemaLocation is the base URI of a schema while it is compiled. Its scheme keeps relative references from becoming URLs
// that exist.
const schemaLocation = "mcp-tool:///output"

// compileSchema never fails: a schema that cannot be used has the reason in unusable.
func compileSchema(raw json.RawMessage) (s *compiledSchema) {
	s = &compiledSchema{raw: string(raw)}
	defer func() {
		if recover() != nil { // the library does not foresee every schema
			s.compiled, s.unusable = nil, "the library that reads it gave up"
		}
	}()
	if len(raw) > maxSchema {
		s.unusable = "it is too large"
		return s
	}
	// The size is counted on the decoded document, before the library builds anything from it.
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		s.unusable = "it is no JSON"
		return s
	}
	var size valueCount
	if excess := size.countValues(doc, maxSchemaDepth, maxSchemaValues); excess != "" {
		s.unusable = "it " + excess
		return s
	}
	// validate multiplies this by the values of an answer.
	s.constant = size.listed
	c := jsonschema.NewCompiler()
	// "If no $schema is present, JSON Schema 2020-12 is assumed", all versions since 2025-11-25 say in other words.
	c.DefaultDraft(jsonschema.Draft2020)
	// The loader is asked for every reference that leaves the document.
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(schemaLocation, doc); err != nil {
		s.unusable = unusableReason(doc, err)
		return s
	}
	compiled, err := c.Compile(schemaLocation)
	switch {
	case err != nil:
		s.unusable = unusableReason(doc, err)
	// The compiled schema may be larger than its text, because references are resolved.
	case !s.meter.meterAll(compiled):
		s.unusable = "it has too many parts"
	default:
		s.compiled = compiled
	}
	return s
}

// unusableReason returns why a schema cannot be used, as a clause. The library's own texts are meant for authors of schemas.
func unusableReason(doc any, err error) string {
	var load *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	// A schema may also be true or false.
	root, _ := doc.(map[string]any)
	switch {
	// The library loads an unknown dialect like any other document.
	case errors.As(err, &load) && load.URL == root["$schema"]:
		return "its $schema names a dialect that is not known"
	case errors.As(err, &load):
		return "it refers to another document, and none is fetched"
	case errors.As(err, &invalid):
		return "it breaks the rules of JSON Schema"
	case errors.As(err, &pointer), errors.As(err, &anchor):
		return "it refers to a part of itself that is not there"
	}
	return messages.Line(err.Error(), 200)
}

// maxCauses bounds the faults that are collected, of which a few are reported.
const maxCauses = 64

// explainFaults lists the faults, each as a clause that names the place; sorted, because the library walks through maps in any order.
func explainFaults(err error) (faults []string) {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil
	}
	var down func(e *jsonschema.ValidationError)
	down = func(e *jsonschema.ValidationError) {
		if len(faults) >= maxCauses {
			return
		}
		// Alternatives are not descended into: each has its own faults, most of which do not matter.
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf: // a reader gains nothing from every branch
			faults = append(faults, valuePath(e.InstanceLocation)+" fits none of the alternatives, or several")
			return
		}
		// Only the leaves of the error's tree say what is wrong; the nodes above repeat it.
		if len(e.Causes) == 0 {
			faults = append(faults, valuePath(e.InstanceLocation)+": "+describeError(e.ErrorKind))
			return
		}
		for _, cause := range e.Causes {
			down(cause)
		}
	}
	down(invalid)
	// Sorted and without repetitions, so that equal answers get equal texts.
	slices.Sort(faults)
	return slices.Compact(faults)
}

// english formats the library's texts, which it has in one language only.
var english = message.NewPrinter(language.English)

// describeError puts the common faults into plain words; for others the library's text is used.
func describeError(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "it is of type " + k.Got + ", not " + strings.Join(k.Want, " or ")
	case *kind.Required:
		return "it has no " + quoteNames(k.Missing)
	case *kind.AdditionalProperties:
		return "it has " + quoteNames(k.Properties) + ", which the schema does not know"
	case *kind.FalseSchema:
		return "it is not allowed"
	case *kind.Not:
		return "it is what the schema excludes"
	case *kind.Enum:
		return "it is none of the values that the schema lists"
	case *kind.Const:
		return "it is not the value that the schema names"
	}
	return messages.Line(k.LocalizedString(english), 200)
}

// quoteNames lists names for a text, at most maxProblems of them, each cut short.
func quoteNames(list []string) string {
	// The library returns names in the order of a map.
	list = slices.Sorted(slices.Values(list))
	more := ""
	if len(list) > maxProblems {
		list, more = list[:maxProblems], " and more"
	}
	quoted := make([]string, len(list))
	for i, name := range list {
		quoted[i] = strconv.Quote(messages.Line(name, 60))
	}
	return strings.Join(quoted, ", ") + more
}

// valuePath names a value of the answer by its path: structuredContent/items/2/id.
func valuePath(path []string) string {
	if len(path) == 0 {
		return "structuredContent"
	}
	return messages.Line("structuredContent/"+strings.Join(path, "/"), 100)
}
