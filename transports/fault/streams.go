package fault

import (
	"encoding/json"
	"fmt"
	"time"
)

// streamEffects are what rules do to the bytes that a server writes: lines that are no message, incomplete lines, and too
// many of them.
func streamEffects() map[string]effect {
	return map[string]effect{
		// Servers that log to standard output are common: a client must ignore some lines, and give up on a flood.
		// With when=before the lines come while the handshake is open, which is when most servers greet.
		"noise": {clock: &clockEffect{period: ratePeriod, onPeriod: func(m *clockContext) {
			if when := m.r.values.Text("when"); when == "before" && m.f.handshakeDone || when == "during" && !m.f.handshakeDone {
				return
			}
			m.emitEvent(Event{Do: Noise, Body: []byte(m.r.values.Text("line"))}, "a line of noise")
		}}},
		// A client that does not read standard error blocks its server once the pipe is full.
		"stderr-flood": {clock: &clockEffect{period: everyPeriod, onPeriod: func(m *clockContext) {
			const line = "chaos: a line of a log that nobody reads ........................\n"
			n := m.r.values.Int("bytes")
			b := make([]byte, 0, n+len(line))
			for len(b) < n {
				b = append(b, line...)
			}
			m.emitEvent(Event{Do: Stderr, Body: b[:n]}, fmt.Sprintf("%d bytes of standard error", n))
		}}},
		// A client must end the call whose answer is too large, and keep the connection. Inside of a program the
		// message is not made: the sink gets the report of an oversized message.
		"huge-line": {in: func(a *effectContext) string {
			n := a.rule.values.Int("size")
			a.disposition.Big = int64(n)
			return fmt.Sprintf("it has %d bytes now", n)
		}},
		// A client must not keep a line without an end in memory. The end of the window completes the line, so that
		// the conversation can go on.
		"endless-line": {clock: &clockEffect{
			period: everyPeriod,
			onPeriod: func(m *clockContext) {
				b := []byte(longText(max(m.r.values.Int("bytes"), 1)))
				if m.n == 0 {
					b = append([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"`), b...)
				}
				m.emitEvent(Event{Do: Raw, Body: b}, "more of a line that does not end")
			},
			end: func(m *clockContext) { m.emitEvent(Event{Do: Raw, Body: []byte("\"}}\n")}, "the line ends after all") },
		}},
		// The written bytes look like a message whose rest is on its way. What follows decides how a client can
		// notice: a timeout, a line that is no JSON, or the end of the stream.
		"half-line": {in: func(a *effectContext) string {
			// then=next needs nothing more: the proxy writes the next message behind the torn one.
			a.disposition.Torn, a.disposition.Cut = true, len(a.m.body)/2
			switch a.rule.values.Text("then") {
			case "stall":
				a.disposition.Stall = a.rule.Name
			case "exit":
				a.disposition.End, a.disposition.Last = a.rule.serverEnd(), true
			}
			return "half of it is written"
		}},
		// Over HTTP the length of the body was announced, so a client can see that bytes are missing; the outcome of
		// the call is unknown all the same.
		"truncate": {in: func(a *effectContext) string {
			a.disposition.Torn, a.disposition.Cut, a.disposition.End, a.disposition.Last = true, len(a.m.body)/2, &End{Reset: true}, true
			return "half of it is written"
		}},
		// A client must not take the second answer for that of another request.
		"duplicate-response": {in: func(a *effectContext) string { a.disposition.Copies++; return "it comes twice" }},
		// A client must count such an answer and ignore it. The id is a text, which no client of ours uses, so it
		// cannot belong to another request by accident.
		"unknown-response": {in: func(a *effectContext) string {
			a.disposition.Before = append(a.disposition.Before, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"chaos-%d","result":{}}`, a.rng.Uint32()))
			return "an answer to nothing comes first"
		}},
		// The result stays valid and below the limits; a client must bound how much of it reaches a model or a log.
		"big-result": {in: func(a *effectContext) string {
			n := a.rule.values.Int("size")
			if !a.addContent(longText(n)) {
				return ""
			}
			return fmt.Sprintf("%d bytes of text were added", n)
		}},
		// The proxy also writes the secret to standard error. Afterwards a test searches all logs and reports for it.
		"leak-canary": {in: func(a *effectContext) string {
			if !a.addContent("token=" + a.rule.values.Text("secret")) {
				return ""
			}
			return "the secret was added"
		}},
	}
}

// addContent adds a text block to the content of a tool's result. It reports false if the answer is an error, or its
// content is no array.
func (a *effectContext) addContent(text string) bool {
	added := false
	a.changeResult(func(raw json.RawMessage) json.RawMessage {
		all := readArray(raw)
		if all == nil && raw != nil {
			return raw
		}
		added = true
		return encodeArray(append(all, encodeObject([]member{{"type", quoteJSON("text")}, {"text", quoteJSON(text)}})))
	}, "content")
	return added
}

// everyPeriod returns the parameter every as the period of a clock.
func everyPeriod(v Values) time.Duration { return v.Duration("every") }

// ratePeriod returns the period for the parameter rate, which counts per second; a rate of 0 is one in 1,000 s.
func ratePeriod(v Values) time.Duration {
	return time.Duration(float64(time.Second) / max(v.Float("rate"), 0.001))
}
