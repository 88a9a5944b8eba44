package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// bigAnswer is the size of an answer of largeService, and largeResult one without its envelope.
const bigAnswer = 100 << 10

var largeResult = []byte(`{"x":"` + strings.Repeat("x", bigAnswer-8) + `"}`)

// largeService answers everything with bigAnswer bytes, and counts the answers that are held.
type largeService struct {
	*service
	held atomic.Int64
}

func (v *largeService) Handle(_ context.Context, r *Request) ([]byte, *Error) {
	v.held.Add(1)
	r.AfterAnswer(v)
	return largeResult, nil
}

func (v *largeService) Release() { v.held.Add(-1) }

// unreadLines is an agent that has asked for n answers on lines, and reads nothing yet.
type unreadLines struct {
	in   *io.PipeWriter
	from *io.PipeReader
	done chan struct{}
}

func askUnread(t *testing.T, ctx context.Context, o Options, n int) *unreadLines {
	in, agent := io.Pipe()
	from, out := io.Pipe()
	a := &unreadLines{agent, from, make(chan struct{})}
	go func() {
		defer close(a.done)
		_ = Stdio(ctx, o, Principal{}, Path{}, in, out)
		_ = out.Close()
	}()
	for i := range n {
		if _, err := fmt.Fprintf(agent, `{"jsonrpc":"2.0","id":%d,"method":"large","params":{%s}}`+"\n", i, modernMeta); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return a
}

// readAll reads the answers to n requests, each once, and returns how many of them are results; the others say that one was dropped.
func (a *unreadLines) readAll(t *testing.T, n int) (results int) {
	t.Helper()
	_ = a.in.Close()
	seen := map[string]bool{}
	r := bufio.NewReader(a.from)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		id, rest, _ := strings.Cut(strings.TrimPrefix(line, `{"jsonrpc":"2.0","id":`), ",")
		switch {
		case seen[id]:
			t.Errorf("request %s has two answers", id)
		case strings.HasPrefix(rest, `"result"`) && len(line) > bigAnswer:
			results++
		case !strings.HasPrefix(rest, `"error":{"code":-32000,"message":"the answer of `) || !strings.Contains(rest, `"data":{"mcpvisor/outcome":"unknown"}`):
			t.Errorf("request %s has the answer %.200s", id, rest)
		}
		seen[id] = true
	}
	<-a.done
	if len(seen) != n {
		t.Errorf("%d of %d requests have an answer", len(seen), n)
	}
	return results
}

// An agent that asks for much and reads nothing had all of it held: 400 answers of 1 MB made a daemon grow to 480 MB. What is held for it
// is bounded in bytes, and every request has its answer once it reads.
func TestAnswersThatAnAgentDoesNotReadAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &largeService{service: newService()}
		a := askUnread(t, t.Context(), Options{Service: v, MaxUnread: 1 << 20}, 60)
		held := v.held.Load()
		if got := a.readAll(t, 60); got > 11 || got < 9 {
			t.Errorf("%d answers of %d bytes were held, within 1 MiB", got, bigAnswer)
		}
		if held != 60 || v.held.Load() != 0 {
			t.Errorf("%d answers are held before the agent reads, and %d behind it", held, v.held.Load())
		}
	})
}

// An agent that reads gets an answer of any size, and as many as it likes.
func TestAnAgentThatReadsGetsEveryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &largeService{service: newService()}
		for range 5 {
			if got := askUnread(t, t.Context(), Options{Service: v, MaxUnread: bigAnswer / 10}, 1).readAll(t, 1); got != 1 {
				t.Error("the one answer was dropped")
			}
		}
	})
}

// Agents share a budget, and the one that holds most is refused first: the others get theirs.
func TestAgentsThatReadNothingShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &largeService{service: newService()}
		o := Options{Service: v, Unread: budget.New(4 << 20)}
		greedy, modest := askUnread(t, t.Context(), o, 60), askUnread(t, t.Context(), o, 10)
		if got := modest.readAll(t, 10); got != 10 {
			t.Errorf("the agent with little to read got %d of 10 answers", got)
		}
		if got := greedy.readAll(t, 60); got > 4<<20/bigAnswer {
			t.Errorf("the greedy agent got %d answers of %d bytes", got, bigAnswer)
		}
		if n := o.Unread.Total(); n != 0 {
			t.Errorf("%d bytes are counted when all agents have gone", n)
		}
	})
}

// What is held for an agent that never reads is given up at the end of the endpoint, and of the agent.
func TestUnreadAnswersAreGivenUpAtTheEnd(t *testing.T) {
	for _, whoEnds := range []string{"the endpoint", "the agent"} {
		t.Run(whoEnds, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &largeService{service: newService()}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				shared := budget.New(0)
				a := askUnread(t, ctx, Options{Service: v, Unread: shared}, 50)
				if whoEnds == "the endpoint" {
					cancel()
				} else {
					_ = a.from.Close()
				}
				<-a.done
				if v.held.Load() != 0 || shared.Total() != 0 {
					t.Errorf("%d answers are held, %d bytes are counted", v.held.Load(), shared.Total())
				}
				_ = a.from.Close()
				_ = a.in.Close()
			})
		})
	}
}

// blockedWriter is the response to an agent that does not read before the test says so.
type blockedWriter struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (w blockedWriter) Write(b []byte) (int, error) {
	<-w.read
	return w.ResponseRecorder.Write(b)
}

// The same over HTTP, where a session has a bound, and a principal another one for all of its requests.
func TestAnswersThatAreNotReadAreBoundedOverHTTP(t *testing.T) {
	for name, era := range map[string]bool{"of a session": false, "of a principal": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &largeService{service: newService()}
				o := Options{Service: v, MaxUnread: 1 << 20}
				if era {
					o = Options{Service: v, MaxBytes: 1 << 20}
				}
				h := NewHandler(o)
				id := open(t, h)
				read := make(chan struct{})
				var all sync.WaitGroup
				var bodies [40]*httptest.ResponseRecorder
				for i := range bodies {
					r := modern("large", "")
					if !era {
						r = request(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"large"}`, i), "Mcp-Session-Id", id)
					}
					w := blockedWriter{httptest.NewRecorder(), read}
					bodies[i] = w.ResponseRecorder
					all.Go(func() { h.ServeHTTP(w, r) })
				}
				synctest.Wait()
				close(read)
				all.Wait()
				results := 0
				for _, w := range bodies {
					switch body := w.Body.String(); {
					case len(body) > bigAnswer:
						results++
					case !strings.Contains(body, `"code":-32000,"message":"the answer of `):
						t.Errorf("the answer is %.200s", body)
					}
				}
				if results > 11 || results < 9 {
					t.Errorf("%d answers of %d bytes were held, within 1 MiB", results, bigAnswer)
				}
				if *h.loads[""] != (load{}) || v.held.Load() != 0 {
					t.Errorf("%+v is counted, %d answers held", *h.loads[""], v.held.Load())
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_ = h.Close(ctx)
			})
		})
	}
}
