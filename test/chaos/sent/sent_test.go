package sent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// scripted is a server that says what a story says.
type scripted struct {
	peer.Machine
	says []peer.Action
}

func (s *scripted) Open(time.Duration, int) []peer.Action { return s.says }

func (s *scripted) Receive(time.Duration, int, []byte, map[string]string) []peer.Action { return nil }

func (s *scripted) Wake(time.Duration, int) []peer.Action { return s.says }

func (s *scripted) Closed(time.Duration, int, bool) []peer.Action { return nil }

func (s *scripted) Killed(time.Duration, int) { s.says = nil }

// The words of the stories: "> " is what the client sends, over HTTP with its headers ("name=value") before it; "< " what the
// server sends, "slow 5s" before it what arrives only then, and "cut" what breaks off; "refuse 3 401" answers the request 3 with a status and a body behind it, "refuse" a notification, "wait 2s" lets
// time pass, "breaks 3" breaks the stream of the request 3 and "breaks" those of all, "deaf" and "stop" keep the server from reading until "reads" and "runs", "close" closes the client's side, "next" is the next connection. A word in capitals stands for a message that every story needs.
var words = strings.NewReplacer(
	"> INIT", `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
	"< INIT", `< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`,
	"> READY", `> {"jsonrpc":"2.0","method":"notifications/initialized"}`,
	"> WEB", `> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/initialized"}`,
	"META", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`,
)

// askingTask is a task of the modern era that asks for the inputs a and b.
const askingTask = `
			> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",META}}
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"k","status":"working","pollIntervalMs":400}}
			wait 1s
			> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","taskId":"k","status":"input_required","inputRequests":{"a":{},"b":{}}}}`

