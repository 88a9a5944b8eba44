package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// schemaOfAll has a property for each kind of schema that argument conversion tells apart.
const schemaOfAll = `{
  "type": "object",
  "properties": {
    "text": {"type": "string"}, "number": {"type": "number"}, "whole": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
    "numbers": {"type": "array", "items": {"type": "integer"}}, "object": {"type": "object"},
    "either": {"type": ["string", "number"]}, "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "colour": {"enum": ["red", "green"]}, "level": {"enum": [1, 2, 3]}, "ref": {"$ref": "#/$defs/size"},
    "any": {}, "loop": {"$ref": "#/properties/loop"}, "constant": {"const": true},
    "mixed": {"oneOf": [{"type": "boolean"}, {"type": "array"}]}, "anything": {"anyOf": [{"type": "integer"}, {}]}
  },
  "$defs": {"size": {"type": "integer"}},
  "additionalProperties": false
}`

// TestArgumentsBecomeWhatTheSchemaSays checks typed words against the JSON, or the error, that they become by schemaOfAll.
func TestArgumentsBecomeWhatTheSchemaSays(t *testing.T) {
	s := ReadInput(json.RawMessage(schemaOfAll))
	for _, c := range []struct{ words, want string }{
		{``, `{}`},
		{`text=5`, `{"text":"5"}`},
		{`text=`, `{"text":""}`},
		{`text=a=b`, `{"text":"a=b"}`},
		{`text=<&>`, `{"text":"<&>"}`},
		{`number=5`, `{"number":5}`},
		{`number=1.50`, `{"number":1.50}`},
		{`number=12345678901234567890123`, `{"number":12345678901234567890123}`},
		{`number=x`, `argument "number": "x" is no number`},
		{`number=`, `argument "number": "" is no number`},
		{`number="5"`, `argument "number": "\"5\"" is no number`},
		{`whole=3`, `{"whole":3}`},
		{`whole=x`, `argument "whole": "x" is no integer`},
		{`flag=true`, `{"flag":true}`},
		{`flag=yes`, `argument "flag": "yes" is no boolean`},
		{`list=a`, `{"list":["a"]}`},
		{`list=a list=b`, `{"list":["a","b"]}`},
		{`list=["a","b"]`, `{"list":["a","b"]}`},
		{`list=["a"] list=b`, `argument "list" is given twice`},
		{`list=[`, `argument "list": "[" is no array`},
		{`numbers=1 numbers=2`, `{"numbers":[1,2]}`},
		{`numbers=x`, `argument "numbers": "x" is no integer`},
		{`object={"a":1}`, `{"object":{"a":1}}`},
		{`object=1`, `argument "object": "1" is no object`},
		{`either=5`, `{"either":"5"}`},
		{`either:=5`, `{"either":5}`},
		{`maybe=5`, `{"maybe":5}`},
		{`maybe=null`, `{"maybe":null}`},
		{`maybe=x`, `argument "maybe": "x" is no integer or null`},
		{`colour=red`, `{"colour":"red"}`},
		{`level=2`, `{"level":2}`},
		{`ref=7`, `{"ref":7}`},
		{`any=5`, `{"any":"5"}`},
		{`loop=5`, `{"loop":"5"}`},
		{`constant=true`, `{"constant":true}`},
		{`mixed=true`, `{"mixed":true}`},
		{`mixed=[1]`, `{"mixed":[1]}`},
		{`anything=5`, `{"anything":"5"}`},
		{`unknown=5`, `{"unknown":"5"}`},
		{`text=a text=b`, `argument "text" is given twice`},
		{`text=a text:="b"`, `argument "text" is given twice`},
		{`any:={"a":[1,{"b":null}]}`, `{"any":{"a":[1,{"b":null}]}}`},
		{`any:={`, `argument "any": what follows := is no JSON: unexpected end of JSON input; write any=… for a text`},
		{`text`, `"text" is no argument; write key=value, or key:=json`},
		{`{"text":"a=b"}`, `"{\"text\":\"a=b\"}" is a whole object; write --args in front of it`},
		{`=x`, `"=x" has no name in front of the =; write key=value, or key:=json`},
		{`:=x`, `":=x" has no name in front of the =; write key=value, or key:=json`},
	} {
		typed, err := SplitArgs(strings.Fields(c.words))
		var got json.RawMessage
		if err == nil {
			got, err = BuildArgs("", typed, s, nil)
		}
		text := string(got)
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.words, text, c.want)
		}
	}
}

// TestWholeArguments checks --args by itself, which is sent byte for byte, and merged with typed words, which win.
func TestWholeArguments(t *testing.T) {
	s := ReadInput(json.RawMessage(schemaOfAll))
	for _, c := range []struct{ whole, words, stdin, want string }{
		{whole: `{"text" : "a"}`, want: `{"text" : "a"}`}, // byte for byte
		{whole: ` {} `, want: `{}`},
		{whole: `{"text":"a","any":1.0}`, words: `text=b`, want: `{"any":1.0,"text":"b"}`},
		{whole: `{"list":["a"]}`, words: `list=b`, want: `{"list":["b"]}`},
		{whole: `-`, stdin: "{\"any\": 1}\n", want: `{"any": 1}`},
		{whole: `-`, stdin: ``, want: `{}`},
		{whole: `-`, stdin: `x`, want: `--args: it is no JSON: invalid character 'x' looking for beginning of value`},
		{whole: `[]`, want: `--args: it is no JSON object; write --args '{"key": "value"}'`},
		{whole: `null`, want: `--args: it is no JSON object; write --args '{"key": "value"}'`},
		{whole: `{`, want: `--args: it is no JSON: unexpected end of JSON input`},
	} {
		typed, err := SplitArgs(strings.Fields(c.words))
		if err != nil {
			t.Fatal(err)
		}
		got, err := BuildArgs(c.whole, typed, s, strings.NewReader(c.stdin))
		text := string(got)
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("--args %s %s\n got %s\nwant %s", c.whole, c.words, text, c.want)
		}
	}
}
