package main

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

// An argument of a call as it was typed.
type typedArg struct {
	key, value string
	// json says that the value is JSON (key:=json); otherwise the schema decides what it is.
	json bool
}

// splitArgs reads key=value and key:=json. A = inside of the value belongs to the value.
func splitArgs(words []string) ([]typedArg, error) {
	var out []typedArg
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		a := typedArg{key: key, value: value}
		if k, found := strings.CutSuffix(key, ":"); found {
			a.key, a.json = k, true
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is no argument; write key=value, or key:=json", messages.Line(w, 80))
		case a.key == "":
			return nil, fmt.Errorf("%q has no name in front of the =; write key=value, or key:=json", messages.Line(w, 80))
		}
		out = append(out, a)
	}
	return out, nil
}

// buildArgs makes the JSON object of a call from --args and from the arguments that were typed, which win. Without
// typed arguments the object of --args is what is sent, byte for byte.
func buildArgs(whole string, typed []typedArg, schema *schema, stdin io.Reader) (json.RawMessage, error) {
	object, raw, err := readArgsFlag(whole, stdin)
	if err != nil {
		return nil, err
	}
	if len(typed) == 0 {
		return raw, nil
	}
	given := map[string]bool{}
	lists := map[string]bool{} // keys that were repeated, or are a list by their schema
	for _, a := range typed {
		v, list, err := a.toJSON(schema)
		if err != nil {
			return nil, err
		}
		if given[a.key] {
			if !list || !lists[a.key] {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.key, 80))
			}
			var before []json.RawMessage
			if err := json.Unmarshal(object[a.key], &before); err != nil {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.key, 80))
			}
			var more []json.RawMessage
			if err := json.Unmarshal(v, &more); err != nil {
				return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.key, 80))
			}
			v = encodeJSON(append(before, more...))
		}
		object[a.key], given[a.key], lists[a.key] = v, true, list
	}
	return encodeJSON(object), nil
}

// readArgsFlag reads --args.
func readArgsFlag(whole string, stdin io.Reader) (map[string]json.RawMessage, json.RawMessage, error) {
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
			return nil, nil, fmt.Errorf("--args: it is no JSON: %s", jsonProblem(raw))
		}
		return nil, nil, fmt.Errorf("--args: it is no JSON object; write --args '{\"key\": \"value\"}'")
	}
	return object, raw, nil
}

func jsonProblem(raw []byte) string {
	err := json.Unmarshal(raw, new(any))
	if err == nil {
		return ""
	}
	return messages.Line(strings.TrimPrefix(err.Error(), "json: "), 120)
}

// toJSON is the argument as JSON, and whether it is a list that more of the same name may be added to.
func (a typedArg) toJSON(schema *schema) (json.RawMessage, bool, error) {
	if a.json {
		raw := json.RawMessage(strings.TrimSpace(a.value))
		if !json.Valid(raw) {
			return nil, false, fmt.Errorf("argument %q: what follows := is no JSON: %s; write %s=… for a text",
				messages.Line(a.key, 80), jsonProblem(raw), messages.Line(a.key, 40))
		}
		return raw, false, nil
	}
	p, ok := schema.propertySchema(a.key)
	if !ok {
		return encodeJSON(a.value), false, nil
	}
	types := schema.allowedTypes(p)
	switch {
	case len(types) == 0 || slices.Contains(types, "string"):
		return encodeJSON(a.value), false, nil
	case slices.Equal(types, []string{"array"}) && !strings.HasPrefix(strings.TrimSpace(a.value), "["):
		// One element: the schema leaves nothing else that this could mean.
		items, _ := p["items"].(map[string]any)
		v, err := a.parseLiteral(schema.allowedTypes(items))
		return encodeJSON([]json.RawMessage{v}), true, err
	}
	v, err := a.parseLiteral(types)
	return v, false, err
}

// parseLiteral reads the value as the one of the types that it can be.
func (a typedArg) parseLiteral(types []string) (json.RawMessage, error) {
	if len(types) == 0 || slices.Contains(types, "string") {
		return encodeJSON(a.value), nil
	}
	raw := json.RawMessage(strings.TrimSpace(a.value))
	if json.Valid(raw) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			t := typeOf(v)
			if slices.Contains(types, t) || t == "number" && slices.Contains(types, "integer") {
				return raw, nil // whether 1.5 is an integer is for the schema to say
			}
		}
	}
	return nil, fmt.Errorf("argument %q: %s is no %s", messages.Line(a.key, 80), strconv.Quote(messages.Line(a.value, 60)),
		strings.Join(types, " or "))
}

// encodeJSON is compact JSON that leaves <, > and & as they are.
func encodeJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts, and JSON that was read as such, always encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
