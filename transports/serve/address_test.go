package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An endpoint has one address for all servers, one for each server and one for each view; every other address is none.
func TestTheAddressesOfAnEndpoint(t *testing.T) {
	for path, want := range map[string]Path{
		"/mcp": {}, "/mcp/": {}, "/mcp/s/one": {Server: "one"}, "/mcp/v/two": {View: "two"}, "/mcp/s/v": {Server: "v"},
	} {
		if got, ok := pathOf(path); !ok || got != want {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
	for _, path := range []string{"", "/", "/m", "/mcps", "/mcp//", "/mcp/s", "/mcp/s/", "/mcp/s/one/", "/mcp/s/one/two", "/mcp/v", "/mcp/v/", "/mcp/v/two/",
		"/mcp/v/two/three", "/mcp/x/one", "/x/mcp", "/MCP"} {
		if got, ok := pathOf(path); ok {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// The code of an error is its own, or that of the error that is passed on as it came.
func TestTheCodeOfAnError(t *testing.T) {
	for raw, want := range map[string]int{
		``: -7, `{"code":-32601,"message":"no"}`: -32601, `{"message":"no","code":-1}`: -1, `{"message":"no"}`: 0, `{"code":"x"}`: 0, `{"code":null}`: 0,
		`{"code":-3.5}`: 0, `{"code":-99999999999999999999}`: 0,
	} {
		e := &Error{Code: -7}
		if raw != "" {
			e.Raw = []byte(raw)
		}
		if got := e.errorCode(); got != want {
			t.Errorf("%s: %d", raw, got)
		}
	}
}

// A notice that comes after an agent has lost the stream of its session waits for the next one.
func TestANoticeWaitsForTheNextStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(Options{Service: newService()})
		session := open(t, h)
		get := func(ends time.Duration) string {
			w := httptest.NewRecorder()
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/mcp", nil)
			r.Header.Set("Mcp-Session-Id", session)
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		if got := get(time.Second); strings.Contains(got, "changed") {
			t.Errorf("the first stream: %s", got)
		}
		h.sessions.byID[session].Notify("k", "notifications/changed", nil)
		if got := get(time.Second); strings.Count(got, "notifications/changed") != 1 {
			t.Errorf("the second stream: %s", got)
		}
		_ = h.Close(t.Context())
	})
}

// An agent that fetches the stream of a request behind a lost connection, and reads slowly, misses nothing of what comes: the events are those
// of its request, and their answer is the last.
func TestASlowFollowerMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l replayLog
		stream := l.openStream(true)
		w := slowWriter{httptest.NewRecorder(), make(chan struct{})}
		to := newEventStream(w, time.Hour)
		if !l.follow(stream, 0, to) {
			t.Fatal("the stream is not open")
		}
		const events = maxQueuedEvents + 50
		for n := range events {
			l.keepEvent(stream, n+1, []byte(`{}`), n == events-1)
		}
		close(w.release)
		synctest.Wait()
		if got := strings.Count(w.Body.String(), "data: {}"); got != events {
			t.Errorf("%d of %d events came", got, events)
		}
		l.closeLog()
	})
}

// slowWriter writes nothing before it is released.
type slowWriter struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	<-w.release
	return w.ResponseRecorder.Write(b)
}

// An answer whose agent has gone is given up with the first part that cannot be written: each further one might wait for its own time.
func TestAnAnswerToAnAgentThatHasGoneIsGivenUp(t *testing.T) {
	w := &goneWriter{ResponseRecorder: httptest.NewRecorder()}
	writeJSON(w, http.StatusOK, make([]byte, 5*writePart))
	if w.writes != 2 {
		t.Errorf("%d parts were tried", w.writes)
	}
	whole := httptest.NewRecorder()
	writeJSON(whole, http.StatusAccepted, make([]byte, 2*writePart+1))
	if whole.Code != http.StatusAccepted || whole.Body.Len() != 2*writePart+1 {
		t.Errorf("status %d, %d bytes", whole.Code, whole.Body.Len())
	}
}

// goneWriter takes one part.
type goneWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *goneWriter) Write(b []byte) (int, error) {
	if w.writes++; w.writes > 1 {
		return 0, errGone
	}
	return len(b), nil
}

var errGone = errors.New("the agent has gone")
