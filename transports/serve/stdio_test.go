package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lineAgent is an agent on lines, after initialize.
type lineAgent struct {
	t    *testing.T
	in   *io.PipeWriter
	from *bufio.Scanner
}

// openLines begins a session on lines, which ends with the test. In a bubble of synctest the test fails at once if a line that it expects never
// comes.
func openLines(t *testing.T, o Options) *lineAgent {
	t.Helper()
	in, agent := io.Pipe()
	from, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Stdio(t.Context(), o, Principal{}, Path{}, in, out) }()
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, from) }() // ends with the pipe
		_ = agent.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = out.Close()
	})
	a := &lineAgent{t, agent, bufio.NewScanner(from)}
	a.say(initialize)
	a.expect(`"id":0,"result"`)
	return a
}

func (a *lineAgent) say(line string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, line+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

// expect reads one line, which holds each of some texts, and returns it.
func (a *lineAgent) expect(texts ...string) string {
	a.t.Helper()
	if !a.from.Scan() {
		a.t.Fatalf("the stream ended before %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(a.from.Text(), text) {
			a.t.Fatalf("got %s, want %q in it", a.from.Text(), text)
		}
	}
	return a.from.Text()
}

// A request is taken back whose server has asked something: the agent is told that the question is not open any more, or its person would
// answer nobody.
func TestQuestionIsTakenBackFromTheAgent(t *testing.T) { synctest.Test(t, takeQuestionBack) }

func takeQuestionBack(t *testing.T) {
	a := openLines(t, Options{Service: newService()})
	a.say(`{"jsonrpc":"2.0","id":1,"method":"ask","params":{}}`)
	a.expect(`"id":1`, `"method":"question"`)
	a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	a.expect(`"method":"notifications/cancelled"`, `"requestId":1`)
	a.say(`{"jsonrpc":"2.0","id":2,"method":"ask","params":{}}`) // the next question has another number, and is open
	a.expect(`"id":2`, `"method":"question"`)
	a.say(`{"jsonrpc":"2.0","id":2,"result":{"yes":true}}`)
	a.expect(`"id":2,"result":{"yes":true}`)
}

// A request with an id that is in use is refused, and takes none of the places of the connection.
func TestRefusedRequestTakesNoPlace(t *testing.T) { synctest.Test(t, refuseUsedID) }

func refuseUsedID(t *testing.T) {
	v := newService()
	a := openLines(t, Options{Service: v, MaxRequests: 2})
	a.say(`{"jsonrpc":"2.0","id":1,"method":"hang","params":{}}`)
	<-v.hung
	for range 3 {
		a.say(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`)
		a.expect(`"id":1,"error"`, "is being answered already")
	}
	a.say(`{"jsonrpc":"2.0","id":2,"method":"echo","params":{}}`)
	a.expect(`"id":2,"result"`)
}

func TestStdioServesBothEras(t *testing.T) {
	v := newService()
	lines := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":2,"method":"echo"}`,
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		``,
		`{"jsonrpc":"2.0","id":3,"method":"echo","params":{}}`,
		`{"jsonrpc":"2.0","id":4,"method":"echo","params":{` + modernMeta + `}}`,
		`nonsense`,
		strings.Repeat("x", 3000),
		`{"jsonrpc":"2.0","id":5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":6,"method":"nothing"}`,
	}, "\n") + "\n"
	var out strings.Builder
	if err := Stdio(t.Context(), Options{Service: v, MaxBody: 2000}, Principal{}, Path{}, strings.NewReader(lines), &out); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`"id":1,"result":{"resultType":"complete","supportedVersions"`, `"id":2,"error":{"code":-32600`, `"id":0,"result":{"protocolVersion":"2025-11-25"`,
		`"id":3,"result":{"got":{}}`, `"id":4,"result":{"resultType":"complete","got"`, `"id":null,"error":{"code":-32700`, `"id":null,"error":{"code":-32600`, `"id":5,"result":{}`,
		`"id":6,"error":{"code":-32601`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 9 || v.closed != 1 {
		t.Errorf("%d lines, %d sessions closed", n, v.closed)
	}
}

func TestStdioCancels(t *testing.T) {
	v := newService()
	in, agent := io.Pipe()
	from, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Stdio(t.Context(), Options{Service: v}, Principal{}, Path{}, in, out) }()
	answers := bufio.NewScanner(from)
	say := func(line string) { _, _ = io.WriteString(agent, line+"\n") }
	say(`{"jsonrpc":"2.0","id":"h","method":"hang","params":{` + modernMeta + `}}`)
	<-v.hung
	say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`)
	for _, id := range []string{`"h"`, `9`} { // the id can be used again, and what comes next is answered
		say(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":{` + modernMeta + `}}`)
		if !answers.Scan() || !strings.Contains(answers.Text(), `"id":`+id+`,"result"`) {
			t.Errorf("got %s", answers.Text())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, from) }() // ends with the pipe; nothing should come
	agent.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = out.Close()
}

// Otherwise a program that is told to end would stay, with all of its servers, as long as its agent does not read.
func TestAnAgentThatDoesNotReadKeepsStdioFromEndingForAMomentOnly(t *testing.T) {
	for name, end := range map[string]bool{"its input is open": false, "its input has ended": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				in, agent := io.Pipe()
				unread, out := io.Pipe()
				defer unread.Close()
				done := make(chan error, 1)
				go func() { done <- Stdio(ctx, Options{Service: newService()}, Principal{}, Path{}, in, out) }()
				go func() {
					for i := range 3 * maxQueuedEvents { // more than the queue takes
						fmt.Fprintf(agent, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":{%s}}`+"\n", i, modernMeta)
					}
				}()
				synctest.Wait()
				if end {
					_ = agent.Close()
				}
				begun := time.Now()
				cancel()
				<-done
				if took := time.Since(begun); took > lastWrites {
					t.Errorf("it took %s to end", took)
				}
				_ = agent.Close()
			})
		})
	}
}

// FuzzReadMessage compares the reading with that of encoding/json: what is accepted is one object of JSON with these members.
func FuzzReadMessage(f *testing.F) {
	for _, seed := range []string{initialize, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"x","params":{"_meta":{}}}`,
		`[]`, `{}`, `{"jsonrpc":"2.0","id":-1e5,"method":"\u0061","params":{}} `, `{"id":1,"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, e := readMessage(body)
		if e != nil {
			if e.httpStatus(true) < 400 {
				t.Errorf("%v has no status", e)
			}
			return
		}
		var want struct {
			ID     json.RawMessage `json:"id"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("accepted %q, which is no JSON: %v", body, err)
		}
		if m.isRequest() && !json.Valid(appendResult(nil, m.id, []byte("{}"))) {
			t.Errorf("the answer to %q is no JSON", body)
		}
		if _, e := newModernRequest(&Session{}, &m); e != nil && e.Code == 0 {
			t.Errorf("an error without a code: %v", e)
		}
	})
}
