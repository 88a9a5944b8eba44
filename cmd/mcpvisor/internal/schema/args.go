package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TypedArg is an argument of a call as the person typed it on the command line.
type TypedArg struct {
	Key, Value string
	// JSON says that the value is JSON (key:=json); otherwise the tool's schema decides how to read it.
	JSON bool
}

// SplitArgs splits words of the forms key=value and key:=json at the first "=", so that a value may contain more of them. It
// returns an error for a word without "=" or without a name; the order of the arguments stays.
func SplitArgs(words []string) ([]TypedArg, error) {
	var out []TypedArg
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		a := TypedArg{Key: key, Value: value}
		if k, found := strings.CutSuffix(key, ":"); found {
			a.Key, a.JSON = k, true
		}
		switch {
		case strings.HasPrefix(w, "{"):
			return nil, fmt.Errorf("%q is a whole object; write --args in front of it", messages.Line(w, 80))
		case !ok:
			return nil, fmt.Errorf("%q is no argument; write key=value, or key:=json", messages.Line(w, 80))
		case a.Key == "":
			return nil, fmt.Errorf("%q has no name in front of the =; write key=value, or key:=json", messages.Line(w, 80))
		}
		out = append(out, a)
	}
	return out, nil
}

// BuildArgs makes the JSON object of a call from --args (whole) and from the typed arguments, which win over members of the
// same name. Without typed arguments it returns the object of --args byte for byte, because decoding would reorder keys and
// could change numbers. An argument may repeat only if the schema makes it a list; then the elements append.
func BuildArgs(whole string, typed []TypedArg, schema *Schema, stdin io.Reader) (json.RawMessage, error) {
	object, raw, err := ReadArgsFlag(whole, stdin)
	if err != nil {
		return nil, err
	}
	if len(typed) == 0 {
		return raw, nil
	}
	// given holds the keys that were typed: those override members of --args, and are only added to by a repetition.
	given := map[string]bool{}
	lists := map[string]bool{} // whether the schema made the typed value of a key a list
	for _, a := range typed {
		v, list, err := a.toJSON(schema)
		if err != nil {
			return nil, err
		}
		if given[a.Key] {
			// Only lists that this function made may grow: a key that was also given as key:=json has a value of its own.
			if !list || !lists[a.Key] {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.Key, 80))
			}
			var before []json.RawMessage
			if err := json.Unmarshal(object[a.Key], &before); err != nil {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.Key, 80))
			}
			var more []json.RawMessage
			if err := json.Unmarshal(v, &more); err != nil {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.Key, 80))
			}
			v = EncodeJSON(append(before, more...))
		}
		object[a.Key], given[a.Key], lists[a.Key] = v, true, list
	}
	return EncodeJSON(object), nil
}

// ReadArgsFlag reads the value of --args, or up to 64 MiB of standard input if it is "-". It returns the members to merge typed
// arguments into, and the text itself; an empty value is an empty object.
func ReadArgsFlag(whole string, stdin io.Reader) (map[string]json.RawMessage, json.RawMessage, error) {
	if whole == "-" {
		text, err := io.ReadAll(io.LimitReader(stdin, 64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("--args -: standard input cannot be read: %w", err)
		}
		whole = string(text)
	}
	raw := json.RawMessage(strings.TrimSpace(whole))
	if len(raw) == 0 {
		return map[string]json.RawMessage{}, json.RawMessage("{}"), nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		if !json.Valid(raw) {
			return nil, nil, fmt.Errorf("--args: it is no JSON: %s", JSONProblem(raw))
		}
		// A JSON null would decode into a nil map without an error, therefore the check for nil above.
		return nil, nil, fmt.Errorf("--args: it is no JSON object; write --args '{\"key\": \"value\"}'")
	}
	return object, raw, nil
}

// JSONProblem returns what the decoder says is wrong with raw, bounded to 120 runes, or "" if raw is valid JSON. The decoder
// quotes at most one character of raw, so that no secret reaches the message.
func JSONProblem(raw []byte) string {
	err := json.Unmarshal(raw, new(any))
	if err == nil {
		return ""
	}
	return messages.Line(strings.TrimPrefix(err.Error(), "json: "), 120)
}

// toJSON converts the argument to JSON by the schema of the tool. list reports whether the value is a list that a repeated
// argument may append to. A name that the schema does not know, or that may be a string, becomes a string: a shell user expects
// "12" for a string parameter to stay a string.
func (a TypedArg) toJSON(schema *Schema) (json.RawMessage, bool, error) {
	if a.JSON {
		raw := json.RawMessage(strings.TrimSpace(a.Value))
		if !json.Valid(raw) {
			return nil, false, fmt.Errorf("argument %q: what follows := is no JSON: %s; write %s=… for a text",
				messages.Line(a.Key, 80), JSONProblem(raw), messages.Line(a.Key, 40))
		}
		return raw, false, nil
	}
	p, ok := schema.PropertySchema(a.Key)
	if !ok {
		return EncodeJSON(a.Value), false, nil
	}
	types := schema.AllowedTypes(p)
	switch {
	case len(types) == 0 || slices.Contains(types, "string"):
		return EncodeJSON(a.Value), false, nil
	case slices.Equal(types, []string{"array"}) && !strings.HasPrefix(strings.TrimSpace(a.Value), "["):
		// One element: the schema leaves nothing else that this could mean.
		items, _ := p["items"].(map[string]any)
		v, err := a.parseLiteral(schema.AllowedTypes(items))
		return EncodeJSON([]json.RawMessage{v}), true, err
	}
	v, err := a.parseLiteral(types)
	return v, false, err
}

// parseLiteral reads the value as JSON of one of the given types. It returns an error if the value is JSON of another type or
// none, because guessing would send the tool something that the person did not type.
func (a TypedArg) parseLiteral(types []string) (json.RawMessage, error) {
	if len(types) == 0 || slices.Contains(types, "string") {
		return EncodeJSON(a.Value), nil
	}
	raw := json.RawMessage(strings.TrimSpace(a.Value))
	if json.Valid(raw) {
		// UseNumber keeps large integers exact while their type is found; the call sends raw unchanged.
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			t := typeOf(v)
			if slices.Contains(types, t) || t == "number" && slices.Contains(types, "integer") {
				return raw, nil // 1.5 for an integer is refused later by the schema check, with a better message
			}
		}
	}
	return nil, fmt.Errorf("argument %q: %s is no %s", messages.Line(a.Key, 80), strconv.Quote(messages.Line(a.Value, 60)),
		strings.Join(types, " or "))
}

// EncodeJSON returns v as compact JSON in which <, > and & stay as they are; Go's default escapes them for HTML. v must be made
// of texts, numbers and JSON that was validated before: anything else panics.
func EncodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts, and JSON that was read as such, always encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
