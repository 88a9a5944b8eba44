package servers

import (
	"encoding/json"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// protocolFaults are servers with faults in their messages.
var protocolFaults = []Kind{
	{"silent", answersNothing,
		"reads everything and never answers anything"},
	{"wrong-version", wrongVersion,
		"answers initialize with the protocol version 1999-01-01 (or version=…)"},
	{"refuses-initialize", refusesInitialize,
		"answers initialize with a JSON-RPC error, code=-32603"},
	{"hangs-on-call", hangsOnCall,
		"never answers tools/call and ignores that it is cancelled; answers everything else"},
	{"late-answers", lateAnswers,
		"answers a tools/call after=1s whether it was cancelled or not, only the first times=all of them so late"},
	{"odd-answers", oddAnswers,
		"answers each tools/call twice, and answers ids that nobody asked for"},
	{"progress-forever", progressForever,
		"reports progress of a tools/call every=50ms and never answers it"},
	{"bad-results", badResults,
		"answers tools/call with results of the wrong shape: tool null, text, empty, unknown-content, not-as-" +
			"declared, big-number"},
}

// answersNothing reads on, so that the client's writes succeed and only timeouts end its requests.
func answersNothing(p params) int {
	s := newServer(p)
	for {
		if _, ok := s.readMessage(); !ok {
			return 0
		}
	}
}

func wrongVersion(p params) int {
	s := newServer(p)
	s.handlers["initialize"] = func(s *server, m message) { s.sendResult(m, s.initializeResult(p.textOr("version", "1999-01-01"))) }
	return s.serve()
}

func refusesInitialize(p params) int {
	s := newServer(p)
	s.handlers["initialize"] = func(s *server, m message) { s.sendError(m, p.intOr("code", -32603), "not today") }
	return s.serve()
}

// hangsOnCall leaves each call unanswered, also after notifications/cancelled.
func hangsOnCall(p params) int {
	s := newServer(p)
	s.handlers["tools/call"] = func(*server, message) {}
	return s.serve()
}

// lateAnswers answers calls that the client may have given up, whose ids must not be taken for newer ones.
func lateAnswers(p params) int {
	s := newServer(p)
	late, calls := p.intOr("times", math.MaxInt), atomic.Int64{}
	s.handlers["tools/call"] = func(s *server, m message) {
		if calls.Add(1) <= int64(late) {
			time.Sleep(p.durationOr("after", time.Second))
		}
		s.answerBySpec(m)
	}
	return s.serve()
}

// oddAnswers sends answers to ids that the client never used, and each real answer twice.
func oddAnswers(p params) int {
	s := newServer(p)
	s.handlers["tools/call"] = func(s *server, m message) {
		s.sendResult(message{ID: json.RawMessage(`987654321`)}, `{"content":[]}`)
		s.sendResult(message{ID: json.RawMessage(`"nobody"`)}, `{"content":[]}`)
		s.sendResult(message{ID: json.RawMessage(`null`)}, `{"content":[]}`)
		s.answerBySpec(m)
		s.answerBySpec(m)
	}
	return s.serve()
}

// progressForever tests that progress does not prolong a call beyond its longest time.
func progressForever(p params) int {
	s := newServer(p)
	every := p.durationOr("every", 50*time.Millisecond)
	s.handlers["tools/call"] = func(s *server, m message) {
		token := tokenOf(m)
		for i := 1; ; i++ {
			time.Sleep(every)
			s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress",`+
				`"params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
	}
	return s.serve()
}

// tokenOf returns the progress token of a request. Without one it returns the id, because a client must ignore progress
// that it did not ask for.
func tokenOf(m message) string {
	var p struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.Params, &p) != nil || p.Meta.Token == nil {
		return string(m.ID)
	}
	return string(p.Meta.Token)
}

// badToolResults maps the tools of bad-results to their results, each with a wrong or unexpected shape.
var badToolResults = map[string]string{
	"null":            `null`,
	"text":            `"just text"`,
	"empty":           `{}`,
	"unknown-content": `{"content":[{"type":"hologram","data":{"x":1}},{"type":"text","text":"after it"}]}`,
	"not-as-declared": `{"content":[{"type":"text","text":"{}"}],"structuredContent":{"sum":"not a number"}}`,
	"big-number":      `{"content":[],"structuredContent":{"sum":9007199254740993},"unknownField":{"kept":true}}`,
}

// badResults offers a tool for each bad result, some with an output schema that the result breaks.
func badResults(p params) int {
	s := newServer(p)
	for _, name := range []string{"null", "text", "empty", "unknown-content"} {
		s.extra = append(s.extra, bareDefinition(name))
	}
	for _, name := range []string{"not-as-declared", "big-number"} {
		s.extra = append(s.extra, `{"name":"`+name+`","inputSchema":{"type":"object"},"outputSchema":{"type":"object",`+
			`"properties":{"sum":{"type":"number"}},"required":["sum"]}}`)
	}
	s.tool = func(s *server, m message, c callParams) {
		if bad, ok := badToolResults[c.Name]; ok {
			s.sendResult(m, bad)
			return
		}
		s.sendError(m, -32602, "Unknown tool: "+c.Name)
	}
	return s.serve()
}
