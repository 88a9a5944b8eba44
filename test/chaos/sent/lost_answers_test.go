package sent

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// callUnderWay is a call over HTTP.
const callUnderWay = `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`

// answerUnderWay is a call over HTTP that its server answers within a second.
const answerUnderWay = callUnderWay + `
			slow 1s < {"jsonrpc":"2.0","id":2,"result":{}}`

// TestCredentialsOfCancellations: a cancellation has the credentials of the caller whose request it cancels, over HTTP, where it is a request of its own.
func TestCredentialsOfCancellations(t *testing.T) {
	const call = `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 Authorization=t-of-anna {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}
			wait 1s
			> Mcp-Protocol-Version=2025-11-25 Authorization=OWNER {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`
	cancelledBy := func(owner string) string { return strings.Replace(call, "OWNER", owner, 1) }
	personal := scenario.Server{Name: "s", Kind: messages.HTTP, Web: scenario.WebPlain, Personal: true}
	checkStories(t, []story{
		{"by its caller", personal, cancelledBy("t-of-anna"), ""},
		{"by its caller, with another token", personal, cancelledBy("u-of-anna"), ""},
		{"with the credentials of the connection", personal, cancelledBy("t"), "with the credentials of anna was cancelled with those of the connection"},
		{"with the credentials of another", personal, cancelledBy("t-of-bert"), "was cancelled with those of bert"},
	})
}

// endUnderWay is a task over HTTP whose end its server tells within a second.
const endUnderWay = `> INIT
			< INIT
			> WEB
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","task":{}}}
			< {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"k","status":"working","pollInterval":400}}}
			wait 500ms
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"k"}}
			slow 1s < {"jsonrpc":"2.0","id":3,"result":{"taskId":"k","status":"completed","pollInterval":400}}`

// An answer over HTTP that was on its way when its stream broke, or its server crashed, never came: its client may ask again for what it said, and
// cancel its request. One that had come before has its full weight.
func TestLostAnswers(t *testing.T) {
	numbered := scenario.Server{Name: "s", Kind: messages.HTTP, Web: scenario.WebNumbered}
	checkStories(t, []story{
		{"the stream of a call breaks with its answer on the way, and its caller gives up, as on seed 20985584", numbered, answerUnderWay + `
			wait 500ms
			breaks 2
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""},
		{"the stream of a call breaks after its answer, and its caller gives up", numbered, answerUnderWay + `
			wait 1s
			breaks 2
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "was cancelled 2s after its answer"},
		{"the streams of all calls break before the answer, as on seed 30300517", numbered, callUnderWay + `
			breaks
			< {"jsonrpc":"2.0","id":2,"result":{}}
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""},
		{"the streams of all calls break with the answer on the way", numbered, answerUnderWay + `
			wait 500ms
			breaks
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, ""},
		{"a stream breaks whose server has no numbers for events", web, callUnderWay + `
			breaks
			< {"jsonrpc":"2.0","id":2,"result":{}}
			wait 2s
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, "was cancelled 2s after its answer"},
		{"the end of a task is on its way as its server crashes, as on seed 20966896", webTasks, endUnderWay + `
			wait 500ms
			reset
			wait 800ms
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			< {"jsonrpc":"2.0","id":4,"result":{"taskId":"k","status":"completed","pollInterval":400}}`, ""},
		{"the end of a task has come as its server crashes", webTasks, endUnderWay + `
			wait 1s
			reset
			wait 400ms
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"k"}}`, "after it had told of its end"},
		{"a task is asked for soon after its server crashed with its end", webTasks, endUnderWay + `
			wait 500ms
			reset
			wait 100ms
			> Mcp-Protocol-Version=2025-11-25 {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"k"}}`, "100ms after it had left that unanswered"},
	})
}
