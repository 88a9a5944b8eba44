package fault

import (
	"fmt"
	"net/http"
	"time"
)

// httpKinds are the faults of HTTP: statuses, sessions and credentials.
func httpKinds() []Kind {
	return []Kind{
		{
			Name: "lose-session", Reports: []string{"H1"}, Where: web | scenarios, Servers: httpServers, Eras: legacyEras,
			Instant: everywhere, EndsConnections: true,
			Does: "the server forgets its sessions: it answers 404 to whoever comes with one",
			Why:  noHTTP,
		},
		{
			Name: "stale-session-400", Reports: []string{"H1"}, Where: HTTP | scenarios, Servers: httpServers, Eras: legacyEras, EndsConnections: true,
			Does:   "the server forgets its sessions, and answers 400 where it should answer 404",
			InRule: "sessions that the server forgot by lose-session are answered with 400, not 404",
			Why:    noHTTP,
		},
		{
			Name: "cut-stream", Reports: []string{"H3"}, Where: HTTP | scenarios, Servers: networkServers, Eras: bothEras,
			Does:   "the streams that carry what the server says are cut again and again, as gateways do with idle ones",
			Why:    noHTTP,
			Params: []Param{durationParam("every", "60s", "how old a stream becomes")},
		},
		{
			Name: "throttle", Reports: []string{"H6"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras,
			Does: "the server asks to wait",
			Why:  noHTTP,
			Params: []Param{
				durationParam("after", "5s", "its Retry-After, in whole seconds; 0 for none"),
				statusParam("429", "429", "503"),
				whenParam("handshake"),
			},
		},
		{
			Name: "unauthorized", Reports: []string{"H7"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras,
			Does:   "the server answers 401, whatever it is shown",
			Why:    noHTTP,
			Params: []Param{textParam("scope", "tools", "scope in the challenge"), whenParam("all")},
		},
		{
			Name: "rotate-token", Reports: []string{"H7"}, Where: HTTP | scenarios, Servers: postServers, Eras: bothEras, Instant: everywhere,
			Does: "the credentials that the server has accepted until now are refused with 401 from now on",
			Why:  "credentials are seen where there is HTTP; unauthorized does it without looking",
		},
		{
			Name: "forbidden", Reports: []string{"H8"}, Where: web | scenarios, Servers: postServers, Eras: bothEras,
			Does:   "the server answers 403 insufficient_scope",
			Why:    noHTTP,
			Params: []Param{textParam("scope", "tools:write", "scope in the challenge"), whenParam("call")},
		},
		{
			Name: "redirect", Reports: []string{"H9"}, Where: HTTP | scenarios, Servers: postServers, Eras: bothEras,
			Does: "the server sends clients elsewhere",
			Why:  "following is the transport's own business",
			Params: []Param{
				textParam("to", "http://127.0.0.1:9/elsewhere", "where to"),
				statusParam("307", "301", "302", "303", "307", "308"),
				whenParam("all"),
			},
		},
		{
			Name: "silent-delete", Reports: []string{"H10"}, Where: HTTP | scenarios, Servers: httpServers, Eras: legacyEras, On: []string{"DELETE"},
			Does: "the end of a session (DELETE) is never answered",
			Why:  noHTTP,
		},
		{
			Name: "server-error", Reports: []string{"H11"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras,
			Does: "the server answers with an error of its own",
			Why:  noHTTP,
			Params: []Param{
				statusParam("500", "400", "404", "405", "406", "408", "409", "413", "415", "500", "501", "502", "503", "504"),
				whenParam("all"),
				textParam("body", "upstream connect error", "body of the answer").only(rules),
				chanceParam("chance", "1", "of each message"),
			},
		},
		{
			Name: "wrong-content-type", Reports: []string{"H11"}, Where: HTTP | scenarios, Servers: httpServers, Eras: bothEras,
			Does: "answers are declared as something else than they are",
			Why:  noHTTP,
			Params: []Param{
				textParam("type", "text/html", "the content type"),
				whenParam("all"),
				chanceParam("chance", "1", "of each answer"),
			},
		},
	}
}

// noHTTP is why a fault of HTTP cannot be done elsewhere.
const noHTTP = "there is no HTTP"

// networkKinds are the faults between client and server.
func networkKinds() []Kind {
	return []Kind{
		{
			Name: "half-open", Reports: []string{"H4", "L5"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras,
			Instant: rules, EndsConnections: true,
			Does:   "the connections that stand say and hear nothing any more, without an end; at the end of the fault they are reset",
			InRule: "the connections that stand say and hear nothing any more, without an end; new ones work",
			Why:    "a pipe has no state of that kind; black-hole is as silent",
		},
		{
			Name: "refuse", Reports: []string{"H11"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras, On: dialMethods,
			Does:   "connections are refused",
			Why:    noHTTP,
			Params: []Param{truthParam("standing", "true", "those that stand are reset at the begin").only(scenarios)},
		},
		{
			Name: "reset", Reports: []string{"H11"}, Where: web | scenarios, Servers: networkServers, Eras: bothEras, Instant: everywhere, EndsConnections: true,
			Does:   "every connection is reset",
			InRule: "the connections are reset; that of a message if the rule names one",
			Why:    "a pipe cannot be reset; crash ends it",
		},
		{
			Name: "black-hole", Reports: []string{"H11"}, Where: everywhere, Servers: networkServers, Eras: bothEras,
			Does: "whatever arrives vanishes: dials hang, requests are never answered",
		},
		{
			Name: "partition", Reports: []string{"H11", "H4"}, Where: everywhere, Servers: networkServers, Eras: bothEras,
			Does: "nothing gets from the machine to the server or back; what waited arrives at the end",
		},
	}
}

// machineKinds are the faults of the machine on which a manager runs.
func machineKinds() []Kind {
	return []Kind{
		{
			Name: "sleep", Reports: []string{"H5"}, Where: scenarios, Servers: allServers, Eras: bothEras, WholeMachine: true,
			Does:   "the machine sleeps: its processes stop, and the network is away; afterwards everything goes on",
			Why:    "that is the whole machine's; stop does it to one process, black-hole to one conversation",
			Params: []Param{truthParam("cut", "true", "connections over the network are dead when it wakes")},
		},
	}
}

// httpEffects are HTTP answers that are no MCP, and ends of HTTP connections. Inside of a program the client gets the
// error that the transport would make of them.
func httpEffects() map[string]effect {
	return map[string]effect{
		// A client must wait for the time in Retry-After and must not count the refusal as a failure of the server.
		// With when=handshake, the default, only the start is refused.
		"throttle": {out: func(a *effectContext) string {
			// Retry-After has whole seconds: the pause is rounded up, so that a client that obeys is never early.
			after := a.rule.values.Duration("after")
			return a.refuseWith(a.rule.values.Int("status"), "Too many requests", "Retry-After",
				fmt.Sprint(int((after+time.Second-1)/time.Second)), after)
		}},
		// The challenge is that of an expired token: a client should refresh the token and try again, before it asks
		// a person. With when=call the handshake passes, so the refusal meets a running session.
		"unauthorized": {out: func(a *effectContext) string {
			return a.refuseWith(http.StatusUnauthorized, "Unauthorized", "Www-Authenticate",
				fmt.Sprintf("Bearer error=\"invalid_token\", scope=%q", a.rule.values.Text("scope")), 0)
		}},
		// The challenge asks for a larger scope: a client should ask for consent, and not send the same token again.
		// By default only calls are refused, so the session itself goes on.
		"forbidden": {out: func(a *effectContext) string {
			return a.refuseWith(http.StatusForbidden, "Forbidden", "Www-Authenticate",
				fmt.Sprintf("Bearer error=\"insufficient_scope\", scope=%q", a.rule.values.Text("scope")), 0)
		}},
		// A client must not send its credentials to another host.
		"redirect": {out: func(a *effectContext) string {
			return a.refuseWith(a.rule.values.Int("status"), "", "Location", a.rule.values.Text("to"), 0)
		}},
		// The answer of a proxy in front of the server, with a body that is no JSON. Whether the call was executed is
		// not known.
		"server-error": {out: func(a *effectContext) string {
			return a.refuseWith(a.rule.values.Int("status"), a.rule.values.Text("body"), "", "", 0)
		}},
		// Captive portals and login pages answer with HTML and 200: a client must not take such a body for an answer.
		"wrong-content-type": {out: func(a *effectContext) string {
			a.disposition.ContentType = a.rule.values.Text("type")
			return "its answer claims to be " + a.disposition.ContentType
		}},
		// 2025-11-25: a client that gets 404 for a request with its session id MUST start a new session.
		"lose-session": {
			out: func(a *effectContext) string {
				a.disposition.End = &End{Session: true}
				return "the session is forgotten"
			},
			clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: ForgetSession}, "every session is forgotten") }},
		},
		// The proxy asks for this state when it refuses a session that lose-session made it forget: some servers
		// answer 400.
		"stale-session-400": {byProxy: true},
		// The proxy remembers the credentials that it has seen; from the instant on it refuses them and accepts new
		// ones. A client must get new credentials without losing its calls.
		"rotate-token": {clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: ForgetToken}, "every credential is refused from now on") }}},
		// A client must not wait for the answer to its DELETE before it ends.
		"silent-delete": {out: dropEffect("it is never answered")},
		// Nothing listens at the address: the request was not sent, so a client may try again without a risk.
		"refuse": {out: func(a *effectContext) string {
			a.disposition.Refuse = &Refusal{Body: "refused"}
			return "the connection is refused"
		}},
		// A client must open its stream again, and treat everything that may have been announced meanwhile as
		// changed. Each window cuts all open streams at the end of every period.
		"cut-stream": {clock: &clockEffect{
			period: func(v Values) time.Duration { return v.Duration("every") },
			onPeriod: func(m *clockContext) {
				if m.n > 0 { // the first period begins with the rule
					m.emitEvent(Event{Do: CutStreams}, "streams are cut")
				}
			},
		}},
	}
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
