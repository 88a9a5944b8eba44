package fault

import (
	"fmt"
	"net/http"
	"time"
)

// httpKinds are HTTP answers that are no MCP, and ends of HTTP connections. Inside of a program the client gets the
// error that the transport would make of them.
func httpKinds() []Kind {
	// status is the reason that is shown where there is no HTTP; net are the locations of these kinds.
	const status = "there is no HTTP"
	net := Program | HTTP
	retry := durationParam("after", "5s", "Retry-After")
	return []Kind{
		// A client must wait for the time in Retry-After and must not count the refusal as a failure of the server.
		// With when=handshake, the default, only the start is refused.
		{
			Name: "throttle", Does: "requests are refused with 429 and Retry-After", Where: net, Why: status,
			Params: []Param{retry, numberParam("status", "429", "the status"), whenParam("handshake")},
			effect: effect{out: func(a *effectContext) string {
				// Retry-After has whole seconds: the pause is rounded up, so that a client that obeys is never early.
				after := a.rule.values.duration("after")
				return a.refuseWith(int(a.rule.values.number("status")), "Too many requests", "Retry-After",
					fmt.Sprint(int((after+time.Second-1)/time.Second)), after)
			}},
		},
		// The challenge is that of an expired token: a client should refresh the token and try again, before it asks
		// a person. With when=call the handshake passes, so the refusal meets a running session.
		{
			Name: "unauthorized", Does: "requests are refused with 401", Where: net, Why: status,
			Params: []Param{textParam("scope", "tools", "the scope in the challenge"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(http.StatusUnauthorized, "Unauthorized", "Www-Authenticate",
					fmt.Sprintf("Bearer error=\"invalid_token\", scope=%q", a.rule.values.text("scope")), 0)
			}},
		},
		// The challenge asks for a larger scope: a client should ask for consent, and not send the same token again.
		// By default only calls are refused, so the session itself goes on.
		{
			Name: "forbidden", Does: "requests are refused with 403 insufficient_scope", Where: net, Why: status,
			Params: []Param{textParam("scope", "tools:write", "the scope that is wanted"), whenParam("call")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(http.StatusForbidden, "Forbidden", "Www-Authenticate",
					fmt.Sprintf("Bearer error=\"insufficient_scope\", scope=%q", a.rule.values.text("scope")), 0)
			}},
		},
		// A client must not send its credentials to another host.
		{
			Name: "redirect", Does: "requests are sent elsewhere", Where: HTTP, Why: "following is the transport's own business",
			Params: []Param{textParam("to", "http://127.0.0.1:9/elsewhere", "where to"), numberParam("status", "307", "the status"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(int(a.rule.values.number("status")), "", "Location", a.rule.values.text("to"), 0)
			}},
		},
		// The answer of a proxy in front of the server, with a body that is no JSON. Whether the call was executed is
		// not known.
		{
			Name: "server-error", Does: "requests are refused with a status of 5xx", Where: net, Why: status,
			Params: []Param{numberParam("status", "500", "the status"), whenParam("all"), textParam("body", "upstream connect error", "the body")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(int(a.rule.values.number("status")), a.rule.values.text("body"), "", "", 0)
			}},
		},
		// Captive portals and login pages answer with HTML and 200: a client must not take such a body for an answer.
		{
			Name: "wrong-content-type", Does: "answers claim to be something else", Where: HTTP, Why: status,
			Params: []Param{textParam("type", "text/html", "what"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				a.disposition.ContentType = a.rule.values.text("type")
				return "its answer claims to be " + a.disposition.ContentType
			}},
		},
		// 2025-11-25: a client that gets 404 for a request with its session id MUST start a new session.
		{
			Name: "lose-session", Does: "the server forgets every session that it has: 404", Instant: true, Where: net, Why: status,
			effect: effect{
				out: func(a *effectContext) string {
					a.disposition.End = &End{Session: true}
					return "the session is forgotten"
				},
				clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: ForgetSession}, "every session is forgotten") }},
			},
		},
		// The proxy asks for this state when it refuses a session that lose-session made it forget: some servers
		// answer 400.
		{
			Name: "stale-session-400", Does: "forgotten sessions are answered with 400, not 404, while the rule lasts", Where: HTTP, Why: status,
		},
		// The proxy remembers the credentials that it has seen; from the instant on it refuses them and accepts new
		// ones. A client must get new credentials without losing its calls.
		{
			Name: "rotate-token", Does: "the server takes no credential any more that it has taken until now: 401", Instant: true, Where: HTTP,
			Why:    "credentials are seen where there is HTTP; unauthorized does it without looking",
			effect: effect{clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: ForgetToken}, "every credential is refused from now on") }}},
		},
		// A client must not wait for the answer to its DELETE before it ends.
		{
			Name: "silent-delete", Does: "the end of a session (DELETE) is never answered", On: []string{"DELETE"}, Where: HTTP, Why: status,
			effect: effect{out: dropEffect("it is never answered")},
		},
		// Nothing listens at the address: the request was not sent, so a client may try again without a risk.
		{
			Name: "refuse", Does: "new connections are refused", Where: net, Why: status, On: []string{"dial"},
			effect: effect{out: func(a *effectContext) string {
				a.disposition.Refuse = &Refusal{Body: "refused"}
				return "the connection is refused"
			}},
		},
		// A client must open its stream again, and treat everything that may have been announced meanwhile as
		// changed. Each window cuts all open streams at the end of every period.
		{
			Name: "cut-stream", Does: "open streams are cut", Where: HTTP, Why: status,
			Params: []Param{durationParam("every", "60s", "how long a stream lives")},
			effect: effect{clock: &clockEffect{
				period: func(v values) time.Duration { return v.duration("every") },
				onPeriod: func(m *clockContext) {
					if m.n > 0 { // the first period begins with the rule
						m.emitEvent(Event{Do: Cut}, "streams are cut")
					}
				},
			}},
		},
	}
}

// whenParam returns the parameter that selects requests if the rule does not say on; word is its default.
func whenParam(word string) Param {
	return choiceParam("when", word, "which requests, if on does not say: all, those of the handshake, or calls", "all|handshake|call")
}

// refuseWith makes the answer a refusal with one header; an empty key adds none. after is the pause for the client, 0
// for none.
func (a *effectContext) refuseWith(status int, body, key, value string, after time.Duration) string {
	r := &Refusal{Status: status, Body: body, RetryAfter: after, Header: map[string]string{}}
	if key != "" {
		r.Header[key] = value
	}
	a.disposition.Refuse = r
	return fmt.Sprintf("refused with %d", status)
}
