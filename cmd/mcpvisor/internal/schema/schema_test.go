package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestFaultsNameTheField checks that faults of arguments are sentences that name the field.
func TestFaultsNameTheField(t *testing.T) {
	const deep = `{"type":"object","required":["to","body"],"properties":{
		"to":{"type":"array","minItems":1,"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
			"age":{"type":"integer","minimum":0}}}},
		"body":{"type":"string","description":"what to\nsay","maxLength":5},
		"kind":{"enum":["a","b"]}, "id":{"anyOf":[{"type":"string"},{"type":"integer"}]}, "code":{"pattern":"^x+$"},
		"never":false},
		"additionalProperties":false}`
	for _, c := range []struct{ schema, args, want string }{
		{deep, `{"to":[{"name":"x"}],"body":"hi"}`, ``},
		{deep, `{}`, `argument "body" is missing (string: what to say)|argument "to" is missing (array)`},
		{deep, `{"to":[{}],"body":"hi"}`, `argument "to[0].name" is missing`},
		{deep, `{"to":[{"name":1,"age":1.5}],"body":"hi"}`,
			`argument "to[0].age": got number, want integer|argument "to[0].name": got number, want string`},
		{deep, `{"to":"x","body":"hi"}`, `argument "to": got string, want array`},
		{deep, `{"to":[],"body":"hi"}`, `argument "to": minItems: got 0, want 1`},
		{deep, `{"to":[{"name":"x","age":-1}],"body":"too long"}`,
			`argument "body": maxLength: got 8, want 5|argument "to[0].age": minimum: got -1, want 0`},
		{deep, `{"to":[{"name":"x"}],"body":"hi","kind":"c"}`, `argument "kind": value must be one of 'a', 'b'`},
		{deep, `{"to":[{"name":"x"}],"body":"hi","id":true}`, `argument "id": got boolean, want string or integer`},
		{deep, `{"to":[{"name":"x"}],"body":"hi","code":"y"}`, `argument "code": 'y' does not match pattern '^x+$'`},
		{deep, `{"to":[{"name":"x"}],"body":"hi","never":1}`, `argument "never": it is not allowed`},
		{deep, `{"to":[{"name":"x"}],"bdy":"hi"}`,
			`argument "bdy" is not known to the tool; did you mean "body"?|argument "body" is missing (string: what to say)`},
		{deep, `{"to":[{"name":"x"}],"body":"hi","zzz":1}`,
			`argument "zzz" is not known to the tool; it knows body, code, id, kind, never, to`},
		{`{"type":"object","additionalProperties":false}`, `{"a":1}`, `argument "a" is not known to the tool; it takes none`},
		{`{"type":"object","minProperties":1}`, `{}`, `the arguments: minProperties: got 0, want 1`},
		// The format of a draft is what its $schema says; without one it is 2020-12.
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string"}}}`, `{"a":1}`,
			`argument "a": got number, want string`},
		{`{"properties":{"a":{"prefixItems":[{"type":"string"}]}}}`, `{"a":[1]}`, `argument "a[0]": got number, want string`},
		{`{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}},
			"$ref":"#/$defs/n"}`,
			`{"next":{"next":{"v":"x"}}}`, `argument "next.next.v": got string, want integer`},
		// An expression that Go cannot read is left out, and the rest is checked.
		{`{"properties":{"a":{"pattern":"(?<=x)y"},"b":{"pattern":"^y$"}}}`, `{"a":"z","b":"z"}`,
			`argument "b": 'z' does not match pattern '^y$'`},
		{``, `{"a":1}`, ``},
		{`true`, `{"a":1}`, ``},
	} {
		v := ReadInput(json.RawMessage(c.schema)).CheckValue(json.RawMessage(c.args))
		if v.Unchecked != "" {
			t.Errorf("%s: unchecked: %s", c.schema, v.Unchecked)
		}
		if got := strings.Join(v.Faults, "|"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.args, got, c.want)
		}
	}
}

// TestASchemaThatCannotBeUsedSaysWhy checks that such a schema refuses nothing and says why, and that none makes this program
// read a file or ask the network.
func TestASchemaThatCannotBeUsedSaysWhy(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"$ref":"https://example.invalid/schema.json"}`, `it refers to another document, and none is fetched`},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, `it refers to another document, and none is fetched`},
		{`{"properties":{"a":{"$ref":"other.json"}}}`, `it refers to another document, and none is fetched`},
		{`{"$schema":"https://example.invalid/draft-99"}`, `its $schema names a dialect that is not known`},
		{`{"$ref":"#/nowhere"}`, `it refers to a part of itself that is not there`},
		{`{"type":`, `it is no JSON`},
		{`{"type":"sausage"}`, `it breaks the rules of JSON Schema`},
		{`[]`, `it breaks the rules of JSON Schema`},
	} {
		v := ReadInput(json.RawMessage(c.schema)).CheckValue(json.RawMessage(`{"a":1}`))
		if v.Unchecked != c.want || len(v.Faults) != 0 {
			t.Errorf("%s: %q and %v, not %q", c.schema, v.Unchecked, v.Faults, c.want)
		}
	}
}

// TestSchemasThatGoInCirclesEnd checks that cyclic and broken references end.
func TestSchemasThatGoInCirclesEnd(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`,
		`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`,
		`{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"$ref":"#/properties/a"}]}}}`,
		`{"properties":{"a":{"$ref":"#/nowhere"}}}`, `{"properties":[1],"required":"x"}`,
	} {
		s := ReadInput(json.RawMessage(schema))
		s.CheckValue(json.RawMessage(`{"a":{"a":1}}`))
		if p, ok := s.PropertySchema("a"); ok {
			if types := s.AllowedTypes(p); len(types) > 0 {
				t.Errorf("%s: a is %v", schema, types)
			}
		}
	}
}

// TestASchemaWithoutEndIsNotWaitedFor checks that a schema which needs 3^40 comparisons is given up, and that
// nothing goes on with it.
func TestASchemaWithoutEndIsNotWaitedFor(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%[2]d"},{"$ref":"#/$defs/d%[2]d"},{"$ref":"#/$defs/d%[2]d"}]},`,
			i, i+1)
	}
	b.WriteString(`"d40":{"type":"string"}}}`)
	s := ReadInput(json.RawMessage(b.String()))
	before := runtime.NumGoroutine()
	if v := s.CheckValue(json.RawMessage(`{"a":1}`)); v.Unchecked != "a check against it takes too long" {
		t.Errorf("%+v", v)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before the check, %d after it", before, after)
	}
	p, _ := s.PropertySchema("a")
	if types := s.AllowedTypes(p); len(types) != 0 {
		t.Errorf("a is %v", types)
	}
}

// FuzzSchema checks that no schema, arguments and typed word together yield arguments that are no JSON.
func FuzzSchema(f *testing.F) {
	f.Add(schemaOfAll, `{"text":"x"}`, "whole=5")
	f.Add(`{"$ref":"#"}`, `{}`, "a:=1")
	f.Fuzz(func(t *testing.T, schema, args, word string) {
		s := ReadInput(json.RawMessage(schema))
		s.CheckValue(json.RawMessage(args))
		typed, err := SplitArgs([]string{word})
		if err != nil {
			return
		}
		if object, err := BuildArgs(args, typed, s, strings.NewReader("")); err == nil && !json.Valid(object) {
			t.Errorf("%s and %s became %s, which is no JSON", args, word, object)
		}
	})
}
