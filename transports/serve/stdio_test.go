package serve

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/synctest"
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
