package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// never is the delay of an answer that does not come.
const never = time.Duration(-1)

// answerer is a server that begins to read after a time, and answers each question a time after it has read it.
type answerer struct {
	boot                       time.Duration
	discover, initialize, ping time.Duration
	answer                     string // to server/discover: a member and its value
	refuses                    bool   // initialize
}

func (p *answerer) wire(kind messages.TransportKind) *wire {
	w, start := &wire{kind: kind}, time.Now()
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		delay, body := never, ""
		switch m.Method {
		case "server/discover":
			delay, body = p.discover, p.answer
		case "initialize":
			delay, body = p.initialize, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
			if p.refuses {
				body = `"error":{"code":-32601,"message":"Method not found"}`
			}
		case "ping":
			delay, body = p.ping, `"result":{}`
		}
		if delay != never {
			time.AfterFunc(max(p.boot-time.Since(start), 0)+delay, func() {
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, m.ID, body))
			})
		}
		return transports.Written, nil
	}
	return w
}

// The answers to server/discover.
const (
	onlyModern = `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	bothEras   = `"result":{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
	notKnown   = `"error":{"code":-32601,"message":"Method not found"}`
	otherError = `"error":{"code":-32603,"message":"what?"}`
	tooNew     = `"error":{"code":-32022,"message":"Unsupported","data":{"supported":["2099-01-01"]}}`
)

// TestTheOrderAndDelayOfAnswersDoNotDecideTheEra has servers of each kind answer in every order and after every
// delay, soon and long after their start: each kind comes out as one era.
func TestTheOrderAndDelayOfAnswersDoNotDecideTheEra(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		answer  string
		silent  bool // about server/discover
		refuses bool // initialize
		kind    messages.TransportKind
		want    messages.Era
		class   messages.Class // of the error, if there is to be one
	}{
		{"modern", onlyModern, false, true, messages.Stdio, messages.EraModern, ""},
		{"modern that answers initialize, too", onlyModern, false, false, messages.Stdio, messages.EraModern, ""},
		{"both eras, stdio", bothEras, false, false, messages.Stdio, messages.EraLegacy, ""},
		{"both eras, in process", bothEras, false, false, messages.SDK, messages.EraLegacy, ""},
		{"both eras, HTTP", bothEras, false, false, messages.HTTP, messages.EraModern, ""},
		{"both eras by its own word only", bothEras, false, true, messages.Stdio, messages.EraModern, ""},
		{"legacy", notKnown, false, false, messages.Stdio, messages.EraLegacy, ""},
		{"legacy with another error", otherError, false, false, messages.HTTP, messages.EraLegacy, ""},
		{"legacy that is silent about what it does not know", "", true, false, messages.Stdio, messages.EraLegacy, ""},
		{"neither", notKnown, false, true, messages.Stdio, "", messages.ClassProtocol},
		{"newer than we are", tooNew, false, false, messages.Stdio, "", messages.ClassUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, boot := range []time.Duration{0, 999 * ms, 1000 * ms, 1001 * ms, 2 * time.Second, 20 * time.Second} {
				for _, discover := range []time.Duration{0, ms, 300 * ms, 900 * ms} {
					for _, initialize := range []time.Duration{0, ms, 300 * ms, 900 * ms} {
						for _, ping := range []time.Duration{0, 2 * ms, 400 * ms, never} {
							for _, first := range []bool{false, true} {
								p := &answerer{boot: boot, discover: discover, initialize: initialize, ping: ping, answer: c.answer, refuses: c.refuses}
								if c.silent {
									p.discover = never
								}
								synctest.Test(t, func(t *testing.T) {
									s, err := session.Dial(t.Context(), p.wire(c.kind), session.Config{InitializeFirst: first})
									if err != nil {
										t.Fatal(err)
									}
									ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
									defer stop()
									info, err := s.Handshake(ctx)
									if (err != nil) != (c.class != "") || messages.ClassOf(err) != c.class || info.Era != c.want {
										t.Errorf("%+v, initialize first %v: era %q, %v", p, first, info.Era, err)
									}
									_ = s.Close(context.Background())
									time.Sleep(time.Minute) // what it still answers
								})
							}
						}
					}
				}
			}
		})
	}
}

// TestHowLongTheEraTakes: each question that a server leaves unanswered costs a short time, once.
func TestHowLongTheEraTakes(t *testing.T) {
	for name, c := range map[string]struct {
		answerer
		want time.Duration
	}{
		"modern":                              {answerer{answer: onlyModern}, 0},
		"legacy":                              {answerer{answer: notKnown}, 0},
		"both":                                {answerer{answer: bothEras}, 0},
		"silent about server/discover":        {answerer{discover: never}, 2 * time.Second},
		"silent about server/discover, pings": {answerer{discover: never, ping: never}, 6 * time.Second},
		"slow to start":                       {answerer{boot: 9 * time.Second, answer: notKnown}, 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s, err := session.Dial(t.Context(), c.wire(messages.Stdio), session.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Handshake(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if elapsed := time.Since(start); elapsed != c.want {
				t.Errorf("%s: it took %v, want %v", name, elapsed, c.want)
			}
			_ = s.Close(context.Background())
			time.Sleep(time.Minute)
		})
	}
}
