package transports

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestChallenge(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   *messages.Challenge
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{"Bearer"}, &messages.Challenge{Scheme: "Bearer"}},
		{[]string{`Bearer realm="a, b", resource_metadata="https://x/.well-known/y?a=b,c", scope="r w"`},
			&messages.Challenge{Scheme: "Bearer", Scope: "r w", ResourceMetadata: "https://x/.well-known/y?a=b,c"}},
		{[]string{`bearer error="invalid_token", error_description="it said \"no\" \\ twice"`},
			&messages.Challenge{Scheme: "bearer", Text: `it said "no" \ twice`}},
		{[]string{`Bearer error = insufficient_scope , scope=one`},
			&messages.Challenge{Scheme: "Bearer", Scope: "one", Text: "insufficient_scope"}},
		{[]string{`Basic realm="x", Bearer scope="s"`}, &messages.Challenge{Scheme: "Bearer", Scope: "s"}},
		{[]string{`Negotiate YWJj==, Digest qop="auth"`, `Bearer scope=s`},
			&messages.Challenge{Scheme: "Bearer", Scope: "s"}},
		{[]string{`Digest realm="x"`}, &messages.Challenge{Scheme: "Digest"}},
		{[]string{`Bearer resource_metadata=https://x/y?z=1, scope=s`},
			&messages.Challenge{Scheme: "Bearer", ResourceMetadata: "https://x/y?z=1", Scope: "s"}},
		{[]string{`Bearer scope="never closed`}, &messages.Challenge{Scheme: "Bearer"}},
		{[]string{"Bearer error=\"\x1b[31mred\u202e\""}, &messages.Challenge{Scheme: "Bearer", Text: "\ufffd[31mred\ufffd"}},
		{[]string{`, ,Bearer , scope=s,,`}, &messages.Challenge{Scheme: "Bearer", Scope: "s"}},
		{[]string{`="x"`}, nil},
	} {
		got := (&origin{}).challengeOf(http.Header{"Www-Authenticate": c.values}, "")
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.values, got, c.want)
		}
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(`Bearer a="b\"c", d=e, Basic Zm9v==, x`)
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range parseChallenges(s) {
			if c.scheme == "" || !strings.Contains(s, c.scheme) {
				t.Errorf("the scheme %q is not in %q", c.scheme, s)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		value, server string
		want          time.Duration
	}{
		{"", "", 0}, {"0", "", 0}, {"30", "", 30 * time.Second}, {" 7 ", "", 7 * time.Second},
		{"-5", "", 0}, {"soon", "", 0}, {"1.5", "", 0},
		{"999999999", "", maxRetryAfter}, {"99999999999999999999", "", 0},
		{date(90 * time.Second), "", 90 * time.Second}, {date(-time.Hour), "", 0},
		// The server's clock is an hour ahead of ours.
		{date(time.Hour + time.Minute), date(time.Hour), time.Minute},
	} {
		h := http.Header{}
		h.Set("Retry-After", c.value)
		h.Set("Date", c.server)
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %v, want %v", c.value, c.server, got, c.want)
		}
	}
}

