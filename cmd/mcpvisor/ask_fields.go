package main

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
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A formField is one field of a form that a server asks to be filled in: a property of its schema, in its order.
//
// 2025-11-25, Elicitation: "requestedSchema … restricted to flat objects with primitive properties only". What is more
// than that is asked for as JSON.
type formField struct {
	name, title, description string
	required                 bool
	kind                     fieldKind
	format                   string
	choices                  []choice
	preset                   json.RawMessage
	schema                   *schema // of this property alone
	minItems, maxItems       *int
	minLength, maxLength     *int
	minimum, maximum         json.Number
}

type fieldKind int

const (
	textField fieldKind = iota
	numberField
	integerField
	yesNoField
	choiceField
	choicesField
	jsonField
)

// choice is one of the values that a field can have, and how it is shown.
type choice struct{ value, title string }

func (c choice) String() string {
	if c.title != "" && c.title != c.value {
		return messages.Line(c.title, 80) + " (" + messages.Line(c.value, 60) + ")"
	}
	return messages.Line(c.value, 80)
}

// property is what the schema of a property may say.
type property struct {
	Type        json.RawMessage `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Default     json.RawMessage `json:"default"`
	Enum        []any           `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []titled        `json:"oneOf"`
	Items       *struct {
		Enum  []any    `json:"enum"`
		AnyOf []titled `json:"anyOf"`
		OneOf []titled `json:"oneOf"`
	} `json:"items"`
	MinItems  *int        `json:"minItems"`
	MaxItems  *int        `json:"maxItems"`
	MinLength *int        `json:"minLength"`
	MaxLength *int        `json:"maxLength"`
	Minimum   json.Number `json:"minimum"`
	Maximum   json.Number `json:"maximum"`
}

type titled struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// fieldsOf reads the schema of a form. Properties come in the order in which the server wrote them.
func fieldsOf(raw json.RawMessage) ([]formField, error) {
	var outer struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, errors.New("its schema cannot be read")
	}
	if len(outer.Properties) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(outer.Properties))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the properties of its schema are no object")
	}
	var out []formField
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("its schema cannot be read")
		}
		var at json.RawMessage
		if err := d.Decode(&at); err != nil {
			return nil, errors.New("its schema cannot be read")
		}
		f := fieldOf(at)
		f.name, _ = name.(string)
		f.required = slices.Contains(outer.Required, f.name)
		out = append(out, f)
	}
	return out, nil
}

