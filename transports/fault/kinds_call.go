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
			Name: "tool-error", Does: "the tool is executed, and the answer says that it failed", On: callMethods, Where: everywhere,
			Params: []Param{
				boolParam("rpc", "no", "an error of the protocol, not a result that says isError"),
				textParam("text", "chaos: the tool failed", "the text of the error"), numberParam("code", "32603", "the code of a protocol error; its minus may be left out"),
			},
			effect: effect{in: func(a *effectContext) string {
				v := a.rule.values
				if v.isTrue("rpc") {
					a.replaceAnswer("error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, -int(math.Abs(v.number("code"))), quoteJSON(v.text("text"))))
					return "the answer is an error of the protocol"
				}
				kind := memberValue(readObject(memberValue(readObject(a.m.body), "result")), "resultType") // the modern era wants one
				result := []member{{"content", encodeArray([]json.RawMessage{encodeObject([]member{{"type", quoteJSON("text")}, {"text", quoteJSON(v.text("text"))}})})},
					{"isError", json.RawMessage("true")}}
				if kind != nil {
					result = append(result, member{"resultType", quoteJSON("complete")})
				}
				a.replaceAnswer("result", encodeObject(result))
				return "the answer says that the tool failed"
			}},
		},
		{
			Name: "bad-output", Does: "the structured content breaks the output schema, which is set where there is none",
			On: []string{"tools/call", "tools/list"}, Where: everywhere,
			effect: effect{in: func(a *effectContext) string {
				if a.m.method == "tools/list" {
					if !a.changeTools(addOutputSchemas) {
						return ""
					}
					return "every tool has an output schema"
				}
				if !a.changeResult(constantValue(`{"chaos":"not what the schema says"}`), "structuredContent") {
					return ""
				}
				return "the structured content breaks every schema that wants something"
			}},
		},
		{
			Name: "control-characters", Does: "names, descriptions and texts hold terminal codes, bidi marks and zero-width characters",
			On: []string{"tools/call", "tools/list"}, Where: everywhere,
			effect: effect{in: func(a *effectContext) string {
				if a.m.method == "tools/list" {
					if !a.changeFirstTool(func(o []member) []member { return setMember(o, "description", quoteJSON(hostile)) }) {
						return ""
					}
					return "a description is hostile"
				}
				if !a.addContent(hostile) {
					return ""
				}
				return "a hostile text was added"
			}},
		},
	}
}

// hostile would clear the screen, set the title, turn the direction round and hide text.
const hostile = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c zero\u200bwidth \U000e0041\U000e0042 \x9b31mred"

// addOutputSchemas gives every tool without an output schema one that wants something.
func addOutputSchemas(tools []json.RawMessage) []json.RawMessage {
	const schema = `{"type":"object","properties":{"answer":{"type":"number"}},"required":["answer"]}`
	for i, raw := range tools {
		if o := readObject(raw); o != nil && memberValue(o, "outputSchema") == nil {
			tools[i] = encodeObject(setMember(o, "outputSchema", json.RawMessage(schema)))
		}
	}
	return tools
}
