package origin

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

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
		got := (&Origin{}).challengeOf(http.Header{"Www-Authenticate": c.values}, "")
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