func fieldOf(raw json.RawMessage) formField {
	var p property
	f := formField{kind: jsonField, schema: readSchema(raw, "field", "the value")}
	if err := json.Unmarshal(raw, &p); err != nil {
		return f // it is asked for as JSON, and checked against the schema as a whole
	}
	f.title, f.description, f.format, f.preset = p.Title, p.Description, p.Format, p.Default
	f.minItems, f.maxItems, f.minLength, f.maxLength = p.MinItems, p.MaxItems, p.MinLength, p.MaxLength
	f.minimum, f.maximum = p.Minimum, p.Maximum
	var kind string
	_ = json.Unmarshal(p.Type, &kind) // several types are none of the simple ones
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

// choicesOf are the texts to choose from, with the names of the older form and the titles of the newer one.
func choicesOf(enum []any, names []string, options []titled) (out []choice, ok bool) {
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

// numbered reports whether choices may be named by their number: not if a value looks like one.
func (f *formField) numbered() bool {
	return !slices.ContainsFunc(f.choices, func(c choice) bool {
		_, err := strconv.Atoi(c.value)
		_, named := strconv.Atoi(c.title)
		return err == nil || named == nil
	})
}

// label is what the field is called.
func (f *formField) label() string {
	if f.title != "" && f.title != f.name {
		return messages.Line(f.title, 80) + " (" + messages.Line(f.name, 60) + ")"
	}
	return messages.Line(f.name, 80)
}

// wants says what the field takes, in a few words.
func (f *formField) wants() string {
	var words []string
	switch f.kind {
	case textField:
		words = append(words, "text")
		if example := examples[f.format]; example != "" {
			words = []string{example}
		}
		words = append(words, between(f.minLength, f.maxLength, "characters")...)
	case numberField, integerField:
		word := "number"
		if f.kind == integerField {
			word = "whole number"
		}
		switch lo, hi := f.minimum.String(), f.maximum.String(); {
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
		words = append(words, between(f.minItems, f.maxItems, "of them")...)
	case jsonField:
		words = append(words, "JSON")
	}
	return strings.Join(words, ", ")
}

// hint is wants, and whether the field may be left out.
func (f *formField) hint() string {
	if f.required {
		return f.wants()
	}
	return f.wants() + ", optional"
}

var examples = map[string]string{
	"email": "e-mail address", "uri": "URL", "date": "date, such as 2026-01-31",
	"date-time": "date and time, such as 2026-01-31T14:30:00Z",
}

func between(lo, hi *int, of string) []string {
	switch {
	case lo != nil && *lo > 0 && hi != nil:
		return []string{fmt.Sprintf("%d to %d %s", *lo, *hi, of)}
	case lo != nil && *lo > 0:
		return []string{fmt.Sprintf("at least %d %s", *lo, of)}
	case hi != nil:
		return []string{fmt.Sprintf("at most %d %s", *hi, of)}
	}
	return nil
}

// read makes the field's JSON value of what was typed, or says why it does not fit.
func (f *formField) read(typed string) (json.RawMessage, error) {
	var v json.RawMessage
	switch f.kind {
	case textField:
		if typed == `""` {
			typed = ""
		}
		v = encode(typed)
	case numberField, integerField:
		n := json.RawMessage(typed)
		// What float64 cannot hold is no number that anybody means, and 1e999999999 takes an exact check for ever.
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
		value, err := f.chosen(typed)
		if err != nil {
			return nil, err
		}
		v = encode(value)
	case choicesField:
		values := []string{}
		for part := range strings.SplitSeq(typed, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			value, err := f.chosen(part)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		v = encode(values)
	case jsonField:
		if v = json.RawMessage(typed); !json.Valid(v) {
			return nil, errors.New("that is no JSON: " + jsonFault(v))
		}
	}
	return v, f.fits(v)
}

func (f *formField) chosen(typed string) (string, error) {
	for _, c := range f.choices {
		if typed == c.value {
			return c.value, nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && f.numbered() && n >= 1 && n <= len(f.choices) {
		return f.choices[n-1].value, nil
	}
	for _, c := range f.choices {
		if strings.EqualFold(typed, c.value) || c.title != "" && strings.EqualFold(typed, c.title) {
			return c.value, nil
		}
	}
	return "", fmt.Errorf("%q is none of the choices", messages.Line(typed, 60))
}

// fits checks a value: first what a sentence of our own is made for, then against the schema.
func (f *formField) fits(v json.RawMessage) error {
	if f.kind == textField {
		var s string
		if err := json.Unmarshal(v, &s); err != nil {
			return errors.New("it is no text")
		}
		if n := utf8.RuneCountInString(s); f.minLength != nil && n < *f.minLength || f.maxLength != nil && n > *f.maxLength {
			return fmt.Errorf("it has %s; it takes %s", count(n, "character"),
				strings.Join(between(f.minLength, f.maxLength, "characters"), ""))
		}
		if err := formatted(f.format, s); err != nil {
			return err
		}
	}
	faults := f.schema.check(v).faults
	switch {
	case len(faults) == 0:
	case f.kind == numberField, f.kind == integerField, f.kind == choicesField:
		return fmt.Errorf("it takes: %s", f.wants())
	default:
		return errors.New(strings.TrimPrefix(strings.Join(faults, "; "), "the value: "))
	}
	return nil
}

// formatted checks the formats that a form can ask for.
func formatted(format, s string) error {
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

// show is a value as a person reads it.
func (f *formField) show(v json.RawMessage) string {
	name := func(s string) string {
		for _, c := range f.choices {
			if c.value == s {
				return c.String()
			}
		}
		return s
	}
	var s string
	var list []string
	switch {
	case f.kind == yesNoField && string(v) == "true":
		return "yes"
	case f.kind == yesNoField && string(v) == "false":
		return "no"
	case json.Unmarshal(v, &s) == nil:
		return messages.Line(name(s), 200)
	case f.kind == choicesField && json.Unmarshal(v, &list) == nil:
		for i := range list {
			list[i] = name(list[i])
		}
		if len(list) == 0 {
			return "none"
		}
		return messages.Line(strings.Join(list, ", "), 200)
	}
	return messages.Line(string(v), 200)
}