// taskUnderWay is a task of which the client has asked, and got no answer yet.
const taskUnderWay = begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 1s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`

// beganAsCut is a task that is asked for, and its name stood in an answer that broke off.
const beganAsCut = `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			cut {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 1s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`

// listedThenEnded is a task of which a program, which has listed the tasks, or the polling of its call is told that it has ended.
const listedThenEnded = begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"working","pollInterval":400}]}}
			wait 1s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":4,"result":{"taskId":"k","status":"completed","pollInterval":400}}`

// twoFailedPolls are polls that the client gave up, each after the interval.
const twoFailedPolls = taskUnderWay + `
			wait 10s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
			wait 1s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			wait 10s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}
			wait 1s
			> {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":5,"result":{"taskId":"k","status":"working","pollInterval":400}}`

// lostTask is the next connection of the client.
const lostTask = `
			next
			` + begun

const begun = "> INIT\n< INIT\n> READY\n"

type story struct {
	name   string
	server scenario.Server
	text   string
	// want must stand in the first violation; empty: there is none.
	want string
}

var (
	stdio         = scenario.Server{Name: "s", Kind: messages.Stdio}
	web           = scenario.Server{Name: "s", Kind: messages.HTTP}
	tasks         = scenario.Server{Name: "s", Kind: messages.Stdio, Tasks: scenario.TasksRequired}
	optional      = scenario.Server{Name: "s", Kind: messages.Stdio, Tasks: scenario.TasksOptional}
	numberedTasks = scenario.Server{Name: "s", Kind: messages.HTTP, Tasks: scenario.TasksRequired, Web: scenario.WebNumbered}
	webTasks      = scenario.Server{Name: "s", Kind: messages.HTTP, Tasks: scenario.TasksRequired}
	// A question may only be asked by a server with offers.
	modernTasks = scenario.Server{Name: "s", Kind: messages.Stdio, Era: messages.EraModern, Tasks: scenario.TasksRequired, Offers: true}
	modernWeb   = scenario.Server{Name: "s", Kind: messages.HTTP, Era: messages.EraModern, Tasks: scenario.TasksRequired}
	offers      = scenario.Server{Name: "s", Kind: messages.Stdio, Offers: true}
	webOffers   = scenario.Server{Name: "s", Kind: messages.HTTP, Offers: true}
	stories     = []story{
		{"a handshake, a call, its answer", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"progressToken":2}}}
			< {"jsonrpc":"2.0","id":2,"result":{}}`, ""},
		{"an id is used twice", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "the id 2 of tools/list is that of tools/list"},
		{"what was refused for its credentials comes again", web, "> INIT\n< INIT\n> WEB\n" + `
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			refuse 2 401
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, ""},
		{"a client counts anew after its handshake was refused", web, "> INIT\nrefuse 1 307\n" +
			`> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}`, ""},
		{"a client counts anew within a session", web, "> INIT\n< INIT\n> WEB\n" + `
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			refuse 2 401
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"ping"}`, "the id 2 of ping is that of tools/list"},
		{"a refused request comes again with what belongs to it", webOffers, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}
			refuse 3 401
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}
			< {"jsonrpc":"2.0","id":4,"result":{"tools":[],"nextCursor":"a"}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"a",META}}
			refuse 5 401
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"cursor":"a",META}}`, ""},
		{"a request comes again after an answer with a status", web, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}
			refuse 4 400 {"jsonrpc":"2.0","id":4,"error":{"code":-32020,"message":"no"}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}`, "the id 4 of tools/list"},
		{"a request comes again after its exchange broke off", web, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}
			refuse 4 0
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/list {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}`, "the id 4 of tools/list"},
		{"a cancellation comes again after it was refused", web, "> INIT\n< INIT\n> WEB\n" + `
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
			refuse
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""},
		{"a probe is cancelled after another handshake began", web, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
			> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			refuse 2 401
			> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25"}}
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, ""},
		{"another session after a 404", web, listsInSession + `
			refuse 2 404
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","id":3,"method":"ping"}
			wait 2s` + "\n> INIT\nsession 43\n< INIT\n" + `
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=43 {"jsonrpc":"2.0","method":"notifications/initialized"}
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=43 {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, ""},
		{"the old session after a 404", web, listsInSession + `
			refuse 2 404
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","id":3,"method":"ping"}`, "404 to its session"},
		{"the old session after a 404 to a request that was given up, as on seed 77016", web, listsInSession + `
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
			refuse 2 404
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","id":3,"method":"ping"}`, ""},
		{"the session goes on after a 404 that says that the method is unknown", web, listsInSession + `
			refuse 2 404 {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"method not found"}}
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 Mcp-Session-Id=42 {"jsonrpc":"2.0","id":3,"method":"ping"}`, ""},
		{"initialize again, though nothing was refused", web, "> INIT\n< INIT\n> WEB\nrefuse\n> WEB\n> INIT", "initialize again"},
		{"an id that is null", stdio, begun + `> {"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, "the id of tools/list is 1.5"},
		{"no version of JSON-RPC", stdio, `> {"id":1,"method":"ping"}`, "jsonrpc"},
		{"no message", stdio, `> hello`, "no JSON-RPC message"},
		{"a batch in a version without them", stdio, begun + `> [{"jsonrpc":"2.0","id":2,"method":"ping"}]`, "no JSON-RPC message"},
		{"params that are a list", stdio, begun + `> {"jsonrpc":"2.0","id":2,"method":"tools/list","params":[]}`, "no object"},
		{"a method that nobody knows", stdio, begun + `> {"jsonrpc":"2.0","id":2,"method":"tools/delete"}`, "no client may send"},
		{"a call of nothing", stdio, begun + `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`, "has no name"},
		{"a list before the handshake", stdio, `> {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "before it had answered initialize"},
		{"a list before the client is ready", stdio, "> INIT\n< INIT\n" + `> {"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "before notifications/initialized"},
		{"ready twice", stdio, begun + "> READY", "twice"},
		{"ready again, after it was refused", web, "> INIT\n< INIT\n> WEB\nrefuse\n> WEB", ""},
		{"the era is asked for again, after ready was refused", web, "> INIT\n< INIT\n> WEB\nrefuse\n" +
			`> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":7,"method":"server/discover","params":{META}}`, ""},
		{"initialize again", stdio, begun + "> INIT", "initialize again"},
		{"a probe and then the older handshake", stdio, `
			> {"jsonrpc":"2.0","id":7,"method":"server/discover","params":{META}}` + "\n" + begun, ""},
		{"the newer era after the older handshake", stdio, begun + `> {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{META}}`, "of the modern era"},
		{"the older era after an answer in the newer one", stdio, `
			> {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{META}}
			< {"jsonrpc":"2.0","id":7,"result":{"tools":[]}}
			> {"jsonrpc":"2.0","id":8,"method":"ping"}`, "of the legacy era"},
		{"a probe that says no version", stdio, `> {"jsonrpc":"2.0","id":7,"method":"server/discover"}`, "says no version"},
		{"no capabilities", stdio, `> {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, "capabilities"},
		{"headers that belong there", web, `> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=t {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t",META}}`, ""},
		{"no name in the header", web, `> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t",META}}`, "Mcp-Name"},
		{"no version in the header", web, "> INIT\n< INIT\n> READY", "Mcp-Protocol-Version"},
		{"no session in the header", web, "> INIT\n< INIT\nsession 42\n> WEB", "Mcp-Session-Id"},
		{"a token twice at a time", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"x"}}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"x"}}}`, `the progress token "x"`},
		{"a token again after the answer", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"x"}}}
			< {"jsonrpc":"2.0","id":2,"result":{}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"x"}}}`, ""},
		{"a cancellation", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""},
		{"a cancellation twice", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "cancelled twice"},
		{"a cancellation of what was answered long ago", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
			wait 5s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "cancelled 5s after its answer"},
		{"a cancellation of nothing", stdio, begun + `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "never sent"},
		{"a cancellation of initialize", stdio, "> INIT\n" + `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "MUST NOT be cancelled"},
		{"a cancellation without a request", stdio, begun + `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`, "has no requestId"},
		{"a question that is answered", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"roots/list"}
			> {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`, ""},
		{"a question that is answered twice", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"ping"}
			> {"jsonrpc":"2.0","id":"q","result":{}}
			> {"jsonrpc":"2.0","id":"q","result":{}}`, "answered twice"},
		{"an answer to no question", stdio, begun + `> {"jsonrpc":"2.0","id":"q","result":{}}`, "has asked nothing"},
		{"an answer that says nothing", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"ping"}
			> {"jsonrpc":"2.0","id":"q"}`, "result and error"},
		{"a ping that is refused", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"ping"}
			> {"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"no"}}`, "its ping"},
		{"an unknown question that is refused", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"what/ever"}
			> {"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"no"}}`, ""},
		{"an unknown question that is refused for another reason", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"what/ever"}
			> {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"no"}}`, "-32601"},
		{"an unknown question with a result", stdio, begun + `
			< {"jsonrpc":"2.0","id":"q","method":"what/ever"}
			> {"jsonrpc":"2.0","id":"q","result":{}}`, "answered with a result"},
		{"pages", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"a"}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"a"}}`, ""},
		{"a page that was not given", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"a"}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"b"}}`, "has not given"},
		{"a page twice", stdio, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"a"}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"a"}}
			< {"jsonrpc":"2.0","id":3,"result":{"tools":[],"nextCursor":"a"}}
			> {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":"a"}}`, "twice in one list"},
		{"what the server never offered", stdio, begun + `> {"jsonrpc":"2.0","id":2,"method":"prompts/list"}`, "never said"},
		{"a task", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 500ms
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed","pollInterval":400}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"k"}}`, ""},
		{"a tool that may run as a task does", optional, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","task":{}}}`, ""},
		{"a tool that says nothing of tasks runs as one", optional, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"put","task":{}}}`, "the tool put was called as a task, and says that it cannot be"},
		{"a task that is asked for too soon", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 300ms
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, "wants to be asked every 400ms"},
		{"a task of which it was told meanwhile", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"completed"}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a task that a program asks for beside the polling", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 300ms
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"working","pollInterval":400}]}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":4,"result":{"taskId":"k","status":"working","pollInterval":400}}
			wait 100ms
			> {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a list of tasks is no leave to hurry", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"working","pollInterval":400}]}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			> {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}`, "wants to be asked every 400ms"},
		{"a task that has ended", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working"}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"failed"}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"k"}}`, "after its end"},
		{"a task whose end is longer than the client reads", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":100}}}
			wait 1s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed","more":"` + strings.Repeat("x", 17<<20) + `"}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"k"}}`, ""},
		{"a task that was cancelled after its end", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":100}}}
			wait 1s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed"}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"k"}}`, "the task k was cancelled after its end"},
		{"of two hints in the instant of a poll the second may have come after it", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"input_required"}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"working"}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"working","pollInterval":400}}
			wait 100ms
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"two hints from before a poll are no leave to hurry after it", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"input_required"}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"working"}}
			wait 100ms
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"working","pollInterval":400}}
			wait 100ms
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, "wants to be asked every 400ms"},
		{"a hint from before a poll is no leave to hurry after it", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"working"}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"working","pollInterval":400}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, "wants to be asked every 400ms"},
		{"a task after an initialize that was refused a moment before server/discover was answered", webTasks, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
			wait 1s
			> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			refuse 2 400
			< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=t {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t",META}}
			< {"jsonrpc":"2.0","id":3,"result":{"resultType":"task","taskId":"k","status":"working","pollIntervalMs":400}}
			wait 500ms
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":4,"method":"server/discover","params":{META}}
			< {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tasks/get Mcp-Name=k {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k",META}}`, ""},
		{"a task whose name came on a stream that broke and was gone on with, as on seed 20940458", numberedTasks, beganAsCut, ""},
		{"a task whose name came on a stream that broke for good", webTasks, beganAsCut, "never told of one"},
		{"a poll upon a hint that is refused for its credentials comes again", webTasks, `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"completed"}}
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			refuse 3 401
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a poll without a hint that is refused may not hurry", webTasks, `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 500ms
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"working","pollInterval":400}}
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			refuse 4 401`, "wants to be asked every 400ms"},
		{"a poll that the client gave up is followed by another one after two intervals", tasks, taskUnderWay + `
			wait 10s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
			wait 810ms
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a poll that the client gave up is followed by another one after one interval", tasks, taskUnderWay + `
			wait 10s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
			wait 500ms
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, "500ms after it had left that unanswered"},
		{"a poll that the client gave up is followed by another one at once", tasks, taskUnderWay + `
			wait 10s
			> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
			wait 100ms
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, "100ms after it had left that unanswered"},
		{"two failed polls are no leave for two more", tasks, twoFailedPolls + `
			> {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":6,"result":{"taskId":"k","status":"working","pollInterval":400}}
			> {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"k"}}`, "wants to be asked every 400ms"},
		{"a program is told of the end of a task that its call goes on to ask for, as on seed 20984876", tasks, listedThenEnded + `
			> {"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"taskId":"k"}}`, ""},
		{"a task that was lost is looked for", tasks, taskUnderWay + lostTask + `
			> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k"}}
			wait 3s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a task that was lost is looked for without a pause", tasks, taskUnderWay + lostTask + `
			> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k"}}
			wait 1s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, "who lost it looks once in 3s"},
		{"a task that was lost is cancelled", tasks, taskUnderWay + lostTask + `
			> {"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":"k"}}`, "who lost it looks whether it is there"},
		{"a hint that comes while a poll is under way", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 1s
			> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"k","status":"working"}}
			< {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"working","pollInterval":400}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a poll at once after the wait for the result failed", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"busy"}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"a program asks first, and the polling while that is under way", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"working","pollInterval":400}]}}
			wait 1s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			> {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":5,"result":{"taskId":"k","status":"working","pollInterval":400}}
			wait 1s
			> {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"three polls at once, and one program", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"working","pollInterval":400}]}}
			wait 1s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			> {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}
			> {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"k"}}`, "while it was asked for it already"},
		{"a task is cancelled before the answer about its end has come, as on seed 8000561", tasks, taskUnderWay + `
			slow 30s < {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed","pollInterval":400}}
			wait 20s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"k"}}`, ""},
		{"a task is cancelled after the answer about its end has come", tasks, taskUnderWay + `
			slow 10s < {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed","pollInterval":400}}
			wait 20s
			> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"k"}}`, "cancelled after its end"},
		{"initialize is refused after server/discover was answered, and a ping follows, as on seed 8000226", modernWeb, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
			> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=t {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t",META}}
			refuse 2 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"no"}}
			< {"jsonrpc":"2.0","id":3,"result":{"resultType":"task","taskId":"k","status":"working","pollIntervalMs":400}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=server/discover {"jsonrpc":"2.0","id":4,"method":"server/discover","params":{META}}
			wait 1s
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=tasks/get {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k",META}}`, ""},
		{"a task is asked for that the client knows from a list alone, as on seed 9002980", tasks, begun + `
			> {"jsonrpc":"2.0","id":3,"method":"tasks/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tasks":[{"taskId":"k","status":"completed","pollInterval":400}]}}
			> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, ""},
		{"the input of a task", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{},"b":{}},META}}`, ""},
		{"input that is refused, because the task is over", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":8,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}
			< {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"Task not found"}}
			> {"jsonrpc":"2.0","id":9,"method":"tasks/get","params":{"taskId":"k",META}}`, ""},
		{"input that a task has not asked for", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"c":{}},META}}`, "has not asked for it"},
		{"input that a task has already", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":8,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}
			< {"jsonrpc":"2.0","id":8,"result":{"resultType":"complete"}}
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}`, "twice"},
		{"input that is sent again, because its answer was lost, as on seed 9755110", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":8,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}
			refuse 8 0
			wait 1s
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}`, ""},
		{"input that is sent again before there is an answer", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":8,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k","inputResponses":{"a":{}},META}}`, "twice"},
		{"an update of a task without input", modernTasks, askingTask + `
			> {"jsonrpc":"2.0","id":9,"method":"tasks/update","params":{"taskId":"k",META}}`, "without any input"},
		{"a task that nobody has", tasks, begun + `> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}`, "never told of one"},
		{"no task where there must be one", tasks, begun + `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`, "was not called as a task"},
		{"no task for a tool that is listed", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t"}]}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}`, "was not called as a task"},
		{"no task for a tool that was withdrawn while its call waited, as on seed 20903036", tasks, begun + `
			> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t"}]}}
			> {"jsonrpc":"2.0","id":3,"method":"tools/list"}
			< {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"u"}]}}
			> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t"}}`, ""},
		{"a task where there is none", stdio, begun + `> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}`, "this server has none"},
		{"a round", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}`, ""},
		// Seed 20800074: a client that loses the answer may read once more, with the input that the server may have got.
		{"a round whose answer was lost", webOffers, `
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}
			reset
			> Mcp-Protocol-Version=2026-07-28 Mcp-Method=prompts/get Mcp-Name=p {"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}`, ""},
		// Seed 418: the process of a server crashed after it had asked for another round.
		{"a round that comes to the next process", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			next
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}`, ""},
		{"a round that the server before has not given", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			next
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"t","inputResponses":{"it":{}},META}}`, "not what was to come back"},
		{"a round twice", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}
			> {"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"it":{}},META}}`, "not what was to come back"},
		{"a round without its state", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","inputResponses":{"it":{}},META}}`, "not what was to come back"},
		{"a round about something else", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"q","requestState":"s","inputResponses":{"it":{}},META}}`, "other params"},
		{"a round without its answer", offers, `
			> {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p",META}}
			< {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"it":{}}}}
			> {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p","requestState":"s","inputResponses":{"other":{}},META}}`, `without an answer to "it"`},
		{"a message after the end", stdio, begun + "close\n" + `> {"jsonrpc":"2.0","id":2,"method":"ping"}`, "the client had closed"},
	}
)

