package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// questioner is a server that asks as often as ask is sent to, and gives what it is answered.
type questioner struct {
	ask     chan string // params of elicitation/create
	sample  chan string // params of sampling/createMessage
	answers chan string
}

func (q *questioner) serve(ctx context.Context, peer inprocess.Peer) error {
	go func() {
		n := 0
		for {
			select {
			case params := <-q.ask:
				n++
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":%s}`, n, params))
			case params := <-q.sample:
				n++
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage","params":%s}`, n, params))
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		_ = json.Unmarshal(msg, &m)
		switch {
		case m.Method == "initialize":
			_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{"logging":{}},"serverInfo":{"name":"q","version":"1"}}}`, m.ID))
		case m.Method == "" && m.Error != nil:
			q.answers <- "error " + string(m.Error)
		case m.Method == "":
			q.answers <- string(m.Result)
		case m.ID != nil:
			_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
		}
	}
}

func questioned(t *testing.T, cfg supervisor.Config) (*questioner, *supervisor.Manager) {
	t.Helper()
	q := &questioner{ask: make(chan string), sample: make(chan string), answers: make(chan string, 100)}
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"q": q.serve}
	cfg.Servers = map[string]supervisor.Spec{"q": {Type: messages.SDK, Era: messages.EraLegacy}}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	settled(t, m)
	return q, m
}

const anyForm = `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`

// TestServersAskAtALimitedRate: ten questions at once, and one more every 6 s; the others reach no person.
func TestServersAskAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		core, warned := observer.New(zap.WarnLevel)
		q, m := questioned(t, supervisor.Config{
			Logger: zap.New(core),
			Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
				asked.Add(1)
				return supervisor.ElicitResult{Action: messages.ElicitDecline}, nil
			},
		})
		defer closeAll(t, m)
		burst := func(n int) (refused int) {
			for range n {
				q.ask <- anyForm
				if strings.HasPrefix(<-q.answers, "error") {
					refused++
				}
			}
			return refused
		}
		if n := burst(15); n != 5 || asked.Load() != 10 {
			t.Errorf("%d refused, %d asked", n, asked.Load())
		}
		time.Sleep(13 * time.Second)
		if n := burst(5); n != 3 || asked.Load() != 12 {
			t.Errorf("%d refused, %d asked", n, asked.Load())
		}
		time.Sleep(time.Hour)
		if n := burst(11); n != 1 || asked.Load() != 22 {
			t.Errorf("%d refused, %d asked", n, asked.Load())
		}
		// Eight were refused in the first minute, and one an hour later: two warnings, the second with the count of the first.
		if received := warned.All(); len(received) != 2 || received[1].ContextMap()["timesBefore"] != int64(7) {
			t.Errorf("%v", received)
		}
	})
}

// TestServersUseTheModelAtALimitedRate: twenty requests at once, and one more every second.
func TestServersUseTheModelAtALimitedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sampled atomic.Int64
		q, m := questioned(t, supervisor.Config{
			Sample: func(context.Context, supervisor.SampleRequest) (json.RawMessage, error) {
				sampled.Add(1)
				return json.RawMessage(`{}`), nil
			},
		})
		defer closeAll(t, m)
		burst := func(n int) {
			for range n {
				q.sample <- `{}`
				<-q.answers
			}
		}
		if burst(100); sampled.Load() != 20 {
			t.Errorf("%d of 100 requests at once reached the model, want 20", sampled.Load())
		}
		time.Sleep(5 * time.Second)
		if burst(100); sampled.Load() != 25 {
			t.Errorf("%d reached the model after 5 s, want 25", sampled.Load())
		}
	})
}

// TestFormsAreChecked: what does not fit its form never reaches the server, what the log says of it holds nothing that was
// typed, and a form that cannot be used reaches no person.
func TestFormsAreChecked(t *testing.T) {
	const form = `{"type":"object","properties":{"name":{"type":"string","maxLength":5},` +
		`"age":{"type":"integer","minimum":0},"color":{"type":"string","enum":["red","blue"],"default":"red"}},` +
		`"required":["name","color"]}`
	for _, c := range []struct{ name, schema, content, want, logged string }{
		{"fits", form, `{"name":"canary"}`, "error", "name"},   // six letters
		{"default", form, `{"name":"bird"}`, "error", "color"}, // nothing is added to what was given
		{"whole", form, `{"name":"bird", "color":"red"}`, `{"action":"accept","content":{"name":"bird", "color":"red"}}`, ""},
		{"type", form, `{"name":"bird","age":"canary"}`, "error", "age"},
		{"missing", form, `{}`, "error", "name"},
		{"enum", form, `{"name":"bird","color":"canary"}`, "error", "color"},
		{"no object", form, `["canary"]`, "error", "not an object"},
		{"nothing", form, ``, "error", "name"},
		{"local reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`,
			`{"a":7}`, `{"action":"accept","content":{"a":7}}`, ""},
		{"foreign reference", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}`, `{"a":7}`, "unasked", "cannot be used"},
		{"alike", `{"type":"object","properties":{"a":{"type":"boolean","Type":"string","default":true}}}`, `{}`, "unasked", "differ in case"},
		{"doubled", `{"type":"object","properties":{"x":{"type":"boolean","default":true}},"Properties":{"a":{}}}`, `{}`, "unasked", "in one way"},
		{"twice", `{"type":"object","properties":{"a":{"type":"string"},"a":{"type":"boolean"}}}`, `{}`, "unasked", "twice"},
		{"answered twice", form, `{"name":"bird","color":"red","color":"blue"}`, "error", "alike"},
		{"no schema", `{"type":"carrot"}`, `{}`, "unasked", "cannot be used"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.WarnLevel)
			var asked atomic.Bool
			q, m := questioned(t, supervisor.Config{Logger: zap.New(core),
				Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
					asked.Store(true)
					return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage(c.content)}, nil
				}})
			defer closeAll(t, m)
			q.ask <- `{"message":"?","requestedSchema":` + c.schema + `}`
			got := <-q.answers
			if c.want == "unasked" && asked.Load() {
				t.Error("the person was asked")
			}
			if c.want == "error" || c.want == "unasked" {
				if !strings.HasPrefix(got, "error") || strings.Contains(got, "canary") {
					t.Errorf("%s", got)
				}
			} else if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			text := ""
			for _, e := range logs.All() {
				text += fmt.Sprintln(e.Message, e.ContextMap())
			}
			if strings.Contains(text, "canary") || c.logged != "" && !strings.Contains(text, c.logged) || c.logged == "" && text != "" {
				t.Errorf("logged: %s", text)
			}
			if !m.Server("q").IsConnected() {
				t.Error("it costs the connection")
			}
		})
	}
}

// TestAPanicOfAFunctionCostsOneQuestion: the program's fault does not cost the connection.
func TestAPanicOfAFunctionCostsOneQuestion(t *testing.T) {
	q, m := questioned(t, supervisor.Config{
		Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) { panic("canary") },
	})
	defer closeAll(t, m)
	for range 3 {
		q.ask <- anyForm
		if got := <-q.answers; !strings.HasPrefix(got, "error") || strings.Contains(got, "canary") {
			t.Errorf("%s", got)
		}
	}
	if !m.Server("q").IsConnected() {
		t.Error("it costs the connection")
	}
}
