package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// questionServer is a server whose tool pay asks for a PIN, once both of its callers have begun.
type questionServer struct {
	both  chan struct{}
	mu    sync.Mutex
	write func(raw string)
	calls []string // ids, the first first
}

func (s *questionServer) serve(ctx context.Context, peer inprocess.Peer) error {
	s.write = func(raw string) { _ = peer.Write(ctx, []byte(raw)) }
	for {
		raw, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Params struct {
				Answers json.RawMessage `json:"inputResponses"`
			}
		}
		_ = json.Unmarshal(raw, &m)
		result := func(id json.RawMessage, body string) {
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, body))
		}
		switch {
		case m.Method == "server/discover":
			result(m.ID, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case m.Method == "initialize":
			result(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case m.Method == "tools/list":
			result(m.ID, `{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call" && m.Params.Answers != nil:
			result(m.ID, fmt.Sprintf(`{"content":[],"structuredContent":%s}`, m.Params.Answers))
		case m.Method == "tools/call":
			s.mu.Lock()
			s.calls = append(s.calls, string(m.ID))
			n := len(s.calls)
			s.mu.Unlock()
			if n == 2 {
				close(s.both)
			}
		case m.Method == "" && m.Result != nil:
			for _, id := range s.calls {
				result(json.RawMessage(id), fmt.Sprintf(`{"content":[],"structuredContent":%s}`, m.Result))
			}
		case m.ID != nil:
			result(m.ID, `{}`)
		}
	}
}

const pin = `{"method":"elicitation/create","params":{"message":"PIN?","requestedSchema":{"type":"object","properties":{}}}}`

// TestAQuestionIsNeverAnotherCallers: Ann and Bob call the same tool. A question of the modern era about Ann's call
// goes to Ann; one of the legacy era, which may be about either call, goes to the manager's own person and to neither
// of them.
func TestAQuestionIsNeverAnotherCallers(t *testing.T) {
	for _, era := range []messages.Era{messages.EraModern, messages.EraLegacy} {
		t.Run(string(era), func(t *testing.T) {
			s := &questionServer{both: make(chan struct{})}
			location := newLocation(t)
			own := make(chan string, 8)
			m, err := supervisor.Start(t.Context(), supervisor.Config{
				Servers: map[string]supervisor.Spec{"shop": {Type: messages.SDK, Era: era}},
				Elicit: func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
					own <- "asked"
					return messages.ElicitResult{Action: messages.ElicitDecline}, nil
				},
				InProcess: map[string]func(context.Context, inprocess.Peer) error{"shop": s.serve},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close(context.Background()) })
			if err := m.Settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			srv, err := control.Serve(location, control.Local(m, control.LocalConfig{Project: location.Project, Origin: "o"}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { srv.Close() })
			c := dial(t, location)
			askedFirst, answers := make(chan string, 8), map[string]chan string{}
			for _, who := range []string{"ann", "bob"} {
				answer := make(chan string, 1)
				answers[who] = answer
				go func() {
					res, err := c.Call(t.Context(), control.Call{Server: "shop", Tool: "pay", CallHooks: control.CallHooks{
						Ask: func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
							askedFirst <- who
							return messages.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(`{"pin":"of-` + who + `"}`)}, nil
						},
					}})
					answer <- fmt.Sprintf("%s %v", res.Raw, err)
				}()
				for { // Ann is the first
					s.mu.Lock()
					n := len(s.calls)
					s.mu.Unlock()
					if who == "bob" || n == 1 {
						break
					}
					time.Sleep(time.Millisecond)
				}
			}
			<-s.both
			if era == messages.EraLegacy {
				s.write(`{"jsonrpc":"2.0","id":"q",` + strings.TrimPrefix(pin, "{"))
				<-own
				if len(askedFirst) != 0 {
					t.Errorf("%s was asked what may be the other one's", <-askedFirst)
				}
				return
			}
			s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"p":%s}}}`, s.calls[0], pin))
			if who := <-askedFirst; who != "ann" {
				t.Errorf("the question about the call of ann was put to %s", who)
			}
			if got := <-answers["ann"]; !strings.Contains(got, "of-ann") {
				t.Errorf("the call of ann got %s", got)
			}
			if len(own) != 0 || len(askedFirst) != 0 {
				t.Error("somebody else was asked too")
			}
		})
	}
}
