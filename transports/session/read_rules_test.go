package session

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A refusal says that there is no such prompt by its words, because its code says the same of missing arguments.
func TestWhichRefusalNamesNoPrompt(t *testing.T) {
	for _, c := range []struct {
		code int
		text string
		want bool
	}{
		{-32602, "Unknown prompt: p", true}, {0, "prompt not found", true}, {-32602, "No such prompt", true}, {-32602, "there is no prompt p", true},
		{-32602, "Prompt p does not exist", true}, {-32602, "the prompt doesn't exist", true}, {-32602, "Invalid prompt name", true},
		{-32603, "Unknown prompt: p", false}, {-32602, "Unknown tool", false}, {-32602, "Missing required argument of the prompt: unknown", false},
		{-32602, "the server rejected prompts/get: not found", false}, {-32602, "the prompt is broken", false},
	} {
		if got := namesNoPrompt(&messages.Error{Code: c.code, Text: c.text}, "p"); got != c.want {
			t.Errorf("%d %q: %v", c.code, c.text, got)
		}
	}
	if !namesNoPrompt(&messages.Error{Code: -32602, Text: "unknown prompt: argument-helper"}, "argument-helper") {
		t.Error("the name of the prompt decides")
	}
}

// A completion is asked for as the specification has it, and of its answer the texts are read, at most a hundred.
func TestACompletionIsWrittenAndRead(t *testing.T) {
	for want, r := range map[string]messages.CompleteRequest{
		`"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}`:                                           {Prompt: "p", Argument: "a", Value: "v"},
		`"ref":{"type":"ref/resource","uri":"x:///{a}"},"argument":{"name":"a","value":""}`:                                    {URITemplate: "x:///{a}", Argument: "a"},
		`"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"},"context":{"arguments":{"b":"1","c":"2"}}`: {Prompt: "p", Argument: "a", Value: "v", Context: map[string]string{"c": "2", "b": "1"}},
	} {
		if got := string(appendCompletion(nil, r)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	hundred := make([]string, maxCompletions)
	for i := range hundred {
		hundred[i] = fmt.Sprint(i)
	}
	all := `"` + strings.Join(hundred, `","`) + `"`
	for raw, want := range map[string]*messages.Completion{
		`{"values":[]}`:                                   {Values: []string{}},
		`{"values":["a",5,"b",null]}`:                     {Values: []string{"a", "b"}},
		`{"values":["a"],"total":7,"hasMore":true}`:       {Values: []string{"a"}, Total: 7, HasMore: true},
		`{"values":["a"],"total":"7","hasMore":"true"}`:   {Values: []string{"a"}},
		`{"values":["a"],"total":99999999999}`:            {Values: []string{"a"}},
		`{"values":[` + all + `]}`:                        {Values: hundred},
		`{"values":[` + all + `,"more"],"hasMore":false}`: {Values: hundred, HasMore: true},
		`{}`:             nil,
		`{"values":{}}`:  nil,
		`{"values":"a"}`: nil,
	} {
		got, ok := readCompletion([]byte(raw))
		if ok != (want != nil) || ok && !reflect.DeepEqual(got, *want) {
			t.Errorf("%.60s: %+v, %v", raw, got, ok)
		}
	}
}
