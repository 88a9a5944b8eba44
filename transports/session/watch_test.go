package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// subscriptionServer is a server of the modern era that agrees to every subscription after some time.
type subscriptionServer struct {
	wire *wire

	mu     sync.Mutex
	listen map[int64][]string // requests that it has agreed to
	gone   string             // a resource that it does not agree to
	most   int                // at once
}

func (w *subscriptionServer) answer(_ context.Context, m transports.Message) (transports.Delivery, error) {
	var p struct {
		Params struct {
			RequestID     int64    `json:"requestId"`
			Notifications struct { // of a listen
				URIs []string `json:"resourceSubscriptions"`
			} `json:"notifications"`
		} `json:"params"`
	}
	_ = json.Unmarshal(m.Body, &p)
	switch m.Method {
	case "server/discover":
		w.wire.receive(`{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],` +
			`"capabilities":{"resources":{"subscribe":true}}}}`)
	case "subscriptions/listen":
		time.AfterFunc(time.Duration(m.ID%5)*time.Millisecond, func() {
			w.mu.Lock()
			agreed := slices.DeleteFunc(p.Params.Notifications.URIs, func(uri string) bool { return uri == w.gone })
			w.listen[m.ID] = agreed
			w.most = max(w.most, len(w.listen))
			w.mu.Unlock()
			raw, _ := json.Marshal(agreed)
			w.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+
				`"_meta":{"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"resourceSubscriptions":%s}}}`, m.ID, raw))
		})
	case "notifications/cancelled": // over HTTP this is the end of the response's stream
		w.end(p.Params.RequestID)
	}
	return transports.Written, nil
}

func (w *subscriptionServer) end(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.listen, id)
}

// watchedURIs are the resources that the server watches now.
func (w *subscriptionServer) watchedURIs() (uris []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, some := range w.listen {
		uris = append(uris, some...)
	}
	slices.Sort(uris)
	return slices.Compact(uris)
}

// TestWatchedWithoutGap: while callers subscribe and unsubscribe at random, the server watches every resource whose
// Subscribe has returned and whose Unsubscribe has not begun, at every moment; after the server has ended streams at
// random, it watches all of them again. After the last Unsubscribe no stream is open.
func TestWatchedWithoutGap(t *testing.T) {
	for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP} {
		t.Run(string(kind), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testWatched(t, kind) }) })
	}
}

