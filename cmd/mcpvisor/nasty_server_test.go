package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// nastyText holds characters that act on a terminal or are not seen there: C0, C1, OSC, marks of direction, zero width, tags, a
// carriage return, and letters that look like others.
const nastyText = "n\x1b[2J\x1b]52;c;eA==\x07\u009b31m\u009dx\u009c\u202e\u2066\u200b\u200d\ufeff\u2028\u00ad\U000e0041\r\b\x00g\u0456thub"

// nasty is a server that sends nastyText in every place where a server can send a text.
func nasty() {
	text, _ := json.Marshal(nastyText)
	field, _ := json.Marshal(nastyText + "field")
	say := func(s string) string {
		return strings.NewReplacer("NASTY", string(text), "FIELD", string(field), "\n", " ").Replace(s)
	}
	in, call := bufio.NewReader(os.Stdin), json.RawMessage(nil)
	fmt.Fprintln(os.Stderr, nastyText)
	fmt.Println(nastyText)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name string
				Meta struct {
					Token json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			}
			Result json.RawMessage
		}
		if json.Unmarshal(raw, &m) != nil || m.ID == nil {
			continue
		}
		result := "{}"
		switch m.Method {
		case "":
			m.ID, result = call, `{"content":[{"type":"text","text":NASTY}]}`
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{},"logging":{}},
				"serverInfo":{"name":NASTY,"title":NASTY,"version":NASTY,"websiteUrl":NASTY},"instructions":NASTY}`
		case "tools/list":
			result = `{"tools":[
				{"name":"says","title":NASTY,"description":NASTY,"annotations":{"title":NASTY,"destructiveHint":true},
					"inputSchema":{"type":"object","properties":{FIELD:{"type":"string","title":NASTY,"description":NASTY,"enum":[NASTY],"default":NASTY}}},
					"outputSchema":{"type":"object","properties":{FIELD:{"type":"string"}}}},
				{"name":"fails","inputSchema":{"type":"object"}},{"name":"asks","inputSchema":{"type":"object"}},
				{"name":NASTY,"inputSchema":{"type":"object"}}]}`
		case "resources/list":
			result = `{"resources":[{"uri":"x://plain","name":NASTY,"title":NASTY,"description":NASTY,"mimeType":NASTY},{"uri":NASTY,"name":"b"}]}`
		case "resources/templates/list":
			result = `{"resourceTemplates":[{"uriTemplate":"x://{a}","name":NASTY,"title":NASTY,"description":NASTY,"mimeType":NASTY}]}`
		case "prompts/list":
			result = `{"prompts":[{"name":"fill","title":NASTY,"description":NASTY,"arguments":[{"name":FIELD,"title":NASTY,"description":NASTY}]},{"name":NASTY}]}`
		case "prompts/get":
			result = `{"description":NASTY,"messages":[{"role":"user","content":{"type":"text","text":NASTY}},
				{"role":"assistant","content":{"type":"resource_link","uri":NASTY,"name":NASTY}}]}`
		case "resources/read":
			result = `{"contents":[{"uri":NASTY,"mimeType":NASTY,"text":NASTY}]}`
		case "completion/complete":
			result = `{"completion":{"values":[NASTY]}}`
		case "tools/call":
			fmt.Println(say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":NASTY,"data":{FIELD:NASTY}}}`))
			if m.Params.Meta.Token != nil {
				fmt.Println(say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":NASTY}}`, m.Params.Meta.Token)))
			}
			switch m.Params.Name {
			case "fails":
				fmt.Println(say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":NASTY,"data":{FIELD:NASTY}}}`, m.ID)))
				continue
			case "asks":
				call = m.ID
				fmt.Println(say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":NASTY,"requestedSchema":
					{"type":"object","properties":{FIELD:{"type":"string","title":NASTY,"description":NASTY,"enum":[NASTY]}}}}}`))
				continue
			}
			result = `{"content":[{"type":"text","text":NASTY},{"type":"resource","resource":{"uri":NASTY,"mimeType":NASTY,"text":NASTY}},
				{"type":"resource_link","uri":NASTY,"name":NASTY,"title":NASTY,"description":NASTY},{"type":"image","mimeType":NASTY,"data":"AAAA"},
				{"type":NASTY}],"structuredContent":{FIELD:NASTY}}`
		}
		fmt.Println(say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)))
	}
}
