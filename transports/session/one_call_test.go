package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// TestATaskAndTheRequestForItsResultAreOneCall: a question that names neither belongs to their call all the same, and the call's clock
// stands still while the question is open. It would go on after one timeout if they were two calls.
func TestATaskAndTheRequestForItsResultAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		var result int64
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.declareTasks(m.ID)
			case "tasks/get":
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"one","status":"input_required","pollInterval":60000}}`, m.ID))
			case "tasks/result":
				result = m.ID
			}
			return transports.Written, nil
		}
		answer := make(chan struct{})
		s := connected(t, w, session.Config{Rand: func() float64 { return 0 }, Handlers: session.Handlers{
			Elicit: func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
				<-answer
				return messages.ElicitResult{Action: messages.ElicitDecline}, nil
			},
		}})
		timeout := session.NewCallTimeout(t.Context(), 2*time.Second, time.Hour)
		defer timeout.Stop()
		ended := make(chan error, 1)
		go func() {
			_, err := s.TaskResult(timeout, "one", nil)
			ended <- err
		}()
		synctest.Wait()
		w.receive(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(ended) != 0 {
			t.Errorf("the call ended while its question was open: %v", <-ended)
		}
		close(answer)
		w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, result))
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAQuestionAboutATaskEndsWithIt: a question that names a task is withdrawn when the task has its result, so that no person is asked about what
// is over.
func TestAQuestionAboutATaskEndsWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "initialize":
				w.declareTasks(m.ID)
			case "tasks/get":
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"taskId":"one","status":"input_required","pollInterval":60000}}`, m.ID))
			case "tasks/result":
				time.AfterFunc(10*time.Second, func() { w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID)) })
			}
			return transports.Written, nil
		}
		asked, withdrawn := false, false
		s := connected(t, w, session.Config{Rand: func() float64 { return 0 }, Handlers: session.Handlers{
			Elicit: func(ctx context.Context, _ messages.ElicitRequest) (messages.ElicitResult, error) {
				asked = true
				<-ctx.Done()
				withdrawn = true
				return messages.ElicitResult{}, ctx.Err()
			},
		}})
		time.AfterFunc(5*time.Second, func() {
			w.receive(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"},` +
				`"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"one"}}}}`)
		})
		if _, err := s.TaskResult(t.Context(), "one", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !asked || !withdrawn {
			t.Errorf("its question was asked: %v, and withdrawn with its end: %v", asked, withdrawn)
		}
	})
}

// TestAnAnswerTooLongEndsTheOnlyCall: an answer of which nothing shows whose it is can only be that of the one request that waits, each
// time. A request that has ended is none that waits.
func TestAnAnswerTooLongEndsTheOnlyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		gate := connected(t, w, session.Config{}).OpenGate()
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			tell, class := w.sink.Oversized, messages.ClassProtocol
			if i == 1 { // it had no room in the memory of the server
				tell, class = w.sink.(transports.DiscardSink).Discarded, messages.ClassExhausted
			}
			time.AfterFunc(time.Second, func() { tell([]byte(`{"result":{"content":[`), []byte(`]}}`), 1<<30) })
			_, err := gate.Call(ctx, "t", nil)
			cancel()
			if e := new(messages.Error); !errors.As(err, &e) || e.Class != class || errors.Is(err, messages.ErrMemory) != (i == 1) || time.Since(began) != time.Second {
				t.Errorf("call %d ended after %v: %v", i, time.Since(began), err)
			}
		}
	})
}

// TestAPersonIsSentToAURLOnlyIfTheProgramSaidSo: a program that can only fill forms gets the server's refusal, which it can show, as the
// answer, and is not asked.
func TestAPersonIsSentToAURLOnlyIfTheProgramSaidSo(t *testing.T) {
	for _, url := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{}
			w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
				switch m.Method {
				case "initialize":
					w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, m.ID))
				case "tools/call":
					w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32042,"message":"Sign in first","data":{"elicitations":[`+
						`{"mode":"url","elicitationId":"e1","url":"https://example.org/in","message":"Sign in"}]}}}`, m.ID))
				}
				return transports.Written, nil
			}
			asked := 0
			gate := connected(t, w, session.Config{Handlers: session.Handlers{ElicitURL: url,
				Elicit: func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
					asked++
					return messages.ElicitResult{Action: messages.ElicitDecline}, nil
				}}}).OpenGate()
			_, err := gate.Call(t.Context(), "t", nil)
			if e := new(messages.Error); !errors.As(err, &e) || e.Code != -32042 || len(e.Data) == 0 {
				t.Errorf("sent to URLs %v: %v", url, err)
			}
			if asked == 1 != url {
				t.Errorf("sent to URLs %v: asked %d times", url, asked)
			}
		})
	}
}

// TestLogsComeBeforeTheAnswer: the messages that a server logs before it answers have reached the caller when its call, or its read, returns, however slow
// the caller is to take it. A caller who goes away is not kept.
func TestLogsComeBeforeTheAnswer(t *testing.T) {
	for what, do := range map[string]func(ctx context.Context, s *session.Session) error{
		"a call": func(ctx context.Context, s *session.Session) error {
			_, err := s.OpenGate().Call(ctx, "t", nil)
			return err
		},
		"what is passed on": func(ctx context.Context, s *session.Session) error {
			_, err := s.Forward(ctx, "tools/call", "t", json.RawMessage(`"name":"t"`), nil)
			return err
		},
	} {
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
					switch m.Method {
					case "initialize":
						w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}}}}`, m.ID))
					case "tools/call":
						w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
						w.receive(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"y"}}`)
						w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, m.ID))
					}
					return transports.Written, nil
				}
				s := connected(t, w, session.Config{})
				logged := 0
				ctx, leave := context.WithCancel(messages.WithAnswerer(t.Context(), &messages.Answerer{Log: func(context.Context, json.RawMessage) {
					time.Sleep(time.Second)
					logged++
				}}))
				defer leave()
				want := 2 * time.Second
				if leaves {
					want = 500 * time.Millisecond
					time.AfterFunc(want, leave)
				}
				began := time.Now()
				if err := do(ctx, s); err != nil || time.Since(began) != want || !leaves && logged != 2 {
					t.Errorf("%s that is left %v returned after %v with %d messages: %v", what, leaves, time.Since(began), logged, err)
				}
				time.Sleep(time.Minute)
			})
		}
	}
}
