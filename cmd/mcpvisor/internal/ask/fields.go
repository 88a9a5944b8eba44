package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	forms "github.com/mcpvisor/mcpvisor/supervisor/output"
)

// formField is one field of a form that a server asks the person to fill in: a property of its schema, in the schema's order.
//
// 2025-11-25, Elicitation: "requestedSchema … restricted to flat objects with primitive properties only". A property that is
// more than that is asked for as JSON.
type formField struct {
	name, title, description string
	required                 bool
	kind                     fieldKind
	format                   string // the schema's format: email, uri, date, date-time or empty
	choices                  []choice
	preset                   json.RawMessage // the default that the server proposes; nil if none
	schema                   *schema.Schema  // of this property alone
	minItems, maxItems       *int            // nil: no bound
	minLength, maxLength     *int
	minimum, maximum         string // as the server wrote them, for the hint; empty if there are none
}

// fieldKind says how a field is asked for and how its input is read.
type fieldKind int

const (
	// Each kind has its own input in parseInput; jsonField is the last resort for schemas that are more than the specification
	// allows.
	textField fieldKind = iota
	numberField
	integerField
	yesNoField
	choiceField
	choicesField // several of the choices
	jsonField    // anything that the other kinds do not cover
)

// choice is one of the values that a field can have, and the title under which it is shown.
type choice struct{ value, title string }

// String returns the choice for a line of the terminal: its title with the value behind it, or the value alone.
func (c choice) String() string {
	if c.title != "" && c.title != c.value {
		return messages.Line(c.title, 80) + " (" + messages.Line(c.value, 60) + ")"
	}
	return messages.Line(c.value, 80)
}

// property holds the parts of a property's schema that choose the kind of a field. Enum with EnumNames is the older form of
// titled choices, OneOf the newer one; servers use both.
type property struct {
	Type        json.RawMessage `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Enum        []any           `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []titledValue   `json:"oneOf"`
	Items       *struct {
		Enum  []any         `json:"enum"`
		AnyOf []titledValue `json:"anyOf"`
		OneOf []titledValue `json:"oneOf"`
	} `json:"items"`
	MinItems  *int            `json:"minItems"`
	MaxItems  *int            `json:"maxItems"`
	MinLength *int            `json:"minLength"`
	MaxLength *int            `json:"maxLength"`
	Minimum   json.RawMessage `json:"minimum"`
	Maximum   json.RawMessage `json:"maximum"`
}

// titledValue is one choice of the newer form.
type titledValue struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// fieldsOf reads the schema of a form. The properties keep the order in which the server wrote them, since forms are meant to
// be read in that order. It returns an error if the schema is no object of properties.
func fieldsOf(raw json.RawMessage) ([]formField, error) {
	fields, err := forms.ReadForm(raw)
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be read: %w", err)
	}
	out := make([]formField, len(fields))
	for i, field := range fields {
		out[i] = fieldOf(field)
	}
	return out, nil
}

// fieldOf returns the field of one property. A property that cannot be read, or whose type is not simple, is asked for as JSON,
// and its answer is checked against the schema as a whole.
func fieldOf(field forms.Field) formField {
	var p property
	f := formField{
		kind: jsonField, schema: schema.Read(field.Schema, "field", "the value"), name: field.Name, required: field.Required,
	}
	if err := rawjson.Unmarshal(field.Schema, &p); err != nil {
		return f // asked for as JSON, and checked against the schema as a whole
	}
	f.title, f.description, f.format, f.preset = p.Title, p.Description, p.Format, field.Default
	f.minItems, f.maxItems, f.minLength, f.maxLength = p.MinItems, p.MaxItems, p.MinLength, p.MaxLength
	f.minimum, f.maximum = numberOf(p.Minimum), numberOf(p.Maximum)
	kind, _ := rawjson.Text(p.Type) // a list of types yields "" here, and becomes a JSON field
	switch {
	case kind == "boolean":
		f.kind = yesNoField
	case kind == "number":
		f.kind = numberField
	case kind == "integer":
		f.kind = integerField
	case kind == "string" || kind == "" && (p.Enum != nil || p.OneOf != nil):
		f.kind = textField
		if list, ok := choicesOf(p.Enum, p.EnumNames, p.OneOf); ok {
			f.kind, f.choices = choiceField, list
		}
	case kind == "array" && p.Items != nil:
		if list, ok := choicesOf(p.Items.Enum, nil, slices.Concat(p.Items.AnyOf, p.Items.OneOf)); ok {
			f.kind, f.choices = choicesField, list
		}
	}
	return f
}

// numberOf returns a JSON number as it is written, or "" for any other value.
func numberOf(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return ""
	}
	return string(raw)
}

