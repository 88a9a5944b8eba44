package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// listKinds are the faults of the tool list. Those of scenarios that change it announce the change, unless they say otherwise.
func listKinds() []Kind {
	// A rule changes a tool that is in the list; a scenario's server has tools of its own.
	gone := textParam("which", "", "the tool that is gone; the last one of the list if it is empty").only(rules)
	return []Kind{
		{
			Name: "cursor-loop", Reports: []string{"R4"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: listMethods,
			Does:   "the pages of a list never end",
			Params: []Param{wordParam("what", "same", "a cursor comes again, or each page has a new one", "same", "endless")},
		},
		{
			Name: "empty-cursor", Reports: []string{"R4"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: listMethods,
			Does: "a page of a list has the empty text as its next cursor, mostly the last one",
			Params: []Param{
				wordParam("what", "page", "it leads to a page with nothing in it, as it may, or to the first page again; or the first page has it, "+
					"and it leads to the second", "page", "first", "second"),
			},
		},
		{
			Name: "list-error", Reports: []string{"R12"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does:   "the server refuses to list its tools, with an error of the protocol, and goes on otherwise",
			Params: []Param{newParam("code", "code", "32603", "code of the JSON-RPC error; its minus may be left out"), chanceParam("chance", "1", "of each list")},
		},
		{
			Name: "list-changed", Reports: []string{"R6"}, Where: everywhere, Servers: allServers, Eras: bothEras, Instant: scenarios, On: toolListMethods,
			Does:   "the tool list changes, and the server says so",
			InRule: "a tool is gone from the list while the rule lasts, and that is announced",
			Params: []Param{
				wordParam("what", "swap", "a tool takes the place of the last one that came so, or one comes, the last one goes, is described anew, "+
					"or says something else in its _meta", "swap", "add", "remove", "describe", "meta").only(scenarios),
				countParam("times", "1", "how many changes at once, each announced").only(scenarios),
				gone,
			},
		},
		{
			Name: "list-storm", Reports: []string{"R6"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does: "the server says again and again that its tool list has changed",
			Params: []Param{
				rateParam("rate", "100", "times per second"),
				truthParam("change", "false", "it really changes, too"),
				gone,
			},
		},
		{
			Name: "change-during-list", Reports: []string{"R7"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods, Times: 3,
			Does:   "the tool list changes, and the server says so, while it is being listed",
			InRule: "a change is announced right before the list that was asked for arrives",
			Params: []Param{countParam("times", "3", "how often on one connection, 0 for each list").only(scenarios)},
		},
		{
			Name: "quiet-change", Reports: []string{"R7"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does:   "the tool list changes and the server says nothing of it until the end of the fault",
			InRule: "a tool is gone from the list while the rule lasts, and nothing is said",
			Params: []Param{gone},
		},
		{
			Name: "duplicate-names", Reports: []string{"R8"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does: "tools stand in the list a second time, defined otherwise",
			Params: []Param{
				countParam("count", "1", "how many"),
				wordParam("what", "same", "with the very same name, or with two that are equal when no sign is left in them that a model's "+
					"provider refuses", "same", "alike"),
			},
		},
		{
			Name: "long-names", Reports: []string{"R9"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does: "there are tools with names that are too long for a model's provider",
			Params: []Param{
				countParam("count", "2", "how many"),
				countParam("length", "100", "length of the names, in a scenario 20 to 1,000; beyond 128 the tool cannot be used"),
			},
		},
		{
			Name: "bad-schema", Reports: []string{"R10"}, Where: everywhere, Servers: allServers, Eras: bothEras, On: toolListMethods,
			Does:   "there are tools whose definition is broken",
			InRule: "a tool's input schema is none",
			Params: []Param{
				countParam("count", "1", "how many").only(scenarios),
				wordParam("what", "type", "what is wrong with it", "type", "array", "properties", "required", "text", "name", "huge").only(scenarios),
				whichParam(),
			},
		},
	}
}

// whichParam names the tool that a rule changes.
func whichParam() Param {
	return textParam("which", "", "the tool; the first one of the list if it is empty").only(rules)
}

// loopCursor is the cursor of cursor-loop, and the beginning of its endless ones: out recognises it and removes it,
// because the real server does not know it.
const loopCursor = "chaos-once-more"

// listEffects are what rules do to lists and to the announcements of their changes.
func listEffects() map[string]effect {
	// The effects on lists act on tools/list, except for the cursors, which every list has.
	return map[string]effect{
		// A client must notice a cursor that comes twice, and must bound the pages of a list whose cursors are all
		// new.
		"cursor-loop": {
			out: func(a *effectContext) string {
				// Only a cursor that this fault has made is removed; the server's own reach it.
				if a.m.cursor == nil || !strings.HasPrefix(*a.m.cursor, loopCursor) || !a.changeMember(constantValue(""), "params", "cursor") {
					return ""
				}
				return "the first page is asked for again"
			},
			in: func(a *effectContext) string {
				if a.rule.values.Text("what") == "endless" {
					return a.setNextCursor(fmt.Sprintf("%s-%08x", loopCursor, a.rng.Uint32()))
				}
				return a.setNextCursor(loopCursor)
			},
		},
		// What was listed before stays known, and the list is asked for again.
		"list-error": {in: func(a *effectContext) string {
			a.replaceAnswer("error", fmt.Appendf(nil, `{"code":%d,"message":"chaos: the list cannot be read"}`, -a.rule.values.Int("code")))
			return "the answer is an error of the protocol"
		}},
		// The specification allows an empty cursor: a client must follow it, and must notice when it leads back to
		// the first page.
		"empty-cursor": {
			out: func(a *effectContext) string {
				// in marks the last page with the empty cursor; the request for the page behind it goes to the
				// server without a cursor, and its answer is emptied.
				if a.m.cursor == nil || *a.m.cursor != "" || a.m.call == nil {
					return ""
				}
				if second := a.f.secondPages[a.m.method]; second != nil {
					a.changeMember(constantValue(string(second)), "params", "cursor")
					return "the second page is asked for"
				}
				if !a.changeMember(constantValue(""), "params", "cursor") {
					return ""
				}
				a.m.call.emptyPage = a.rule.values.Text("what") == "page"
				return "the page after the last one is asked for"
			},
			in: func(a *effectContext) string {
				if a.rule.values.Text("what") == "second" {
					return a.hideSecondCursor()
				}
				// The page itself: mark it as not the last one.
				if a.m.call == nil || !a.m.call.emptyPage {
					return a.setNextCursor("")
				}
				name := listMember(a.m.method)
				if !a.changeResult(constantValue("[]"), name) {
					return ""
				}
				a.changeResult(constantValue(""), "nextCursor")
				return "it is empty"
			},
		},
		// A client that only trusts announcements keeps offering a tool that is gone; a call of it still reaches the
		// server, which has it.
		"quiet-change": {in: hideTool},
		// Both ends of the window are announced, so a client must see the tool vanish, and must see it come back.
		"list-changed": {in: hideTool, clock: &clockEffect{
			begin: func(m *clockContext) { m.emitEvent(Event{Do: Deliver, Body: listChanged}, "a change is announced") },
			end:   func(m *clockContext) { m.emitEvent(Event{Do: Deliver, Body: listChanged}, "a change is announced") },
		}},
		// A client must not list the tools once for each announcement. With change=yes a list differs from the one
		// before at random, so a client cannot skip all of them either.
		"list-storm": {
			in: func(a *effectContext) string {
				// Half of the lists, by the rule's own draw, lack a tool.
				if a.rule.values.Bool("change") && a.rng.IntN(2) == 0 {
					return hideTool(a)
				}
				return ""
			},
			clock: &clockEffect{period: ratePeriod, onPeriod: func(m *clockContext) {
				m.emitEvent(Event{Do: Deliver, Body: listChanged}, "a change is announced")
			}},
		},
		// The list in transit may be the old one, so a client must list again, although it has just done so. Times
		// bounds the announcements, or a client that obeys would never end.
		"change-during-list": {in: func(a *effectContext) string {
			a.disposition.Before = append(a.disposition.Before, listChanged)
			return "a change is announced before it"
		}},
		// A client must use the first definition, and must not let the second replace it. The second differs in its
		// description, so that a test sees which one was used.
		"duplicate-names": {in: func(a *effectContext) string {
			if !a.changeTools(func(all []json.RawMessage) []json.RawMessage {
				for _, raw := range all[:min(len(all), a.rule.values.Int("count"))] {
					if a.rule.values.Text("what") == "alike" {
						all = append(all, a.renameTool(raw, ".too"), a.renameTool(raw, "_too"))
					} else if o := readObject(raw); o != nil {
						all = append(all, encodeObject(setMember(o, "description", quoteJSON("the same name, another tool"))))
					}
				}
				return all
			}) {
				return ""
			}
			return "tools stand in it twice"
		}},
		// Model providers limit the names of tools to 64 characters, so a client must shorten them, keep them apart,
		// and still call the right tool.
		"long-names": {in: func(a *effectContext) string {
			if !a.changeTools(func(all []json.RawMessage) []json.RawMessage { return a.lengthenNames(all) }) {
				return ""
			}
			return "tools have long names"
		}},
		// Model providers refuse a whole request for one invalid schema; a client must leave out this tool and keep
		// the others.
		"bad-schema": {in: func(a *effectContext) string {
			// The schema is valid JSON, and no schema in any draft.
			const bad = `{"type":["object","nonsense"],"properties":[1,2],"$ref":"#/nowhere"}`
			if !a.changeFirstTool(func(o []member) []member { return setMember(o, "inputSchema", json.RawMessage(bad)) }) {
				return ""
			}
			return "the schema of a tool is broken"
		}},
		// The definition of a tool changes after a person has approved it: a client must notice, and must not offer
		// the new one unasked. The change is announced, so that it is seen at once.
		"rug-pull": {
			in: func(a *effectContext) string {
				if !a.changeFirstTool(func(o []member) []member { return setMember(o, "description", quoteJSON(a.rule.values.Text("text"))) }) {
					return ""
				}
				return "the description of a tool was changed"
			},
			clock: &clockEffect{begin: func(m *clockContext) {
				if m.f.calledBefore("tools/list") { // without an earlier list there is no old definition to differ from
					m.emitEvent(Event{Do: Deliver, Body: listChanged}, "a change is announced")
				}
			}},
		},
	}
}

// setNextCursor gives a page a next cursor. An empty cursor is set on the last page only; any other replaces the real
// one.
func (a *effectContext) setNextCursor(cursor string) string {
	if raw := memberValue(readObject(memberValue(readObject(a.m.body), "result")), "nextCursor"); raw != nil && cursor == "" {
		return "" // not the last page
	}
	if !a.changeResult(constantValue(string(quoteJSON(cursor))), "nextCursor") {
		return ""
	}
	return fmt.Sprintf("its next page is %q", cursor)
}

// hideSecondCursor puts the empty text in the place of the cursor of a first page, which has another page behind it.
func (a *effectContext) hideSecondCursor() string {
	next := memberValue(readObject(memberValue(readObject(a.m.body), "result")), "nextCursor")
	if a.m.call == nil || !a.m.call.firstPage || next == nil || !a.changeResult(constantValue(`""`), "nextCursor") {
		return ""
	}
	a.f.secondPages[a.m.method] = next
	return `its next page is ""`
}

// listMember returns the member of the result that holds the list of a method.
func listMember(method string) string {
	if method == "resources/templates/list" {
		return "resourceTemplates"
	}
	return strings.TrimSuffix(method, "/list")
}

// hideTool removes from a list the tool that the rule names, or the last one.
func hideTool(a *effectContext) string {
	toolName := a.rule.values.Text("which")
	if !a.changeTools(func(all []json.RawMessage) []json.RawMessage {
		if toolName == "" {
			return all[:max(len(all)-1, 0)]
		}
		return slices.DeleteFunc(all, func(raw json.RawMessage) bool {
			return string(memberValue(readObject(raw), "name")) == string(quoteJSON(toolName))
		})
	}) {
		return ""
	}
	return "a tool is gone from it"
}

// lengthenNames appends underscores to the names of the first tools, up to the length that the rule gives (at most
// 4,096), and records their real names for later calls.
func (a *effectContext) lengthenNames(tools []json.RawMessage) []json.RawMessage {
	length := min(a.rule.values.Int("length"), 4096)
	for i, raw := range tools[:min(len(tools), a.rule.values.Int("count"))] {
		var name string
		// A tool that has a longer name already keeps it.
		if json.Unmarshal(memberValue(readObject(raw), "name"), &name) == nil && len(name) < length {
			tools[i] = a.renameTool(raw, strings.Repeat("_", length-len(name)))
		}
	}
	return tools
}

// renameTool returns a tool whose name has a suffix, and records its real name for later calls. What has no name stays as it is.
func (a *effectContext) renameTool(raw json.RawMessage, suffix string) json.RawMessage {
	o := readObject(raw)
	var name string
	if json.Unmarshal(memberValue(o, "name"), &name) != nil {
		return raw
	}
	a.f.renamedTools[name+suffix] = name
	return encodeObject(setMember(o, "name", quoteJSON(name+suffix)))
}

// calledBefore reports whether the client has used a method in this conversation, since there was a rule.
func (f *Flow) calledBefore(method string) bool { _, ok := f.usedMethods[method]; return ok }
