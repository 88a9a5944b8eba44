package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestMain checks that after all tests no goroutine of any session is left.
func TestMain(m *testing.M) {
	os.Exit(conntest.RunAndCheckLeaks(m))
}

const helloAnswer = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`

// hello lets the connection answer initialize, and hands every later message to next.
func hello(w *wire, next func(ctx context.Context, m transports.Message) (transports.Delivery, error)) {
	w.onSend = func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "initialize":
			w.receive(helloAnswer)
		case "notifications/initialized":
		default:
			if next != nil {
				return next(ctx, m)
			}
		}
		return transports.Written, nil
	}
}

// connected dials w and shakes hands. After the test it closes the session and checks that everything is released.
func connected(t testing.TB, w *wire, cfg session.Config) *session.Session {
	t.Helper()
	cfg.Era = messages.EraLegacy
	s, err := session.Dial(t.Context(), w, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		<-s.Released()
	})
	if w.onSend == nil {
		hello(w, nil)
	}
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOneOutcomeForEveryCall has 1,000 callers; the server answers some, some leave, and in the middle the connection
// dies. Every call ends once, with its own answer or the true outcome: I2, I3, I4.
func TestOneOutcomeForEveryCall(t *testing.T) {
	seeds.Shows(t, "000.11.json-rpc", "002.5.pending", "003.3.response-id")
	const callers = 1000
	w := &wire{}
	var mu sync.Mutex
	written := make(map[string]bool) // by the caller's number
	var sends atomic.Int64
	work := make(chan []byte, callers)
	hello(w, func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
		if m.Method != "tools/call" {
			return transports.Written, nil
		}
		var call struct {
			Params struct {
				Arguments struct{ N int }
			}
		}
		if err := json.Unmarshal(m.Body, &call); err != nil {
			t.Errorf("%s: %v", m.Body, err)
		}
		if call.Params.Arguments.N%10 == 3 {
			return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "full"}
		}
		mu.Lock()
		written[strconv.Itoa(call.Params.Arguments.N)] = true
		mu.Unlock()
		sends.Add(1)
		work <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{"n":%d}}`, m.ID, call.Params.Arguments.N)
		if call.Params.Arguments.N%10 == 4 {
			return transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork, Text: "reset"}
		}
		return transports.Written, nil
	})
	s := connected(t, w, session.Config{})
	gate := s.OpenGate()

	// The server: several readers, as over HTTP, that answer every other call, twice; then the death.
	serverDone := make(chan struct{})
	var servers sync.WaitGroup
	for range 4 {
		servers.Go(func() {
			for {
				select {
				case answer := <-work:
					if sends.Load()%2 == 0 {
						w.sink.Message(bytes.Clone(answer))
						w.sink.Message(answer)
					}
				case <-serverDone:
					return
				}
			}
		})
	}

	var ended [callers]atomic.Int64
	var outcomes sync.Map
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if n%10 == 5 {
				go leave()
			}
			if n == callers/2 {
				w.mu.Lock() // no Send begins during the death, and later ones fail
				w.ended = true
				w.mu.Unlock()
				close(serverDone)
				servers.Wait()
				w.sink.Down(&transports.Error{Class: messages.ClassExited, Text: "killed"})
				close(w.released)
			}
			result, err := gate.Call(ctx, "t", fmt.Appendf(nil, `{"n":%d}`, n))
			ended[n].Add(1)
			if err == nil {
				if want := fmt.Sprintf(`{"n":%d}`, n); string(result.Raw) != want {
					t.Errorf("call %d got the answer %s", n, result.Raw)
				}
				outcomes.Store(n, messages.OutcomeResult)
				return
			}
			outcome := messages.OutcomeOf(err)
			outcomes.Store(n, outcome)
			mu.Lock()
			was := written[strconv.Itoa(n)]
			mu.Unlock()
			switch outcome {
			case messages.OutcomeNotSent:
				if was {
					t.Errorf("call %d is not-sent and was written: %v", n, err)
				}
			case messages.OutcomeUnknown:
				if !was {
					t.Errorf("call %d is unknown and was never written: %v", n, err)
				}
			default:
				t.Errorf("call %d ended as %s: %v", n, outcome, err)
			}
		})
	}
	all.Wait()
	<-gate.Drained()
	if gate.InFlight() != 0 {
		t.Errorf("%d calls are in flight", gate.InFlight())
	}
	count := make(map[messages.Outcome]int)
	for n := range callers {
		if ended[n].Load() != 1 {
			t.Errorf("call %d ended %d times", n, ended[n].Load())
		}
		outcome, _ := outcomes.Load(n)
		count[outcome.(messages.Outcome)]++
	}
	t.Logf("outcomes: %v, stats: %+v", count, s.Stats())
	if count[messages.OutcomeNotSent] == 0 {
		t.Error("nobody was refused after the death: the test does not show what it should")
	}
	var e *messages.Error
	if !errors.As(s.Err(), &e) || e.Class != messages.ClassExited {
		t.Errorf("the session ended because of %v", s.Err())
	}
}

