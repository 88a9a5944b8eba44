package fault

import (
	"encoding/json"
	"fmt"
	"math"
)

// callKinds break what a tool answers.
func callKinds() []Kind {
	return []Kind{
		{
			Name: "tool-error", Does: "the tool is executed, and the answer says that it failed", On: calls, Where: everywhere,
			Params: []Param{
				yes("rpc", "no", "an error of the protocol, not a result that says isError"),
				text("text", "chaos: the tool failed", "the text of the error"), number("code", "32603", "the code of a protocol error; its minus may be left out"),
			},
			effect: effect{in: func(a *act) string {
				v := a.rule.values
				if v.yes("rpc") {
					a.answerWith("error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, -int(math.Abs(v.number("code"))), quote(v.text("text"))))
					return "the answer is an error of the protocol"
				}
				kind := get(object(get(object(a.m.body), "result")), "resultType") // the modern era wants one
				result := []member{{"content", array([]json.RawMessage{encode([]member{{"type", quote("text")}, {"text", quote(v.text("text"))}})})},
					{"isError", json.RawMessage("true")}}
				if kind != nil {
					result = append(result, member{"resultType", quote("complete")})
				}
				a.answerWith("result", encode(result))
				return "the answer says that the tool failed"
			}},
		},
		{
			Name: "bad-output", Does: "the structured content breaks the output schema, which is set where there is none",
			On: []string{"tools/call", "tools/list"}, Where: everywhere,
			effect: effect{in: func(a *act) string {
				if a.m.method == "tools/list" {
					if !a.tools(schemas) {
						return ""
					}
					return "every tool has an output schema"
				}
				if !a.result(value(`{"chaos":"not what the schema says"}`), "structuredContent") {
					return ""
				}
				return "the structured content breaks every schema that wants something"
			}},
		},
		{
			Name: "control-characters", Does: "names, descriptions and texts hold terminal codes, bidi marks and zero-width characters",
			On: []string{"tools/call", "tools/list"}, Where: everywhere,
			effect: effect{in: func(a *act) string {
				if a.m.method == "tools/list" {
					if !a.firstTool(func(o []member) []member { return set(o, "description", quote(hostile)) }) {
						return ""
					}
					return "a description is hostile"
				}
				if !a.content(hostile) {
					return ""
				}
				return "a hostile text was added"
			}},
		},
	}
}

// hostile would clear the screen, set the title, turn the direction round and hide text.
const hostile = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c zero\u200bwidth \U000e0041\U000e0042 \x9b31mred"

// schemas gives every tool without an output schema one that wants something.
func schemas(tools []json.RawMessage) []json.RawMessage {
	const schema = `{"type":"object","properties":{"answer":{"type":"number"}},"required":["answer"]}`
	for i, raw := range tools {
		if o := object(raw); o != nil && get(o, "outputSchema") == nil {
			tools[i] = encode(set(o, "outputSchema", json.RawMessage(schema)))
		}
	}
	return tools
}
