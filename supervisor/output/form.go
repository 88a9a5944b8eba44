package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// A form is a server's question to the person (elicitation), described by a schema: checked within the same bounds as an answer.
//
// 2025-11-25, Elicitation: "Clients SHOULD validate all responses against the provided schema".

// UnusableForm returns why a form cannot be used; it is empty if it can. A form whose schema has, anywhere, two names that are
// equal or equal but for case is refused: readers differ in which of them they take, and the person would be shown one.
func (c *Checker) UnusableForm(schema json.RawMessage) string {
	if _, err := ReadForm(schema); err != nil {
		return err.Error()
	}
	return c.schemaFor(schema).unusable
}

// Misfit returns how the person's input violates a form; it is empty if it fits. Nothing is filled in: the server gets exactly this
// input. The text names places and rules and contains nothing of the input, because it is logged.
func (c *Checker) Misfit(schema, content json.RawMessage) string {
	s := c.schemaFor(schema)
	// UnusableForm has refused such a form before the person was asked; this protects other callers.
	if s.unusable != "" {
		return "the form cannot be used: " + s.unusable
	}
	// A person's input may come from another program.
	if len(content) > maxContent {
		return "it is too large"
	}
	if content = bytes.TrimSpace(content); len(content) == 0 || string(content) == "null" {
		content = json.RawMessage(`{}`)
	}
	if !rawjson.IsObject(content) {
		return "it is not an object"
	}
	// The server must read the same values as the check.
	if err := rawjson.CheckNames(content); err != nil {
		return "it cannot be read in one way: two names are equal or alike, or it is no JSON"
	}
	unchecked, err := s.validate(content, "the input", "the form")
	if unchecked != "" {
		return "it cannot be checked"
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return ""
	}
	// Sorted, so that the same input gives the same text.
	places := brokenRules(invalid, nil)
	slices.Sort(places)
	places = slices.Compact(places)
	return strings.Join(places[:min(len(places), maxProblems)], "; ")
}

// A Field is one property of a form.
type Field struct {
	Name     string
	Required bool
	// Schema is that of the field alone. Default is the server's proposal, on one line; nil if it has none.
	Schema, Default json.RawMessage
}

// ReadForm reads the schema of a form: its fields, in the order in which the server wrote them; none if it has no
// properties. All programs read forms with it, so that the person is shown what is checked and sent. Names count by their exact
// case. The error is a [*rawjson.NameError] for names that can be confused; no text quotes a value.
func ReadForm(schema json.RawMessage) ([]Field, error) {
	if err := rawjson.CheckNames(schema); err != nil {
		return nil, err
	}
	// Only these two members say which fields there are; the rest is the library's to check.
	var form struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := rawjson.Unmarshal(schema, &form); err != nil {
		return nil, err
	}
	// A form without properties asks for a yes or no only.
	if rawjson.IsNull(form.Properties) {
		return nil, nil
	}
	if !rawjson.IsObject(form.Properties) {
		return nil, errors.New("the properties of its schema are no object")
	}
	var fields []Field
	for o := rawjson.ObjectAt(form.Properties, 0, 0); o.Next(); {
		// The order of the server's text is the order in which the fields are shown.
		f := Field{Schema: o.Skip(), Name: string(o.Name)}
		f.Required = slices.Contains(form.Required, f.Name)
		// The proposal is kept as JSON, on one line, so that it can be shown and sent as it is.
		if preset := rawjson.Member(f.Schema, "default"); preset != nil {
			var line bytes.Buffer
			if err := json.Compact(&line, preset); err != nil {
				return nil, err
			}
			f.Default = line.Bytes()
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// FillDefaults returns the content of a form with the default of each field that has one and that the content leaves out. No
// content is an empty object. Members that are there stay byte for byte. The error is that of [ReadForm], or says that the content
// is no object.
func FillDefaults(schema, content json.RawMessage) (json.RawMessage, error) {
	fields, err := ReadForm(schema)
	if err != nil {
		return nil, err
	}
	if content = bytes.TrimSpace(content); len(content) == 0 {
		content = json.RawMessage("{}")
	}
	if err := rawjson.CheckNames(content); err != nil {
		return nil, err
	}
	// A form is always an object, so a program's other answer is its mistake.
	if !rawjson.IsObject(content) {
		return nil, errors.New("the content of a form is no object")
	}
	// The closing brace is cut off; members are appended and the object is closed again.
	filled := slices.Clone(content[:len(content)-1])
	empty := len(bytes.TrimSpace(filled[1:])) == 0
	for _, f := range fields {
		// A field that the content has keeps its value, even null.
		if f.Default == nil || rawjson.Member(content, f.Name) != nil {
			continue
		}
		if !empty {
			filled = append(filled, ',')
		}
		filled = append(append(rawjson.AppendText(filled, f.Name), ':'), f.Default...)
		empty = false
	}
	return append(filled, '}'), nil
}

// brokenRules collects the places of a form with the rules that they violate, without any value.
func brokenRules(e *jsonschema.ValidationError, out []string) []string {
	if len(out) >= maxCauses {
		return out
	}
	if len(e.Causes) == 0 {
		// The rule is named by its keyword in the schema.
		rule := strings.Join(e.ErrorKind.KeywordPath(), "/")
		// The names of missing fields are the server's own, so they may be named.
		if missing, ok := e.ErrorKind.(*kind.Required); ok {
			rule = "it has no " + quoteNames(missing.Missing)
		}
		return append(out, valuePath(e.InstanceLocation)+": "+rule)
	}
	for _, cause := range e.Causes {
		out = brokenRules(cause, out)
	}
	return out
}
