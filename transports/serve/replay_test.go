package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lostWriter is a connection that can be lost.
type lostWriter struct {
	mu   sync.Mutex
	lost atomic.Bool
	*httptest.ResponseRecorder
}

func (w *lostWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost.Load() {
		return 0, errors.New("the connection is gone")
	}
	return w.ResponseRecorder.Write(b)
}

func (w *lostWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
}

// fetch opens the stream of a session behind an event, until it ends, or ctx does.
func fetch(ctx context.Context, h http.Handler, session, lastEvent string) string {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
	r.Header.Set("Mcp-Session-Id", session)
	r.Header.Set("Last-Event-ID", lastEvent)
	w := &lostWriter{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	return w.text()
}

// An agent whose connection is lost in the middle of a request gets the rest of its stream, and the answer, by the id of the last event.
func TestLostStreamIsResumed(t *testing.T) {
	for name, early := range map[string]bool{"before the answer": true, "after the answer": false} {
		synctest.Test(t, func(t *testing.T) {
			v := newService()
			h := NewHandler(Options{Service: v})
			session := open(t, h)
			w := &lostWriter{ResponseRecorder: httptest.NewRecorder()}
			over := make(chan struct{})
			go func() {
				defer close(over)
				h.ServeHTTP(w, request(`{"jsonrpc":"2.0","id":7,"method":"work"}`, "Mcp-Session-Id", session))
			}()
			synctest.Wait()
			if got := w.text(); !strings.Contains(got, "id: 2-1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/begun\"") {
				t.Fatalf("%s: the stream begins with %s", name, got)
			}
			w.lost.Store(true)
			got := make(chan string, 1)
			if early {
				go func() { got <- fetch(t.Context(), h, session, "2-1") }()
				synctest.Wait()
			}
			close(v.work)
			<-over
			if !early {
				got <- fetch(t.Context(), h, session, "2-1")
			}
			rest := <-got
			if strings.Contains(rest, "begun") || strings.Count(rest, "notifications/ending") != 1 || strings.Count(rest, `"id":7,"result":{"worked":true}`) != 1 ||
				strings.Index(rest, "ending") > strings.Index(rest, "worked") {
				t.Errorf("%s: the rest is %s", name, rest)
			}
			// Everything but the last event can be fetched once more, and only by the session.
			if second := fetch(t.Context(), h, session, "2-2"); strings.Contains(second, "ending") || !strings.Contains(second, "worked") {
				t.Errorf("%s: fetched once more: %s", name, second)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if other := fetch(ctx, h, open(t, h), "2-1"); strings.Contains(other, "worked") {
				t.Errorf("%s: another session got %s", name, other)
			}
			for _, id := range []string{"2-3", "9-1", "x", "1", "-1-1", "99999999999999999999-1"} {
				if none := fetch(ctx, h, session, id); strings.Contains(none, "worked") {
					t.Errorf("%s: behind %s comes %s", name, id, none)
				}
			}
			_ = h.Close(ctx)
		})
	}
}

// A request that was taken back has no answer, wherever its stream is read, and an agent that fetches it is told not to come again; so is
// one that has all there was. The stream of its session stays.
func TestStreamOfACancelledRequestEndsWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newService()
		h := NewHandler(Options{Service: v})
		session := open(t, h)
		own := &lostWriter{ResponseRecorder: httptest.NewRecorder()}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
			r.Header.Set("Mcp-Session-Id", session)
			h.ServeHTTP(own, r)
		}()
		synctest.Wait() // the stream of the session has the first number
		first, followed := make(chan *httptest.ResponseRecorder, 1), make(chan string, 1)
		go func() {
			first <- do(h, request(`{"jsonrpc":"2.0","id":7,"method":"work"}`, "Mcp-Session-Id", session))
		}()
		synctest.Wait()
		go func() { followed <- fetch(t.Context(), h, session, "4-1") }()
		synctest.Wait()
		do(h, request(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "Mcp-Session-Id", session))
		close(v.work) // it comes to its end all the same
		for name, got := range map[string]string{"the first one": (<-first).Body.String(), "who followed": <-followed} {
			if strings.Contains(got, "worked") {
				t.Errorf("%s got the answer: %s", name, got)
			}
		}
		do(h, request(`{"jsonrpc":"2.0","id":8,"method":"tell"}`, "Mcp-Session-Id", session))
		for id, want := range map[string]int{"4-1": http.StatusOK, "4-2": http.StatusNoContent, "6-1": http.StatusOK, "6-2": http.StatusNoContent} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/mcp", nil)
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Last-Event-ID", id)
			if w := do(h, r); w.Code != want {
				t.Errorf("behind %s: %d, not %d: %s", id, w.Code, want, w.Body)
			}
		}
		select {
		case <-closed:
			t.Error("the stream of the session was ended")
		default:
		}
		cancel()
		<-closed
	})
}

