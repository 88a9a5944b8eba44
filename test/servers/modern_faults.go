package servers

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// modernFaults are servers of the modern era, each of which breaks one sentence of 2026-07-28 and behaves otherwise.
var modernFaults = []Kind{
	{"modern-result-type", modernResultType,
		"answers tools/call with the resultType type=surprise"},
	{"modern-no-result-type", modernNoResultType,
		"answers everything without a resultType, as an older server does"},
	{"modern-input-for-ever", modernInputForEver,
		"answers each round of a tools/call with another input_required: with=state alone, or with=roots"},
	{"modern-task-for-ever", modernTaskForEver,
		"makes each tools/call a task that never ends, and that nobody may cancel"},
	{"modern-unnamed-changes", modernUnnamedChanges,
		"tells count=50 times that its tools changed, and never on which subscription"},
	{"modern-foreign-changes", modernForeignChanges,
		"tells count=50 times that its tools changed, on subscriptions that nobody has"},
	{"modern-no-acknowledgement", modernNoAcknowledgement,
		"never agrees to subscriptions/listen, and tells on it all the same"},
	{"modern-listen-flaps", modernListenFlaps,
		"agrees to each subscriptions/listen and ends it at once"},
	{"modern-listen-refused", modernListenRefused,
		"answers subscriptions/listen with a JSON-RPC error, code=-32603"},
	{"modern-dies-on-listen", modernDiesOnListen,
		"exits with code=1 when it reads subscriptions/listen"},
	{"modern-asks", modernAsks,
		"sends the client requests of its own with each tools/call, which no server of this era may, under the ids of the " +
			"client's requests"},
	{"modern-odd-answers", modernOddAnswers,
		"answers each request twice, the second time with an error, and answers ids that nobody asked for"},
	{"modern-cancels", modernCancels,
		"sends notifications/cancelled for each tools/call and answers it all the same"},
	{"modern-odd-progress", modernOddProgress,
		"reports progress that goes backwards, has no token, another's token, or comes after the answer"},
	{"modern-forgets-version", modernForgetsVersion,
		"answers tools/call with UnsupportedProtocolVersionError, naming only versions that nobody speaks"},
	{"modern-odd-discovery", modernOddDiscovery,
		"names its version in server/discover, and has the wrong type in every other field of it"},
}

// modernResultType uses a resultType that the client cannot know, and must not take for a complete result.
func modernResultType(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":%s,"content":[{"type":"text","text":"x"}]}}`,
			m.ID, quoteJSON(p.textOr("type", "surprise"))))
	}
	return s.serve()
}

func modernNoResultType(p params) int {
	s := newModern(p)
	s.noResultType = true
	return s.serve()
}

// modernInputForEver asks for further input in each round, so that only a bound on the rounds ends the call.
func modernInputForEver(p params) int {
	s := newModern(p)
	var round atomic.Int64
	asks := ""
	if p.textOr("with", "state") == "roots" {
		asks = `"inputRequests":{"r":{"method":"roots/list","params":{}}},`
	}
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required",%s"requestState":"round %d"}}`,
			m.ID, asks, round.Add(1)))
	}
	return s.serve()
}

