package fault

import (
	"encoding/json"
	"fmt"
	"math"
)

// callKinds are the faults in the answer of a tool.
func callKinds() []Kind {
	return []Kind{
		// The tool has run: the client sees a failure in the answer, and the tool's effects are real. With rpc=yes
		// the same failure is a JSON-RPC error, which a client must not take for a promise that nothing ran.
		{
			Name: "tool-error", Does: "the tool is executed, and the answer says that it failed", On: callMethods, Where: everywhere,
			Params: []Param{
				boolParam("rpc", "no", "an error of the protocol, not a result that says isError"),
				textParam("text", "chaos: the tool failed", "the text of the error"), numberParam("code", "32603", "the code of a protocol error; its minus may be left out"),
			},
			effect: effect{in: func(a *effectContext) string {
				v := a.rule.values
				// In both forms the id stays, so that the client takes the answer for that of its call.
				if v.isTrue("rpc") {
					a.replaceAnswer("error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, -int(math.Abs(v.number("code"))), quoteJSON(v.text("text"))))
					return "the answer is an error of the protocol"
				}
				kind := memberValue(readObject(memberValue(readObject(a.m.body), "result")), "resultType") // an answer of the modern era keeps the member that it must have
				result := []member{{"content", encodeArray([]json.RawMessage{encodeObject([]member{{"type", quoteJSON("text")}, {"text", quoteJSON(v.text("text"))}})})},
					{"isError", json.RawMessage("true")}}
				if kind != nil {
					result = append(result, member{"resultType", quoteJSON("complete")})
				}
				a.replaceAnswer("result", encodeObject(result))
				return "the answer says that the tool failed"
			}},
		},
		// A client that validates structured content must report the answer as unusable, and not as a failure of the
		// call. A list and an answer are changed together: without a schema the client has nothing to check.
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
				// An object with a member that no schema requires breaks every schema that requires one.
				if !a.changeResult(constantValue(`{"chaos":"not what the schema says"}`), "structuredContent") {
					return ""
				}
				return "the structured content breaks every schema that wants something"
			}},
		},
		// Terminals and models must not act on a server's text. A list gets one hostile description, an answer one
		// more block of hostile text; the rest of both stays.
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

// hostile is a text that would clear the screen, set the terminal's title, reverse the direction of reading, hide
// characters and change the colour.
const hostile = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u202c zero\u200bwidth \U000e0041\U000e0042 \x9b31mred"

// addOutputSchemas gives every tool without an output schema one with a required member.
func addOutputSchemas(tools []json.RawMessage) []json.RawMessage {
	const schema = `{"type":"object","properties":{"answer":{"type":"number"}},"required":["answer"]}`
	for i, raw := range tools {
		if o := readObject(raw); o != nil && memberValue(o, "outputSchema") == nil {
			tools[i] = encodeObject(setMember(o, "outputSchema", json.RawMessage(schema)))
		}
	}
	return tools
}
