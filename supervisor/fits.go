package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A form is what a server wants to know of a person, as a schema. It comes from the server: it is bounded in every
// direction, and nothing that it refers to is fetched.
//
// 2025-11-25, Elicitation: "Clients SHOULD validate all responses against the provided schema".
type form struct {
	doc    map[string]any
	schema *jsonschema.Schema
}

const (
	// maxForm bounds a form and an answer to it, in bytes; maxFormNodes what a form has of parts when its references are
	// followed, so that a check ends soon. A form is flat; no real one comes near.
	maxForm      = 256 << 10
	maxFormNodes = 20_000
	maxFormDepth = 64

	formURL = "form:///"
)

// readForm makes a form of a requested schema, or says what is wrong with it.
func readForm(raw json.RawMessage) (f *form, err error) {
	defer func() {
		if r := recover(); r != nil { // the library has met fewer schemas than there are
			f, err = nil, errors.New("the library that reads it gave up")
		}
	}()
	if len(raw) > maxForm {
		return nil, fmt.Errorf("it has more than %d KiB", maxForm>>10)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object")
	}
	left := maxFormNodes
	if err := countForm(root, root, &left, 0); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	// 2025-11-25: "JSON Schema 2020-12 as the default dialect".
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(fetchNothing{})
	c.UseRegexpEngine(lenient)
	c.AssertFormat()
	if err := c.AddResource(formURL, doc); err != nil {
		return nil, err
	}
	schema, err := c.Compile(formURL)
	return &form{doc: root, schema: schema}, err
}

// countForm walks a schema with its references followed.
func countForm(root map[string]any, at any, left *int, depth int) error {
	if *left--; *left < 0 || depth > maxFormDepth {
		return errors.New("it is too large, or refers to itself")
	}
	switch v := at.(type) {
	case map[string]any:
		for key, part := range v {
			if ref, ok := part.(string); ok && (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") {
				target, found := within(root, ref)
				if !found {
					return errors.New("it refers to something that it does not hold")
				}
				part = target
			}
			if err := countForm(root, part, left, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, part := range v {
			if err := countForm(root, part, left, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// within follows a reference inside of the document: #/$defs/name.
func within(root map[string]any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	var at any = root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" {
			continue
		}
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return nil, false
		}
	}
	return at, true
}

// check says how an answer does not fit; "" if it does. What it lacks and the form has a default for is filled in first,
// as it will be before the server sees it. The text names places, and no value: what a person typed is not for logs.
func (f *form) check(content json.RawMessage) (wrong string) {
	defer func() {
		if recover() != nil {
			wrong = "it could not be checked"
		}
	}()
	if len(content) > maxForm {
		return fmt.Sprintf("it has more than %d KiB", maxForm>>10)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		content = json.RawMessage(`{}`)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		return "it is no JSON"
	}
	object, ok := value.(map[string]any)
	if !ok {
		return "it is not an object"
	}
	properties, _ := f.doc["properties"].(map[string]any)
	for name, part := range properties {
		part, _ := part.(map[string]any)
		if preset, any := part["default"]; any {
			if _, there := object[name]; !there {
				object[name] = preset
			}
		}
	}
	var invalid *jsonschema.ValidationError
	switch err := f.schema.Validate(object); {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return strings.Join(places(invalid, nil), ", ")
	default:
		return "it could not be checked"
	}
}

// places are where an answer breaks which rule.
func places(e *jsonschema.ValidationError, out []string) []string {
	if len(e.Causes) == 0 && len(out) < 10 {
		at := messages.Line("/"+strings.Join(e.InstanceLocation, "/"), 100)
		return append(out, at+" ("+strings.Join(e.ErrorKind.KeywordPath(), "/")+")")
	}
	for _, cause := range e.Causes {
		out = places(cause, out)
	}
	return out
}

type fetchNothing struct{}

func (fetchNothing) Load(string) (any, error) { return nil, errors.New("nothing is fetched") }

// lenient takes patterns that Go's engine cannot read as matching everything: they are in another dialect.
func lenient(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil //nolint:nilerr // a pattern in another dialect is no fault of the answer
	}
	return re, nil
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }
