package servers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// listFaults are servers with faults in tools/list and in what they announce about it.
var listFaults = []Kind{
	{"no-list", noList,
		"never answers tools/list; answers everything else"},
	{"refuses-list", refusesList,
		"answers tools/list with a JSON-RPC error, code=-32603, after the first good=0 times"},
	{"bad-schemas", badSchemas,
		"lists the good tools and, between them, tools that no client can use"},
	{"not-a-list", notAList,
		"answers tools/list with a result that holds no list"},
	{"duplicates", duplicateTools,
		"lists two different tools under one name, twice"},
	{"long-names", longNames,
		"lists tools whose names are too long, differ only at the end, or hold characters that no model takes"},
	{"cursor-loop", cursorLoop,
		"gives every page of tools/list the same next cursor"},
	{"endless-pages", endlessPages,
		"gives every page of tools/list a next cursor that was never seen before"},
	{"empty-cursor", emptyCursor,
		"gives the first page an empty string as next cursor, which is a cursor like any other"},
	{"list-storm", listStorm,
		"after the first tools/list sends list_changed every=1ms, count=1000 times; the last one follows a " +
			"tool named after-the-storm"},
	{"list-feedback", listFeedback,
		"sends list_changed after each answer to tools/list"},
	{"changes-while-listing", changesWhileListing,
		"adds the tool changed-N and announces it while the answer to the N-th tools/list, which does not " +
			"hold it, is on its way; times=3"},
}

func noList(p params) int {
	s := newServer(p)
	s.handlers["tools/list"] = func(*server, message) {}
	return s.serve()
}

// refusesList may answer good=N lists first, so that a client has tools to keep when the list fails later.
func refusesList(p params) int {
	s := newServer(p)
	var seen atomic.Int64
	s.handlers["tools/list"] = func(s *server, m message) {
		if seen.Add(1) <= int64(p.intOr("good", 0)) {
			s.answerBySpec(m)
			return
		}
		s.sendError(m, p.intOr("code", -32603), "the list is not available")
	}
	return s.serve()
}

// badSchemas puts the unusable tools between good ones, so that a client which stops at the first fault loses good
// tools.
func badSchemas(p params) int {
	s := newServer(p)
	s.list = slices.Concat(goodTools[:1], unusable, usable, goodTools[1:])
	return s.serve()
}

func notAList(p params) int {
	s := newServer(p)
	s.handlers["tools/list"] = func(s *server, m message) { s.sendResult(m, `{"tools":{"echo":{}}}`) }
	return s.serve()
}

// duplicateTools gives two tools one name; which of them a call would run is not defined.
func duplicateTools(p params) int {
	s := newServer(p)
	s.extra = []string{
		`{"name":"twice","description":"first","inputSchema":{"type":"object"}}`,
		`{"name":"twice","description":"second","inputSchema":{"type":"object","properties":{"a":{}}}}`,
		`{"name":"again","description":"first","inputSchema":{"type":"object"}}`,
		`{"name":"again","description":"second","inputSchema":{"type":"object"}}`,
	}
	s.tool = func(s *server, m message, c callParams) { s.sendText(m, c.Name) }
	return s.serve()
}

// longNames lists names that become equal when a client cuts or replaces characters.
func longNames(p params) int {
	s := newServer(p)
	long := "a_tool_whose_name_says_everything_that_it_does_and_then_a_little_more_until_it_is_too_long_"
	for _, n := range []string{
		long + "one", long + "two", "dotted.name", "dotted_name", "with space", "with/slash", "ümläut", "a__b",
	} {
		s.extra = append(s.extra, bareDefinition(n))
	}
	s.tool = func(s *server, m message, c callParams) { s.sendText(m, c.Name) }
	return s.serve()
}

// sendPage answers with one tool and a next cursor.
func (s *server) sendPage(m message, tool, next string) {
	s.sendResult(m, `{"tools":[`+bareDefinition(tool)+`],"nextCursor":`+quoteJSON(next)+s.cacheMembers()+`}`)
}

func cursorLoop(p params) int {
	s := newServer(p)
	s.handlers["tools/list"] = func(s *server, m message) { s.sendPage(m, "one", "round-and-round") }
	return s.serve()
}

// endlessPages gives a new cursor each time, so that only a bound on the pages ends the listing.
func endlessPages(p params) int {
	s := newServer(p)
	var n atomic.Int64
	s.handlers["tools/list"] = func(s *server, m message) {
		i := n.Add(1)
		s.sendPage(m, fmt.Sprintf("tool-%d", i), fmt.Sprintf("page-%d", i))
	}
	return s.serve()
}

// hasCursor reports whether a request has a cursor, also an empty one.
func hasCursor(m message) bool {
	var p map[string]json.RawMessage
	return json.Unmarshal(m.Params, &p) == nil && p["cursor"] != nil
}

// emptyCursor tests that a client asks for the second page, although the cursor is an empty text.
func emptyCursor(p params) int {
	s := newServer(p)
	s.handlers["tools/list"] = func(s *server, m message) {
		if !hasCursor(m) {
			s.sendPage(m, "on-the-first-page", "")
			return
		}
		s.sendResult(m, `{"tools":[`+bareDefinition("on-the-second-page")+`]`+s.cacheMembers()+`}`)
	}
	return s.serve()
}

// listStorm announces more changes than a client can list for, and the last one matters.
func listStorm(p params) int {
	s := newServer(p)
	var started atomic.Bool
	s.handlers["tools/list"] = func(s *server, m message) {
		s.answerBySpec(m)
		if !started.CompareAndSwap(false, true) {
			return
		}
		for range p.intOr("count", 1000) - 1 {
			s.sendNotification("notifications/tools/list_changed")
			time.Sleep(p.durationOr("every", time.Millisecond))
		}
		// The client has to list once more after the last announcement to see this tool.
		s.dynamic.setTool("after-the-storm", true)
		s.sendNotification("notifications/tools/list_changed")
	}
	return s.serve()
}

// listFeedback makes a client that lists at each announcement list for ever.
func listFeedback(p params) int {
	s := newServer(p)
	s.handlers["tools/list"] = func(s *server, m message) {
		s.answerBySpec(m)
		s.sendNotification("notifications/tools/list_changed")
	}
	return s.serve()
}

// changesWhileListing announces a change while the answer without it is under way: a client that clears its mark when
// the answer comes misses the tool.
func changesWhileListing(p params) int {
	s := newServer(p)
	var n atomic.Int64
	s.handlers["tools/list"] = func(s *server, m message) {
		before := s.toolDefinitions()
		if i := n.Add(1); i <= int64(p.intOr("times", 3)) {
			s.dynamic.setTool(fmt.Sprintf("changed-%d", i), true)
			s.sendNotification("notifications/tools/list_changed")
			// The pause lets the client read the notification before the answer.
			time.Sleep(10 * time.Millisecond)
		}
		s.sendResult(m, `{"tools":[`+strings.Join(before, ",")+`]`+s.cacheMembers()+`}`)
	}
	return s.serve()
}