// modernTaskForEver tests that a client ends its polling by its own deadline.
func modernTaskForEver(p params) int {
	s := newModern(p)
	const task = `"taskId":"endless","status":"working","createdAt":"2026-01-01T00:00:00Z",` +
		`"lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":20`
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"resultType":"task",` + task + `}}`)
	}
	s.handlers["tasks/get"] = func(s *server, m message) { s.sendResult(m, `{`+task+`}`) }
	s.handlers["tasks/cancel"] = func(s *server, m message) { s.sendError(m, -32603, "this task knows no end") }
	return s.serve()
}

// afterAgreeing returns a modern server that calls then count=50 times, a millisecond apart, once it has agreed to a
// subscription.
func afterAgreeing(p params, then func(s *server, m message)) *server {
	s := newModern(p)
	s.handlers["subscriptions/listen"] = func(s *server, m message) {
		s.answerBySpec(m)
		for range p.intOr("count", 50) {
			then(s, m)
			time.Sleep(time.Millisecond)
		}
	}
	return s
}

func modernUnnamedChanges(p params) int {
	return afterAgreeing(p, func(s *server, _ message) {
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}).serve()
}

// modernForeignChanges uses ids of every JSON type, because a client compares them with its own.
func modernForeignChanges(p params) int {
	return afterAgreeing(p, func(s *server, _ message) {
		for _, id := range []string{`987654321`, `"nobody"`, `null`, `{}`, `[1]`} {
			s.notifySubscription("notifications/tools/list_changed", id)
		}
	}).serve()
}

// modernNoAcknowledgement sends notifications on a subscription that it has not acknowledged.
func modernNoAcknowledgement(p params) int {
	s := newModern(p)
	s.handlers["subscriptions/listen"] = func(s *server, m message) {
		s.subscriptions.addID(string(m.ID))
		s.notifySubscribers("notifications/tools/list_changed")
	}
	return s.serve()
}

// modernListenFlaps ends each subscription at once, so that a client without growing delays asks without pause.
func modernListenFlaps(p params) int {
	s := newModern(p)
	s.handlers["subscriptions/listen"] = func(s *server, m message) {
		s.openSubscription(m)
		s.subscriptions.removeID(string(m.ID))
		s.sendResult(m, `{}`)
	}
	return s.serve()
}

// modernListenRefused counts each request, so that a test sees how often the client tries.
func modernListenRefused(p params) int {
	s := newModern(p)
	s.handlers["subscriptions/listen"] = func(s *server, m message) {
		s.subscriptions.addID(string(m.ID))
		s.subscriptions.removeID(string(m.ID))
		s.sendError(m, p.intOr("code", -32603), "no more subscriptions")
	}
	return s.serve()
}

func modernDiesOnListen(p params) int {
	s := newModern(p)
	s.handlers["subscriptions/listen"] = func(*server, message) { os.Exit(p.intOr("code", 1)) }
	return s.serve()
}

// modernAsks reuses the client's ids, so that a client which confuses requests and answers completes the wrong call.
func modernAsks(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "ping"} {
			s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"message":"?","messages":[],"maxTokens":1}}`,
				m.ID, method))
		}
		s.answerBySpec(m)
	}
	return s.serve()
}

// modernOddAnswers answers ids that the client did not use, null, and a call twice.
func modernOddAnswers(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(`{"jsonrpc":"2.0","id":987654321,"result":{"resultType":"complete","content":[]}}`)
		s.sendLine(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)
		s.answerBySpec(m)
		s.sendError(m, -32603, "changed my mind")
	}
	return s.serve()
}

// modernCancels cancels the client's own request and answers it all the same.
func modernCancels(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(m.ID) + `}}`)
		s.answerBySpec(m)
	}
	return s.serve()
}

// modernOddProgress reports the progress of a call against the rules, before its answer and once after it.
func modernOddProgress(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		report := func(members string) {
			s.sendLine(`{"jsonrpc":"2.0","method":"notifications/progress","params":{` + members + `}}`)
		}
		// Each line breaks one rule: values must rise, be numbers and carry the token of a request that still runs.
		token := tokenOf(m)
		report(`"progressToken":` + token + `,"progress":9`)
		report(`"progressToken":` + token + `,"progress":1,"total":-1`)
		report(`"progressToken":` + token + `,"progress":"half"`)
		report(`"progressToken":"another's","progress":3`)
		report(`"progress":4`)
		s.answerBySpec(m)
		report(`"progressToken":` + token + `,"progress":10`)
	}
	return s.serve()
}

// modernForgetsVersion refuses a version that it has accepted in server/discover.
func modernForgetsVersion(p params) int {
	s := newModern(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"Unsupported protocol version",`+
			`"data":{"supported":["2099-01-01"],"requested":%q}}}`, m.ID, codeBadVersion, modernVersion))
	}
	return s.serve()
}

// modernOddDiscovery has one usable field: a client may use the version and must survive the rest.
func modernOddDiscovery(p params) int {
	s := newModern(p)
	s.handlers["server/discover"] = func(s *server, m message) {
		s.sendResult(m, fmt.Sprintf(`{"supportedVersions":[7,null,%q,"2099-01-01"],"capabilities":{"tools":`+
			`{"listChanged":"perhaps"},"prompts":7},"instructions":{},`+
			`"ttlMs":"soon","cacheScope":5,"_meta":{"%sserverInfo":[]}}`, modernVersion, metaPrefix))
	}
	return s.serve()
}