func TestStories(t *testing.T) { checkStories(t, stories) }

// checkStories plays stories, and compares the first violation of each.
func checkStories(t *testing.T, all []story) {
	t.Helper()
	for _, s := range all {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			got := playStory(t, s)
			switch {
			case s.want == "" && len(got) > 0:
				t.Errorf("it breaks a rule: %s", got)
			case s.want != "" && (len(got) == 0 || !strings.Contains(got[0], s.want)):
				t.Errorf("it breaks %q, want %q", got, s.want)
			}
		})
	}
}

// TestWhatTheProgramCanDoIsDeclared has handshakes of both eras, in which a capability is missing or not.
func TestWhatTheProgramCanDoIsDeclared(t *testing.T) {
	initialize := func(capabilities string) string {
		return `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`
	}
	discover := func(capabilities string) string {
		return `> {"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	}
	both := []string{"sampling", "roots"}
	for _, c := range []struct {
		text     string
		declared []string
		want     []string
	}{
		{initialize(`{"sampling":{},"roots":{}}`), both, nil},
		{initialize(`{"roots":{}}`), both, []string{"initialize does not declare that its client can do sampling"}},
		{initialize(`{}`), nil, nil},
		{discover(`{"sampling":{},"roots":{}}`), both, nil},
		{discover(`{"sampling":{}}`), both, []string{"server/discover does not declare that its client can do roots"}},
	} {
		if got := playStoryWithin(t, story{server: stdio, text: c.text}, virtualCrossTime, c.declared...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

// playStory returns the violations of a story in virtual time.
func playStory(t *testing.T, s story) (violations []string) {
	t.Helper()
	return playStoryWithin(t, s, virtualCrossTime)
}

// playStoryWithin returns the violations of a story whose messages may cross each other for some time, and whose client has to declare
// capabilities.
func playStoryWithin(t *testing.T, s story, crossTime time.Duration, declared ...string) (violations []string) {
	t.Helper()
	server := &scripted{}
	m, now := judgeClients(server, peer.Config{Server: s.server, Client: declared}, crossTime), time.Duration(0)
	m.Open(now, 1)
	take := func(actions []peer.Action) {
		for _, a := range actions {
			if n, ok := a.(peer.Note); ok && n.Event.Kind == history.Violation && n.Event.Name == "I23" {
				violations = append(violations, n.Event.Text)
			}
		}
	}
	say := func(a peer.Action) {
		server.says = []peer.Action{a}
		take(m.Wake(now, 1))
	}
	for line := range strings.Lines(words.Replace(s.text)) {
		line = strings.TrimSpace(line)
		first, rest, _ := strings.Cut(line, " ")
		switch first {
		case "":
		case ">":
			header := map[string]string(nil)
			if s.server.Kind == messages.HTTP {
				header = map[string]string{}
			}
			for strings.Contains(rest, "{") && rest[0] != '{' && rest[0] != '[' {
				var pair string
				pair, rest, _ = strings.Cut(rest, " ")
				name, value, _ := strings.Cut(pair, "=")
				header[name] = value
			}
			take(m.Receive(now, 1, []byte(rest), header))
		case "<", "slow", "cut":
			var said struct {
				ID     json.RawMessage
				Method string
			}
			after := time.Duration(0)
			if first == "slow" {
				var took string
				took, rest, _ = strings.Cut(rest, " < ")
				var err error
				if after, err = time.ParseDuration(took); err != nil {
					t.Fatal(err)
				}
			}
			if err := json.Unmarshal([]byte(rest), &said); err != nil {
				t.Fatal(err)
			}
			a := peer.Send{Conn: 1, Body: []byte(rest), After: after}
			if said.Method == "" {
				a.Reply = string(said.ID)
			}
			if first == "cut" {
				a.Cut = len(rest) / 2
			}
			say(a)
		case "refuse":
			id, rest, _ := strings.Cut(rest, " ")
			code, body, _ := strings.Cut(rest, " ")
			status := 401
			if code != "" {
				status, _ = strconv.Atoi(code)
			}
			say(peer.Status{Conn: 1, Reply: id, Code: status, Body: []byte(body)})
		case "session":
			say(peer.Accept{Conn: 1, Session: rest})
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			now += d
		case "deaf", "reads":
			say(peer.PauseReading{Conn: 1, Resume: first == "reads"})
		case "stop", "runs":
			say(peer.Stop{Conn: 1, Resume: first == "runs"})
		case "next":
			m.Killed(now, 1)
			take(m.Open(now, 1))
		case "breaks":
			say(peer.Cut{Conn: 1, Reply: rest})
		case "reset":
			m.Killed(now, 1)
		case "close":
			take(m.Closed(now, 1, false))
		default:
			t.Fatalf("no story has the word %q", first)
		}
	}
	return violations
}
