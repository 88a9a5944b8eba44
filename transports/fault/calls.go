package fault

import (
	"encoding/json"
	"fmt"
)

// callKinds are the faults of tool calls. They act between the arrival of a request and its answer; a chance is drawn for each
// call by itself, so that one below 1 leaves some calls alone.
func callKinds() []Kind {
	return []Kind{
		{
			Name: "hang-call", Reports: []string{"R1"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "calls wait until the end of the fault, and run then unless they were cancelled",
			InRule: "calls run, and their answers never come",
			Params: []Param{textParam("tool", "", "only this tool").only(scenarios), perCall()},
		},
		{
			Name: "ignore-cancel", Reports: []string{"R2"}, Where: everywhere, Servers: allServers, Eras: bothEras,
			On:   []string{"notifications/cancelled"},
			Does: "a call that was cancelled runs and is answered all the same",
			Params: []Param{
				durationParam("by", "90s", "how much longer calls take, so that there is time to cancel them; until the end of the fault at most").
					only(scenarios),
			},
		},
		{
			Name: "endless-progress", Reports: []string{"R3"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "a call is told of progress for ever, whether it asked for that or not, and gets no answer until the end of the fault",
			InRule: "a call that asks for progress is told of it for ever, and never gets an answer",
			Params: []Param{durationParam("every", "1s", "time between two"), perCall()},
		},
		{
			Name: "bad-output", Reports: []string{"R11"}, Where: everywhere, Servers: allServers, Eras: bothEras,
			On:     []string{"tools/call", "tools/list"},
			Does:   "a call's structured result contradicts the tool's output schema",
			InRule: "a call's structured result contradicts the tool's output schema, which is set where there is none",
			Params: []Param{perCall()},
		},
		{
			Name: "tool-error", Reports: []string{"R12"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "calls fail: the tool runs and says so, or the server refuses the call",
			InRule: "calls fail: the tool runs, and the answer says that it failed",
			Params: []Param{
				truthParam("rpc", "false", "a JSON-RPC error, and no result that says isError; in a scenario the tool does not run then"),
				textParam("text", "chaos: the tool failed", "text of the error").only(rules),
				newParam("code", "code", "32603", "code of the JSON-RPC error; its minus may be left out"),
				perCall(),
			},
		},
		{
			Name: "die-mid-call", Reports: []string{"R13"}, Where: everywhere, Servers: allServers, Eras: bothEras, EndsConnections: true, On: callMethods,
			Does:   "the tool runs and the server ends before it has answered",
			Params: []Param{codeParam("1"), signalParam().only(rules), perCall()},
		},
		{
			Name: "answer-and-die", Reports: []string{"R13", "P12"}, Where: everywhere, Servers: allServers, Eras: bothEras, EndsConnections: true,
			On:     callMethods,
			Does:   "the server answers a call and ends in the same moment",
			Params: []Param{codeParam("0"), signalParam().only(rules), perCall()},
		},
		{
			Name: "latency", Reports: []string{"H11"}, Where: everywhere, Servers: allServers, Eras: bothEras,
			Does:   "everything but the handshake takes longer",
			InRule: "what the server says takes longer; with direction=server what it is told",
			// Who writes by=2s into a rule wants that; the servers of a scenario are never so exact.
			Params: []Param{durationParam("by", "200ms", "how much longer"), jitterParam("0.5").ruleDefault("0")},
		},
		{
			Name: "big-result", Reports: []string{"P8"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: callMethods,
			Does:   "the results of calls are padded",
			Params: []Param{sizeParam("size", "1MiB", "to so many bytes at least"), perCall()},
		},
	}
}

// jitterParam varies a parameter by.
func jitterParam(value string) Param {
	return newParam("jitter", "jitter", value, "by how much that varies: a part from 0 to 1 more or less, or up to a time more")
}

// callEffects are what rules do to the answer of a tool.
func callEffects() map[string]effect {
	return map[string]effect{
		// The tool has run: the client sees a failure in the answer, and the tool's effects are real. With rpc=yes
		// the same failure is a JSON-RPC error, which a client must not take for a promise that nothing ran.
		"tool-error": {in: func(a *effectContext) string {
			v := a.rule.values
			// In both forms the id stays, so that the client takes the answer for that of its call.
			if v.Bool("rpc") {
				a.replaceAnswer("error", fmt.Appendf(nil, `{"code":%d,"message":%s}`, -v.Int("code"), quoteJSON(v.Text("text"))))
				return "the answer is an error of the protocol"
			}
			kind := memberValue(readObject(memberValue(readObject(a.m.body), "result")), "resultType") // an answer of the modern era keeps the member that it must have
			result := []member{{"content", encodeArray([]json.RawMessage{encodeObject([]member{{"type", quoteJSON("text")}, {"text", quoteJSON(v.Text("text"))}})})},
				{"isError", json.RawMessage("true")}}
			if kind != nil {
				result = append(result, member{"resultType", quoteJSON("complete")})
			}
			a.replaceAnswer("result", encodeObject(result))
			return "the answer says that the tool failed"
		}},
		// A client that validates structured content must report the answer as unusable, and not as a failure of the
		// call. A list and an answer are changed together: without a schema the client has nothing to check.
		"bad-output": {in: func(a *effectContext) string {
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
		// Terminals and models must not act on a server's text. A list gets one hostile description, an answer one
		// more block of hostile text; the rest of both stays.
		"control-characters": {in: func(a *effectContext) string {
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
