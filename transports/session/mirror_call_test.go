package session_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// httpWire is a wire whose kind is HTTP.
type httpWire struct{ *wire }

func (w httpWire) Kind() messages.TransportKind { return messages.HTTP }

// dialHeaderServer plays a modern server. Its list holds tools, and the function answer answers each call.
func dialHeaderServer(
	t *testing.T, over func(*wire) transports.Transport, cfg session.Config, tools func() string,
	answer func(m transports.Message) string,
) *session.Session {
	t.Helper()
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "server/discover":
			w.receive(fmt.Sprintf(`{"id":%d,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{}}}}`, m.ID))
		case "initialize":
			w.receive(strings.Replace(helloAnswer, `"id":1`, fmt.Sprintf(`"id":%d`, m.ID), 1))
		case "tools/list":
			w.receive(fmt.Sprintf(`{"id":%d,"result":{"tools":[%s]}}`, m.ID, tools()))
		case "tools/call", "prompts/get":
			w.receive(fmt.Sprintf(`{"id":%d,%s}`, m.ID, answer(m)))
		}
		return transports.Written, nil
	}
	s, err := session.Dial(t.Context(), over(w), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		<-s.Released()
	})
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func overHTTP(w *wire) transports.Transport  { return httpWire{w} }
func elsewhere(w *wire) transports.Transport { return w }

const (
	good = `{"name":"good","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`
	bad  = `{"name":"bad","inputSchema":{"properties":{"score":{"type":"number","x-mcp-header":"Score"}}}}`
)

// TestArgumentsAreMirrored checks when arguments are repeated in headers: "When a server's tool definition includes
// x-mcp-header annotations, conforming clients MUST mirror the designated parameter values into HTTP headers", and
// "MUST exclude the invalid tool from the result of tools/list"; only in the modern era, and only over HTTP.
func TestArgumentsAreMirrored(t *testing.T) {
	for _, test := range []struct {
		name string
		over func(*wire) transports.Transport
		era  messages.Era
		want map[string]string
		bad  bool
	}{
		{"modern HTTP", overHTTP, messages.EraModern, map[string]string{"Mcp-Param-Region": "us-west1"}, true},
		{"legacy HTTP", overHTTP, messages.EraLegacy, nil, false},
		{"modern, elsewhere", elsewhere, messages.EraModern, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got map[string]string
			s := dialHeaderServer(t, test.over, session.Config{Era: test.era}, func() string { return bad + "," + good },
				func(m transports.Message) string {
					got = m.Header
					return `"result":{"content":[]}`
				})
			list, err := s.ListTools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if (len(list.Quarantined) == 1) != test.bad || len(list.Tools)+len(list.Quarantined) != 2 {
				t.Errorf("tools %v, quarantined %v", list.Tools, list.Quarantined)
			}
			if test.bad && (list.Quarantined[0].Name != "bad" || !strings.Contains(list.Quarantined[0].Reason, "Score")) {
				t.Errorf("quarantined %v", list.Quarantined)
			}
			if _, err := s.OpenGate().Call(t.Context(), "good", []byte(`{"region":"us-west1"}`)); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("headers %q, want %q", got, test.want)
			}
		})
	}
}

// TestRefusedHeadersAreLookedUpAnew: "If the server rejects a request with a HeaderMismatch error … the client SHOULD
// call tools/list to check for changes to the tool's inputSchema, then retry the original request with the appropriate
// headers."
func TestRefusedHeadersAreLookedUpAnew(t *testing.T) {
	const mismatch = `"error":{"code":-32020,"message":"header mismatch"}`
	for _, changes := range []bool{true, false} {
		t.Run(fmt.Sprintf("changed %v", changes), func(t *testing.T) {
			lists, calls, notified := 0, 0, make(chan struct{}, 1)
			cfg := session.Config{Era: messages.EraModern, OnToolsChanged: func() { notified <- struct{}{} }}
			s := dialHeaderServer(t, overHTTP, cfg, func() string {
				if lists++; lists > 1 && changes {
					return strings.Replace(good, `"Region"`, `"Zone"`, 1)
				}
				return good
			}, func(m transports.Message) string {
				if calls++; m.Header["Mcp-Param-Zone"] == "us-west1" {
					return `"result":{"content":[]}`
				}
				return mismatch
			})
			if _, err := s.ListTools(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := s.OpenGate().Call(t.Context(), "good", []byte(`{"region":"us-west1"}`))
			if (err == nil) != changes || lists != 2 || calls != map[bool]int{true: 2, false: 1}[changes] {
				t.Errorf("error %v after %d lists and %d calls", err, lists, calls)
			}
			<-notified // the catalog has the old list
		})
	}
}

// TestAListThatFailsIsAskedForOnce: calls that were refused for their headers wait for one list. If it fails, it is not asked for again
// for each of them: a server whose cursors lead back would be asked for a thousand pages each time.
func TestAListThatFailsIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 5
		pages, begun := 0, make(chan struct{})
		s := dialHeaderServer(t, overHTTP, session.Config{Era: messages.EraModern}, func() string {
			if pages++; pages == 1 {
				return good
			}
			<-begun // every call was refused
			return `],"nextCursor":"a","rest":[`
		}, func(transports.Message) string { return `"error":{"code":-32020,"message":"header mismatch"}` })
		if _, err := s.ListTools(t.Context()); err != nil {
			t.Fatal(err)
		}
		gate, ended := s.OpenGate(), make(chan error, calls)
		for range calls {
			go func() {
				_, err := gate.Call(t.Context(), "good", []byte(`{"region":"us-west1"}`))
				ended <- err
			}()
		}
		synctest.Wait()
		close(begun)
		for range calls {
			if err := <-ended; messages.OutcomeOf(err) != messages.OutcomeRejected {
				t.Errorf("a call ended with %v", err)
			}
		}
		// The second page of the list that failed showed that its cursor leads back.
		if pages != 3 {
			t.Errorf("%d pages were asked for", pages)
		}
	})
}

// TestAMirroredArgumentThatIsTooLong: a call whose argument does not fit into a header is not sent, and its error
// names the argument.
func TestAMirroredArgumentThatIsTooLong(t *testing.T) {
	calls := 0
	s := dialHeaderServer(t, overHTTP, session.Config{}, func() string { return good }, func(transports.Message) string {
		calls++
		return `"result":{"content":[]}`
	})
	if _, err := s.ListTools(t.Context()); err != nil {
		t.Fatal(err)
	}
	gate := s.OpenGate()
	_, err := gate.Call(t.Context(), "good", fmt.Appendf(nil, `{"region":%q}`, strings.Repeat("x", 1<<20)))
	if messages.OutcomeOf(err) != messages.OutcomeNotSent || messages.ClassOf(err) != messages.ClassInvalid ||
		!strings.Contains(err.Error(), `"region"`) || calls != 0 {
		t.Errorf("%v after %d calls", err, calls)
	}
	if _, err := gate.Call(t.Context(), "good", fmt.Appendf(nil, `{"region":%q}`, strings.Repeat("x", 8000))); err != nil {
		t.Errorf("one that fits: %v", err)
	}
}