// TestAnswerBeatsDeath: an answer that was delivered before the end of the connection, or before the caller left, is
// the outcome.
func TestAnswerBeatsDeath(t *testing.T) {
	for i := range 300 {
		w := &wire{}
		ctx, leave := context.WithCancel(t.Context())
		hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, m.ID))
			leave()
			if i%2 == 0 {
				return transports.Written, &transports.Error{Class: messages.ClassNetwork, Text: "reset after the answer"}
			}
			w.end(&transports.Error{Class: messages.ClassExited, Text: "exited after the answer"})
			return transports.Written, nil
		})
		s := connected(t, w, session.Config{})
		if _, err := s.OpenGate().Call(ctx, "t", nil); err != nil {
			t.Fatalf("the answer was delivered, the call ended with %v", err)
		}
	}
}

func TestResultKeepsTheServersBytes(t *testing.T) {
	seeds.Shows(t, "000.9.response", "001.2.raw-call")
	const result = `{ "content" : [ {"type":"hologram","n":9007199254740993,"x":1.0e2} ],"é":"\u00e9\/","a":1,"a":2 }`
	w := &wire{}
	hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		w.receive(fmt.Sprintf(`{"result": %s ,"id":%d,"jsonrpc":"2.0"}`, result, m.ID))
		return transports.Written, nil
	})
	s := connected(t, w, session.Config{})
	got, err := s.OpenGate().Call(t.Context(), "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != result {
		t.Errorf("got  %s\nwant %s", got.Raw, result)
	}
	if more := append(got.Raw, "!!!!!"...); !strings.HasSuffix(string(more), "!!!!!") || string(got.Raw) != result {
		t.Error("appending to a result writes into the message")
	}
}