// choicesOf returns the choices of an enum with its names (the older form) or of titled options (the newer one). ok is false if
// there are none, or one is not a string.
func choicesOf(enum []any, names []string, options []titledValue) (out []choice, ok bool) {
	for i, v := range enum {
		s, text := v.(string)
		if !text {
			return nil, false
		}
		c := choice{value: s}
		if i < len(names) {
			c.title = names[i]
		}
		out = append(out, c)
	}
	for _, o := range options {
		s, text := o.Const.(string)
		if !text {
			return nil, false
		}
		out = append(out, choice{s, o.Title})
	}
	return out, len(out) > 0
}

// acceptsNumbers reports whether choices may be named by their number in the list. They may not if a value or title is a number
// itself, because "2" would be ambiguous.
func (f *formField) acceptsNumbers() bool {
	return !slices.ContainsFunc(f.choices, func(c choice) bool {
		_, err := strconv.Atoi(c.value)
		_, named := strconv.Atoi(c.title)
		return err == nil || named == nil
	})
}

// label returns the quoted name of the field, with its title in front if it has one. Both are cut, because the server wrote
// them.
func (f *formField) label() string {
	if f.title != "" && f.title != f.name {
		return strconv.Quote(messages.Line(f.title, 80)) + " (" + strconv.Quote(messages.Line(f.name, 60)) + ")"
	}
	return strconv.Quote(messages.Line(f.name, 80))
}

// inputText says what the field takes, in a few words, for the question and for errors.
func (f *formField) inputText() string {
	var words []string
	switch f.kind {
	case textField:
		words = append(words, "text")
		if example := examples[f.format]; example != "" {
			words = []string{example}
		}
		words = append(words, rangeText(f.minLength, f.maxLength, "characters")...)
	case numberField, integerField:
		word := "number"
		if f.kind == integerField {
			word = "whole number"
		}
		switch lo, hi := f.minimum, f.maximum; {
		case lo != "" && hi != "":
			word += " from " + lo + " to " + hi
		case lo != "":
			word += ", at least " + lo
		case hi != "":
			word += ", at most " + hi
		}
		words = append(words, word)
	case yesNoField:
		words = append(words, "yes or no")
	case choiceField:
		words = append(words, "one of these")
	case choicesField:
		words = append(words, "any of these, with commas between them")
		words = append(words, rangeText(f.minItems, f.maxItems, "of them")...)
	case jsonField:
		words = append(words, "JSON")
	}
	return strings.Join(words, ", ")
}

// inputHint returns inputText, and whether the field may be left out.
func (f *formField) inputHint() string {
	if f.required {
		return f.inputText()
	}
	return f.inputText() + ", optional"
}

// examples says in words what each format is; formats that are missing here are not checked and not mentioned.
var examples = map[string]string{
	"email": "e-mail address", "uri": "URL", "date": "date, such as 2026-01-31",
	"date-time": "date and time, such as 2026-01-31T14:30:00Z",
}

// rangeText says how many of a unit are allowed, as zero or one text. A lower bound of 0 says nothing and is left out.
func rangeText(lo, hi *int, unit string) []string {
	switch {
	case lo != nil && *lo > 0 && hi != nil:
		return []string{fmt.Sprintf("%d to %d %s", *lo, *hi, unit)}
	case lo != nil && *lo > 0:
		return []string{fmt.Sprintf("at least %d %s", *lo, unit)}
	case hi != nil:
		return []string{fmt.Sprintf("at most %d %s", *hi, unit)}
	}
	return nil
}

