package servers

import (
	"fmt"
	"os"
	"time"
)

// eraFaults are servers of the legacy era that mishandle server/discover, the request by which a client finds out the
// era.
var eraFaults = []Kind{
	{"silent-on-probe", silentOnProbe,
		"never answers a method that it does not know; answers everything else"},
	{"deaf-before-initialize", deafBeforeInitialize,
		"answers nothing at all, ever, if its first message is not initialize"},
	{"closes-on-probe", closesOnProbe,
		"closes its output if its first message is not initialize, and lives on for=60s"},
	{"odd-on-probe", oddOnProbe,
		"answers server/discover with nonsense, how=text, number, null, empty, greeting, no-versions, old-versions, " +
			"odd-versions, null-id, odd-error, bare-error, not-initialized, both or noise"},
}

// silentOnProbe leaves server/discover unanswered, so that a client has to give up on it by a timeout and go on with
// initialize.
func silentOnProbe(p params) int {
	s := newServer(p)
	s.handlers["server/discover"] = func(*server, message) {}
	return s.serve()
}

// requiresInitialize runs a server that calls giveUp if its first message is not initialize, and behaves otherwise.
func requiresInitialize(p params, giveUp func(s *server) int) int {
	s := newServer(p)
	first, ok := s.readMessage()
	if !ok {
		return 0
	}
	if first.Method != "initialize" {
		return giveUp(s)
	}
	s.answerBySpec(first)
	return s.serve()
}

// deafBeforeInitialize reads on without answering, so that only a new connection that begins with initialize succeeds.
func deafBeforeInitialize(p params) int {
	return requiresInitialize(p, func(s *server) int {
		for {
			if _, ok := s.readMessage(); !ok {
				return 0
			}
		}
	})
}

// closesOnProbe ends the connection and not the process, which the client has to stop before it tries again.
func closesOnProbe(p params) int {
	return requiresInitialize(p, func(s *server) int {
		s.out.Close()
		time.Sleep(p.durationOr("for", time.Minute))
		return 0
	})
}

// oddities maps the values of how= to the line that odd-on-probe sends in the place of an answer; %s is the id.
var oddities = map[string]string{
	"text":            `{"jsonrpc":"2.0","id":%s,"result":"what?"}`,
	"number":          `{"jsonrpc":"2.0","id":%s,"result":42}`,
	"null":            `{"jsonrpc":"2.0","id":%s,"result":null}`,
	"empty":           `{"jsonrpc":"2.0","id":%s,"result":{}}`,
	"greeting":        `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}`,
	"no-versions":     `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":[],"capabilities":{}}}`,
	"old-versions":    `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2025-06-18","2025-11-25"]}}`,
	"odd-versions":    `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":"all of them"}}`,
	"null-id":         `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`,
	"odd-error":       `{"jsonrpc":"2.0","id":%s,"error":{"code":42,"message":"","data":[1]}}`,
	"bare-error":      `{"jsonrpc":"2.0","id":%s,"error":"no such thing"}`,
	"not-initialized": `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Server not initialized"}}`,
	"both":            `{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":-32601,"message":"?"}}`,
	"noise":           `Traceback (most recent call last): KeyError: 'server/discover' %s`,
}

// Oddities returns the values of how= that odd-on-probe knows, in no order.
func Oddities() (names []string) {
	for name := range oddities {
		names = append(names, name)
	}
	return names
}

// oddOnProbe answers server/discover with one of oddities, after each of which initialize still works.
func oddOnProbe(p params) int {
	format, ok := oddities[p.textOr("how", "text")]
	if !ok {
		failFixture("odd-on-probe: how=" + p["how"])
	}
	s := newServer(p)
	s.handlers["server/discover"] = func(s *server, m message) {
		fmt.Fprintln(os.Stderr, "fixture: what is "+m.Method+"?")
		if p["how"] == "null-id" {
			s.sendLine(format)
			return
		}
		s.sendLine(fmt.Sprintf(format, m.ID))
	}
	return s.serve()
}