func TestArgumentsAreOneLine(t *testing.T) {
	seeds.Shows(t, "001.2.raw-call")
	w := &wire{}
	s := connected(t, w, session.Config{})
	w.takeSent()
	ctx, leave := context.WithCancel(t.Context())
	hello(w, func(context.Context, transports.Message) (transports.Delivery, error) {
		leave()
		return transports.Written, nil
	})
	_, err := s.OpenGate().Call(ctx, "t", json.RawMessage("{\n  \"a\": 9007199254740993,\r\n  \"b\": \"x\\ny\"\n}"))
	if !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{   "a": 9007199254740993,` +
		`    "b": "x\ny" }}}`
	if sent := w.takeSent(); string(sent[0].Body) != want || sent[0].ID != 2 || sent[0].Name != "t" {
		t.Errorf("sent %s\nwant %s", sent[0].Body, want)
	}
}

// TestErrorsAreNotShared: a caller completes its error with the server's name, and no other caller sees that.
func TestErrorsAreNotShared(t *testing.T) {
	w := &wire{}
	s := connected(t, w, session.Config{})
	w.end(&transports.Error{Class: messages.ClassExited, Text: "killed"})
	var one, two *messages.Error
	_, err := s.OpenGate().Call(t.Context(), "t", nil)
	errors.As(err, &one)
	one.Server = "mine"
	errors.As(s.Err(), &two)
	if two.Server != "" || two.Tool != "" || two.Outcome != "" {
		t.Errorf("the session's error is %+v", two)
	}
}

// TestClosingLetsAnswersArrive: while the session closes, the server may still answer the pending calls; new calls
// are refused.
func TestClosingLetsAnswersArrive(t *testing.T) {
	seeds.Shows(t, "002.5.close")
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		s := connected(t, w, session.Config{})
		gate := s.OpenGate()
		w.onClose = sync.OnceFunc(func() {
			if _, err := gate.Call(t.Context(), "late", nil); !errors.Is(err, messages.ErrNotSent) {
				t.Errorf("a call during Close: %v", err)
			}
			if err := s.Ping(t.Context()); messages.ClassOf(err) != messages.ClassCanceled {
				t.Errorf("a ping during Close: %v", err)
			}
			if s.Err() != nil {
				t.Errorf("Err before Dead: %v", s.Err())
			}
			w.receive(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
		answered := make(chan error)
		go func() {
			_, err := gate.Call(t.Context(), "t", nil)
			answered <- err
		}()
		synctest.Wait()
		go func() {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		if err := <-answered; err != nil {
			t.Errorf("the answer arrived while closing, the call ended with %v", err)
		}
		<-gate.Drained()
		<-s.Dead()
	})
}

// TestSessionLostForSeveral: two calls learn at the same time that the server has forgotten the session. The first
// one ends the session; the second one was refused as well, so its outcome is not unknown.
func TestSessionLostForSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		turn := make(chan struct{})
		hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			<-turn
			e := &transports.Error{Class: messages.ClassSession, Status: 404, Text: "who are you"}
			if m.Name == "unlucky" {
				e = &transports.Error{Class: messages.ClassNetwork, Text: "reset"}
			}
			return transports.Written, e
		})
		s := connected(t, w, session.Config{})
		gate := s.OpenGate()
		ends := make(map[string]messages.Outcome)
		var mu sync.Mutex
		for _, tool := range []string{"a", "b", "unlucky"} {
			go func() {
				_, err := gate.Call(t.Context(), tool, nil)
				mu.Lock()
				defer mu.Unlock()
				ends[tool] = messages.OutcomeOf(err)
			}()
			synctest.Wait()
		}
		turn <- struct{}{}
		<-s.Dead()
		close(turn)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if ends["a"] != messages.OutcomeNotSent || ends["b"] != messages.OutcomeNotSent ||
			ends["unlucky"] != messages.OutcomeUnknown {
			t.Errorf("ended as %v", ends)
		}
		if class := messages.ClassOf(s.Err()); class != messages.ClassSession {
			t.Errorf("the session ended as %s", class)
		}
	})
}

// TestDeadlineInSend: over HTTP, Send waits for the answer, and the caller's deadline may pass in it.
func TestDeadlineInSend(t *testing.T) {
	seeds.Shows(t, "000.6.call")
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		hello(w, func(ctx context.Context, m transports.Message) (transports.Delivery, error) {
			if m.Method != "tools/call" {
				return transports.Written, nil
			}
			<-ctx.Done()
			return transports.Written, &transports.Error{Class: messages.ClassTimeout, Text: "deadline exceeded"}
		})
		s := connected(t, w, session.Config{})
		w.takeSent()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := s.OpenGate().Call(ctx, "t", nil)
		var e *messages.Error
		if !errors.As(err, &e) || e.Outcome != messages.OutcomeUnknown || !errors.Is(err, context.DeadlineExceeded) ||
			e.Text != "the deadline passed before there was an answer" {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if sent := w.takeSent(); len(sent) != 2 || sent[1].Method != "notifications/cancelled" {
			t.Errorf("sent %v", sent)
		}
	})
}

// TestCallerWhoHasLeft: a call whose context has ended already sends nothing.
func TestCallerWhoHasLeft(t *testing.T) {
	w := &wire{}
	s := connected(t, w, session.Config{})
	w.takeSent()
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errors.New("a reason of the caller"))
	_, err := s.OpenGate().Call(ctx, "t", nil)
	if !errors.Is(err, messages.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if e := new(messages.Error); errors.As(err, &e) && e.Unwrap().Error() != "a reason of the caller" {
		t.Errorf("the cause is %v", e.Unwrap())
	}
	if sent := w.takeSent(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
}

// FuzzMessage hands a session any bytes of a server while a call waits: nothing panics, and if the call ends, it ends
// with a message that held its own id.
func FuzzMessage(f *testing.F) {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":2,"result":{"isError":true}}`, `[{"id":2,"error":{"code":1,"message":"x"}},[],5]`,
		`{"id":2,"result":{}}{"id":2,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{"x":NaN}}`,
		`{"id":"2","method":"ping"}`, `{"jsonrpc":"2.0","id":2}`, `{"method":"notifications/message","params":{"data":[]}}`,
		"\xef\xbb\xbf{\"id\":2,\"result\":7,\"jsonrpc\":1}", `[`, `[{"id":2,"result":{}}`, `nothing`,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		w := &wire{}
		original := bytes.Clone(message)
		hello(w, func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			if m.Method == "tools/call" {
				w.sink.Message(message)
				w.end(&transports.Error{Class: messages.ClassExited, Text: "the end"})
			}
			return transports.Written, nil
		})
		s := connected(t, w, session.Config{OnLog: func(string, string, json.RawMessage) {}, OnToolsChanged: func() {}})
		result, err := s.OpenGate().Call(t.Context(), "t", nil)
		if class := messages.ClassOf(s.Err()); class != messages.ClassExited {
			t.Fatalf("the session ended because of %v", s.Err())
		}
		if err == nil && (!json.Valid(result.Raw) || !bytes.Contains(original, result.Raw)) {
			t.Fatalf("a result that the server did not send: %q", result.Raw)
		}
		if err != nil && messages.OutcomeOf(err) == messages.OutcomeNotSent {
			t.Fatalf("written, and not-sent: %v", err)
		}
	})
}
