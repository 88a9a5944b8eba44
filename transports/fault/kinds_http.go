package fault

import (
	"fmt"
	"net/http"
	"time"
)

// httpKinds are answers of HTTP, and ends of its connections. Inside of a program they are what the transport would say.
func httpKinds() []Kind {
	const status = "there is no HTTP"
	net := Program | HTTP
	retry := durationParam("after", "5s", "Retry-After")
	return []Kind{
		{
			Name: "throttle", Does: "requests are refused with 429 and Retry-After", Where: net, Why: status,
			Params: []Param{retry, numberParam("status", "429", "the status"), whenParam("handshake")},
			effect: effect{out: func(a *effectContext) string {
				after := a.rule.values.duration("after")
				return a.refuseWith(int(a.rule.values.number("status")), "Too many requests", "Retry-After",
					fmt.Sprint(int((after+time.Second-1)/time.Second)), after)
			}},
		},
		{
			Name: "unauthorized", Does: "requests are refused with 401", Where: net, Why: status,
			Params: []Param{textParam("scope", "tools", "the scope in the challenge"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(http.StatusUnauthorized, "Unauthorized", "Www-Authenticate",
					fmt.Sprintf("Bearer error=\"invalid_token\", scope=%q", a.rule.values.text("scope")), 0)
			}},
		},
		{
			Name: "forbidden", Does: "requests are refused with 403 insufficient_scope", Where: net, Why: status,
			Params: []Param{textParam("scope", "tools:write", "the scope that is wanted"), whenParam("call")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(http.StatusForbidden, "Forbidden", "Www-Authenticate",
					fmt.Sprintf("Bearer error=\"insufficient_scope\", scope=%q", a.rule.values.text("scope")), 0)
			}},
		},
		{
			Name: "redirect", Does: "requests are sent elsewhere", Where: HTTP, Why: "following is the transport's own business",
			Params: []Param{textParam("to", "http://127.0.0.1:9/elsewhere", "where to"), numberParam("status", "307", "the status"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(int(a.rule.values.number("status")), "", "Location", a.rule.values.text("to"), 0)
			}},
		},
		{
			Name: "server-error", Does: "requests are refused with a status of 5xx", Where: net, Why: status,
			Params: []Param{numberParam("status", "500", "the status"), whenParam("all"), textParam("body", "upstream connect error", "the body")},
			effect: effect{out: func(a *effectContext) string {
				return a.refuseWith(int(a.rule.values.number("status")), a.rule.values.text("body"), "", "", 0)
			}},
		},
		{
			Name: "wrong-content-type", Does: "answers claim to be something else", Where: HTTP, Why: status,
			Params: []Param{textParam("type", "text/html", "what"), whenParam("all")},
			effect: effect{out: func(a *effectContext) string {
				a.disposition.ContentType = a.rule.values.text("type")
				return "its answer claims to be " + a.disposition.ContentType
			}},
		},
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
		{
			Name: "stale-session-400", Does: "forgotten sessions are answered with 400, not 404, while the rule lasts", Where: HTTP, Why: status,
		},
		{
			Name: "rotate-token", Does: "the server takes no credential any more that it has taken until now: 401", Instant: true, Where: HTTP,
			Why:    "credentials are seen where there is HTTP; unauthorized does it without looking",
			effect: effect{clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: ForgetToken}, "every credential is refused from now on") }}},
		},
		{
			Name: "silent-delete", Does: "the end of a session (DELETE) is never answered", On: []string{"DELETE"}, Where: HTTP, Why: status,
			effect: effect{out: dropEffect("it is never answered")},
		},
		{
			Name: "refuse", Does: "new connections are refused", Where: net, Why: status, On: []string{"dial"},
			effect: effect{out: func(a *effectContext) string {
				a.disposition.Refuse = &Refusal{Body: "refused"}
				return "the connection is refused"
			}},
		},
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

// whenParam is which requests a fault of HTTP is about, if the rule does not say on.
func whenParam(word string) Param {
	return choiceParam("when", word, "which requests, if on does not say: all, those of the handshake, or calls", "all|handshake|call")
}

func (a *effectContext) refuseWith(status int, body, key, value string, after time.Duration) string {
	r := &Refusal{Status: status, Body: body, RetryAfter: after, Header: map[string]string{}}
	if key != "" {
		r.Header[key] = value
	}
	a.disposition.Refuse = r
	return fmt.Sprintf("refused with %d", status)
}