// TestAResourceThatIsGoneIsTold: over HTTP one request watches all resources, and another one replaces it at a
// change. If the server no longer agrees to watch one of them, OnResourceUpdated is called for it, so that its owner
// reads it again.
func TestAResourceThatIsGoneIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &subscriptionServer{wire: &wire{kind: messages.HTTP}, listen: make(map[int64][]string)}
		w.wire.onSend = w.answer
		var mu sync.Mutex
		var received []string
		s, err := session.Dial(t.Context(), w.wire, session.Config{Era: messages.EraModern, OnResourceUpdated: func(uri string) {
			mu.Lock()
			defer mu.Unlock()
			received = append(received, uri)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, uri := range []string{"r:a", "r:b", "r:c"} {
			if uri == "r:c" {
				w.mu.Lock()
				w.gone = "r:a"
				w.mu.Unlock()
			}
			if err := s.Subscribe(t.Context(), uri); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(received, []string{"r:a"}) || !slices.Equal(w.watchedURIs(), []string{"r:b", "r:c"}) {
			t.Errorf("told of %q, and %q are watched", received, w.watchedURIs())
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-s.Released()
	})
}

func testWatched(t *testing.T, kind messages.TransportKind) {
	w := &subscriptionServer{wire: &wire{kind: kind}, listen: make(map[int64][]string)}
	w.wire.onSend = w.answer
	var updates atomic.Int64
	s, err := session.Dial(t.Context(), w.wire, session.Config{
		Era: messages.EraModern, OnResourceUpdated: func(string) { updates.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	mustWatch := make(map[string]bool) // what must be watched
	set := func(uri string, want bool) {
		mu.Lock()
		defer mu.Unlock()
		mustWatch[uri] = want
	}
	missing := func() (uris []string) {
		mu.Lock()
		defer mu.Unlock()
		now := w.watchedURIs()
		for uri, want := range mustWatch {
			if want && !slices.Contains(now, uri) {
				uris = append(uris, uri)
			}
		}
		return uris
	}
	var all sync.WaitGroup
	for caller := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			uri := "r:" + strconv.Itoa(caller)
			for range 50 {
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
				if err := s.Subscribe(t.Context(), uri); err != nil {
					t.Error(err)
				}
				set(uri, true)
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
				if caller < 4 && random.IntN(4) > 0 {
					set(uri, false)
					if err := s.Unsubscribe(t.Context(), uri); err != nil {
						t.Error(err)
					}
				}
			}
			if err := s.Subscribe(t.Context(), uri); err != nil {
				t.Error(err)
			}
			set(uri, true)
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
		}
		synctest.Wait()
		if uris := missing(); len(uris) > 0 {
			t.Errorf("not watched: %q", uris)
			<-done
		}
	}
	if uris := missing(); len(uris) > 0 || len(w.watchedURIs()) != 8 {
		t.Errorf("at the end not watched: %q of %q", uris, w.watchedURIs())
	}
	if most := w.most; kind == messages.HTTP && most > 3 || most > 9 {
		t.Errorf("%d requests stood at once", most)
	}

	random := rand.New(rand.NewPCG(2, 2))
	for range 30 {
		w.mu.Lock()
		var ids []int64
		for id := range w.listen {
			ids = append(ids, id)
		}
		w.mu.Unlock()
		slices.Sort(ids)
		if len(ids) > 0 {
			id := ids[random.IntN(len(ids))]
			w.end(id)
			w.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
		}
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Second))))
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if uris := missing(); len(uris) > 0 {
		t.Errorf("not watched again: %q", uris)
	}
	if updates.Load() == 0 {
		t.Error("nobody was told that an update may have been missed")
	}
	for uri := range mustWatch {
		if err := s.Unsubscribe(t.Context(), uri); err != nil {
			t.Error(err)
		}
	}
	synctest.Wait()
	if uris := w.watchedURIs(); len(uris) > 0 || strings.Count(fmt.Sprint(w.listen), ":") > 0 {
		t.Errorf("still listening: %q %v", uris, w.listen)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.Released()
}

// TestAWatchWhoseEndHadNoAnswerBeginsAnew: a server that has not answered resources/unsubscribe in time may have ended the watch, so that
// the next one who wants it asks the server once more. One that has refused watches on, and is not asked.
func TestAWatchWhoseEndHadNoAnswerBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		var asked []string // only the test's goroutine sends
		end := ""
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			answer := `"result":{}`
			switch m.Method {
			case "initialize":
				answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}}}`
			case "resources/unsubscribe":
				answer = end
				fallthrough
			case "resources/subscribe":
				asked = append(asked, strings.TrimPrefix(m.Method, "resources/"))
			default:
				return transports.Written, nil
			}
			if answer != "" {
				w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, m.ID, answer))
			}
			return transports.Written, nil
		}
		s := connected(t, w, session.Config{})
		change := func(f func(context.Context, string) error, want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := f(ctx, "x://1"); !errors.Is(err, want) {
				t.Fatalf("%v, not %v", err, want)
			}
		}
		change(s.Subscribe, nil)
		end = `"error":{"code":-32603,"message":"not now"}`
		change(s.Unsubscribe, messages.ErrRejected)
		change(s.Subscribe, nil)
		end = ""
		change(s.Unsubscribe, context.DeadlineExceeded)
		change(s.Subscribe, nil)
		if got := fmt.Sprint(asked); got != "[subscribe unsubscribe unsubscribe subscribe]" {
			t.Errorf("the server was asked %s", got)
		}
	})
}