// parseInput turns what was typed into the field's JSON value, or returns an error that says why it does not fit. typed is not
// empty; two double quotes stand for the empty text, which could not be typed otherwise.
func (f *formField) parseInput(typed string) (json.RawMessage, error) {
	var v json.RawMessage
	switch f.kind {
	case textField:
		if typed == `""` {
			typed = ""
		}
		v = schema.EncodeJSON(typed)
	case numberField, integerField:
		n := json.RawMessage(typed)
		// A number beyond float64 is a mistake, and checking 1e999999999 exactly against the schema would take for ever.
		if _, err := strconv.ParseFloat(typed, 64); err != nil || !json.Valid(n) {
			return nil, errors.New("that is no number; write it with digits, such as 3 or 2.5")
		}
		v = n
	case yesNoField:
		switch strings.ToLower(typed) {
		case "y", "yes", "true":
			v = json.RawMessage("true")
		case "n", "no", "false":
			v = json.RawMessage("false")
		default:
			return nil, errors.New("write yes or no")
		}
	case choiceField:
		value, err := f.parseChoice(typed)
		if err != nil {
			return nil, err
		}
		v = schema.EncodeJSON(value)
	case choicesField:
		values := []string{}
		for part := range strings.SplitSeq(typed, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			value, err := f.parseChoice(part)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		v = schema.EncodeJSON(values)
	case jsonField:
		if v = json.RawMessage(typed); !json.Valid(v) {
			return nil, errors.New("that is no JSON: " + schema.JSONProblem(v))
		}
	}
	return v, f.checkValue(v)
}

// parseChoice finds the choice that was typed: an exact value first, then its number, then a value or title in any case. This
// order lets a value win that looks like another choice's number or title.
func (f *formField) parseChoice(typed string) (string, error) {
	for _, c := range f.choices {
		if typed == c.value {
			return c.value, nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && f.acceptsNumbers() && n >= 1 && n <= len(f.choices) {
		return f.choices[n-1].value, nil
	}
	for _, c := range f.choices {
		if strings.EqualFold(typed, c.value) || c.title != "" && strings.EqualFold(typed, c.title) {
			return c.value, nil
		}
	}
	return "", fmt.Errorf("%q is none of the choices", messages.Line(typed, 60))
}

// checkValue checks a value of the field: first what has an error text of our own, then against the property's schema. Preset
// answers and defaults of the server pass through it as well as typed ones.
func (f *formField) checkValue(v json.RawMessage) error {
	if f.kind == textField {
		var s string
		if err := rawjson.Unmarshal(v, &s); err != nil {
			return errors.New("it is no text")
		}
		if n := utf8.RuneCountInString(s); f.minLength != nil && n < *f.minLength || f.maxLength != nil && n > *f.maxLength {
			return fmt.Errorf("it has %s; it takes %s", terminal.CountOf(n, "character"),
				strings.Join(rangeText(f.minLength, f.maxLength, "characters"), ""))
		}
		if err := checkFormat(f.format, s); err != nil {
			return err
		}
	}
	// The schema package's sentences about numbers and lists are long; inputText says the same in words of the question.
	faults := f.schema.CheckValue(v).Faults
	switch {
	case len(faults) == 0:
	case f.kind == numberField, f.kind == integerField, f.kind == choicesField:
		return fmt.Errorf("it takes: %s", f.inputText())
	default:
		return errors.New(strings.TrimPrefix(strings.Join(faults, "; "), "the value: "))
	}
	return nil
}

// checkFormat checks the formats that the specification names for forms; an unknown format passes.
func checkFormat(format, s string) error {
	bad := false
	switch format {
	case "email":
		a, err := mail.ParseAddress(s)
		bad = err != nil || a.Address != s
	case "uri":
		u, err := url.Parse(s)
		bad = err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" && u.Path == ""
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		bad = err != nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		bad = err != nil
	}
	if bad {
		return fmt.Errorf("that is no %s", examples[format])
	}
	return nil
}

// shortText is fullText cut to 200 runes, for a prompt.
func (f *formField) shortText(v json.RawMessage) string { return messages.Line(f.fullText(v), 200) }

// fullText shows a value in the summary before it is sent: all of it, with every character that a terminal would not show
// written out. A text with such characters, or with more than one line, is printed in the quotes and escapes of JSON.
func (f *formField) fullText(v json.RawMessage) string {
	// A choice is shown by its title, and by its value too, because the answer sends the value.
	name := func(s string) string {
		for _, c := range f.choices {
			if c.value == s && c.title != "" && c.title != c.value {
				return messages.Line(c.title, 80) + " (" + displayText(c.value) + ")"
			}
		}
		return displayText(s)
	}
	var list []string
	s, text := rawjson.Text(v)
	switch {
	case f.kind == yesNoField && string(v) == "true":
		return "yes"
	case f.kind == yesNoField && string(v) == "false":
		return "no"
	case text && f.kind == jsonField:
		return jsonLine(v)
	case text:
		return name(s)
	case f.kind == choicesField && rawjson.Unmarshal(v, &list) == nil:
		for i := range list {
			list[i] = name(list[i])
		}
		if len(list) == 0 {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	return jsonLine(v)
}

// displayText returns a text as it is if a terminal shows every character of it, and otherwise as JSON writes it.
func displayText(s string) string {
	if s != "" && messages.Line(s, 0) == s && messages.CountHidden(s) == 0 {
		return s
	}
	return jsonLine(rawjson.AppendText(nil, s))
}

// jsonLine returns JSON on one line. Characters that act on a terminal or are invisible there become escapes of JSON. What is
// no JSON is escaped as text.
func jsonLine(raw json.RawMessage) string {
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return messages.Escaped(string(raw))
	}
	text := line.String()
	if messages.CountHidden(text) == 0 {
		return messages.Printable(text)
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case messages.CountHidden(string(r)) == 0:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