func TestStaleSession(t *testing.T) {
	for body, want := range map[string]bool{
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`: true,
		`{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":5}`:                            true,
		`Invalid session ID`:                 true,
		`session has expired`:                true,
		`The session was terminated.`:        true,
		`{"error":"session does not exist"}`: true,
		`Invalid or expired session`:         true,
		`Mcp-Session-Id header is required`:  false,
		`Unsupported protocol version`:       false,
		``:                                   false,
		`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"unknown session of your shop"}}`: false,
		`{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"try a new session type"}}`:       false,
	} {
		if got := saysStaleSession([]byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// answersPlainly is answers by decoding.
func answersPlainly(body []byte, id int64) bool {
	var all []map[string]json.RawMessage
	var one map[string]json.RawMessage
	if json.Unmarshal(body, &one) == nil {
		all = append(all, one)
	} else if json.Unmarshal(body, &all) != nil {
		return false
	}
	for _, m := range all {
		_, method := m["method"]
		_, result := m["result"]
		_, fault := m["error"]
		if string(m["id"]) == fmt.Sprint(id) && !method && (result || fault) {
			return true
		}
	}
	return false
}

var answerSeeds = []string{
	`{"jsonrpc":"2.0","id":5,"result":{}}`, `{"result":{"id":6,"method":"x"},"id":5}`, ` { "id" : 5 , "error" : null } `,
	`{"id":5,"method":"ping"}`, `{"id":"5","result":1}`, `{"id":55,"result":1}`, `{"id":5}`, `{}`, ``, `[]`, `null`, `5`,
	`[{"method":"a"},{"id":5,"result":[]}]`, `[{"id":4,"result":"]}\"{"},{"id":5,"result":"\\"}]`,
	`[1,{"id":5,"result":1}]`,
	`{"result":"\\\"}","id":5}`, `{"a":[[{"b":"}"}]],"id":5,"result":true}`, `{"id":5,"result":{}`, `{"id":-5,"result":1}`,
	`{"jsonrpc":"2.0","id":5,"result":{"cut`, `{"jsonrpc":"2.0","id":5`,
}

func TestAnswers(t *testing.T) {
	for _, s := range answerSeeds {
		if json.Valid([]byte(s)) {
			if got, want := answersRequest([]byte(s), 5), answersPlainly([]byte(s), 5); got != want {
				t.Errorf("%s: %v", s, got)
			}
		}
	}
	// The head of a message that was cut off tells it too.
	if !answersRequest([]byte(`{"jsonrpc":"2.0","id":5,"result":{"cut`), 5) {
		t.Error("a head with an id and a result is not recognised")
	}
	if answersRequest([]byte(`{"jsonrpc":"2.0","id":5`), 5) {
		t.Error("the beginning of a number was taken for the number")
	}
}

func FuzzAnswers(f *testing.F) {
	for _, s := range answerSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := answersRequest(b, 5) // must not panic or hang, whatever b is
		if !json.Valid(b) || strings.Contains(string(b), `\u`) {
			return
		}
		// A key that stands twice is read once, and a mixed batch is read up to what is no object: both are nonsense.
		for _, key := range []string{`"id"`, `"method"`, `"result"`, `"error"`} {
			if strings.Count(string(b), key) > 1 {
				return
			}
		}
		if b[0] != '[' && got != answersPlainly(b, 5) {
			t.Errorf("%s: %v", b, got)
		}
	})
}

func TestStreamDelay(t *testing.T) {
	const first, most = time.Second, 30 * time.Second
	for failures := range 100 {
		for range 20 {
			d := streamDelay(failures, 0, first, most)
			full := min(first<<min(failures, 10), most)
			if d < full/2 || d > full {
				t.Fatalf("after %d failures: %v, want %v to %v", failures, d, full/2, full)
			}
			if d := streamDelay(failures, time.Minute, first, most); d != time.Minute {
				t.Fatalf("the server asked for 1m and gets %v", d)
			}
			d = streamDelay(failures, 300*time.Millisecond, first, most)
			if failures == 0 && d != 300*time.Millisecond || failures > 0 && d < 500*time.Millisecond {
				t.Fatalf("the server asked for 300ms, and after %d failures gets %v", failures, d)
			}
		}
	}
	if d := streamDelay(0, 1, first, most); d != minStreamDelay {
		t.Errorf("the server asked for 1ns and gets %v", d)
	}
}

// A refusal that another transport has received gets the class that HTTP gives it.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		status  int
		header  http.Header
		session bool
		class   messages.Class
	}{
		{http.StatusUnauthorized, http.Header{"Www-Authenticate": {`Bearer scope="x"`}}, false, messages.ClassUnauthorized},
		{http.StatusNotFound, nil, false, messages.ClassNetwork},
		{http.StatusNotFound, nil, true, messages.ClassSession},
		{http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, false, messages.ClassThrottled},
		{http.StatusBadGateway, nil, true, messages.ClassNetwork},
	} {
		e := RefusalError("x.example:443", &http.Response{StatusCode: c.status, Header: c.header}, []byte("no"), c.session)
		if e.Class != c.class || e.Status != c.status || string(e.Body) != "no" || !strings.HasPrefix(e.Text, "x.example:443 ") {
			t.Errorf("%d: %+v", c.status, e)
		}
		if (e.RetryAfter == 7*time.Second) != (c.status == http.StatusTooManyRequests) {
			t.Errorf("%d: Retry-After %v", c.status, e.RetryAfter)
		}
		if (e.Challenge != nil) != (c.status == http.StatusUnauthorized) {
			t.Errorf("%d: challenge %+v", c.status, e.Challenge)
		}
	}
}