// A silent stream begins with an id, soon enough for an agent whose connection is lost in the middle of a call: it once came after 15 s, and
// the answer was lost before. Agents of earlier versions take an event without data for a message: they get none.
func TestSilentStreamsArePrimed(t *testing.T) {
	for version, want := range map[string]bool{"2025-11-25": true, "2025-06-18": false} {
		synctest.Test(t, func(t *testing.T) {
			after := func(d time.Duration) string {
				w := httptest.NewRecorder()
				s := newEventStream(w, 15*time.Second)
				s.keepEvents(&Session{Version: version}, true)
				time.Sleep(d)
				s.stopWriting() // nothing writes any more, so that the body can be read
				return w.Body.String()
			}
			if got := after(2 * time.Second); got != map[bool]string{true: "id: 2-0\ndata:\n\n"}[want] {
				t.Errorf("%s: the stream begins with %q", version, got)
			}
			if got := after(22 * time.Second); !strings.HasSuffix(got, ":\n\n") {
				t.Errorf("%s: the stream is %q", version, got)
			}
		})
	}
}

// A notice that was written to a connection which was lost, and that nobody has noticed to be lost, is fetched by the agent when it comes
// back. Before, it was gone if it was the first one: the agent had no id to name.
func TestNoticesOfALostStreamAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(Options{Service: newService()})
		session := open(t, h)
		lost, ctx := &lostWriter{ResponseRecorder: httptest.NewRecorder()}, t.Context()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
			r.Header.Set("Mcp-Session-Id", session)
			h.ServeHTTP(lost, r)
		}()
		synctest.Wait()
		id, _, _ := strings.Cut(strings.TrimPrefix(lost.text(), "id: "), "\n")
		lost.lost.Store(true)
		h.sessions.byID[session].Notify("k", "notifications/changed", nil)
		synctest.Wait()
		second, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if got := fetch(second, h, session, id); strings.Count(got, "notifications/changed") != 1 {
			t.Errorf("behind %q comes %q", id, got)
		}
		<-ended
		_ = h.Close(ctx)
	})
}

// What is kept is bounded, in a session and in all, and nothing of it stays.
func TestKeptEventsAreBounded(t *testing.T) {
	var logs [400]replayLog
	before := replayTotal.Load()
	for i := range logs {
		stream := logs[i].openStream(true)
		for n := range maxReplayEvents + 50 {
			logs[i].keepEvent(stream, n+1, make([]byte, 4<<10), false)
		}
		logs[i].keepEvent(stream, 1000, make([]byte, maxReplayBytes+1), true)
		if l := &logs[i]; l.bytes > maxReplayBytes || len(l.events) > maxReplayEvents || len(l.open) != 0 {
			t.Fatalf("%d events of %d bytes are kept, %d streams are open", len(l.events), l.bytes, len(l.open))
		}
	}
	if total := replayTotal.Load(); total > maxReplayTotal {
		t.Errorf("%d bytes are kept in all", total)
	}
	for i := range logs {
		logs[i].closeLog()
		logs[i].keepEvent(1, 1, []byte("x"), false)
	}
	if after := replayTotal.Load(); after != before {
		t.Errorf("%d bytes were kept before, %d after", before, after)
	}
}
