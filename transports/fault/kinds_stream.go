package fault

import (
	"encoding/json"
	"fmt"
	"time"
)

// streamKinds write what is no answer, or not the whole of it.
func streamKinds() []Kind {
	const lines = "there are no lines over HTTP"
	return []Kind{
		{
			Name: "noise", Does: "lines that are no messages come on standard output", Where: Program | Stdio, Why: lines,
			Params: []Param{number("rate", "10", "lines a second"), words("when", "always", "before or after the handshake is done, or always",
				"always|before|during"), text("line", "Server listening, ready to accept connections", "the line")},
			effect: effect{clock: &clock{period: perSecond, beat: func(m *moment) {
				if when := m.r.values.text("when"); when == "before" && m.f.ready || when == "during" && !m.f.ready {
					return
				}
				m.happen(Event{Do: Noise, Body: []byte(m.r.values.text("line"))}, "a line of noise")
			}}},
		},
		{
			Name: "stderr-flood", Does: "standard error is flooded", Where: Stdio, Why: "only a process has a standard error",
			Params: []Param{size("bytes", "4m", "how much each time"), duration("every", "1s", "how often")},
			effect: effect{clock: &clock{period: every, beat: func(m *moment) {
				const line = "chaos: a line of a log that nobody reads ........................\n"
				n := m.r.values.size("bytes")
				b := make([]byte, 0, n+len(line))
				for len(b) < n {
					b = append(b, line...)
				}
				m.happen(Event{Do: Stderr, Body: b[:n]}, fmt.Sprintf("%d bytes of standard error", n))
			}}},
		},
		{
			Name: "huge-line", Does: "the answer grows to a size beyond every limit", On: calls, Where: everywhere,
			Params: []Param{size("size", "32m", "its size")},
			effect: effect{in: func(a *act) string {
				n := a.rule.values.size("size")
				a.fate.Big = int64(n)
				return fmt.Sprintf("it has %d bytes now", n)
			}},
		},
		{
			Name: "endless-line", Does: "a line begins on standard output and does not end", Where: Stdio, Why: lines,
			Params: []Param{size("bytes", "1m", "how much each time"), duration("every", "50ms", "how often")},
			effect: effect{clock: &clock{
				period: every,
				beat: func(m *moment) {
					b := []byte(longText(max(m.r.values.size("bytes"), 1)))
					if m.n == 0 {
						b = append([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"`), b...)
					}
					m.happen(Event{Do: Raw, Body: b}, "more of a line that does not end")
				},
				end: func(m *moment) { m.happen(Event{Do: Raw, Body: []byte("\"}}\n")}, "the line ends after all") },
			}},
		},
		{
			Name: "half-line", Does: "half of the answer's line is written", On: calls, Where: Stdio, Why: lines,
			Params: []Param{words("then", "stall", "what follows: nothing while the rule lasts, the next message in the same line, or the end of "+
				"the process", "stall|next|exit"), number("code", "1", "the exit code")},
			effect: effect{in: func(a *act) string {
				a.fate.Torn, a.fate.Cut = true, len(a.m.body)/2
				switch a.rule.values.text("then") {
				case "stall":
					a.fate.Stall = a.rule.Name
				case "exit":
					a.fate.End, a.fate.Last = a.rule.end(), true
				}
				return "half of it is written"
			}},
		},
		{
			Name: "truncate", Does: "the answer's body ends in its middle, and the connection with it", On: calls, Where: HTTP,
			Why: "only a body has a length that is not kept; half-line does it over stdio",
			effect: effect{in: func(a *act) string {
				a.fate.Torn, a.fate.Cut, a.fate.End, a.fate.Last = true, len(a.m.body)/2, &End{Reset: true}, true
				return "half of it is written"
			}},
		},
		{
			Name: "duplicate-response", Does: "the answer comes twice", On: calls, Where: everywhere,
			effect: effect{in: func(a *act) string { a.fate.Copies++; return "it comes twice" }},
		},
		{
			Name: "unknown-response", Does: "an answer to nothing comes before the right one", On: calls, Where: everywhere,
			effect: effect{in: func(a *act) string {
				a.fate.Before = append(a.fate.Before, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"chaos-%d","result":{}}`, a.rng.Uint32()))
				return "an answer to nothing comes first"
			}},
		},
		{
			Name: "big-result", Does: "the result holds a long text more", On: calls, Where: everywhere,
			Params: []Param{size("size", "1m", "its length")},
			effect: effect{in: func(a *act) string {
				n := a.rule.values.size("size")
				if !a.content(longText(n)) {
					return ""
				}
				return fmt.Sprintf("%d bytes of text were added", n)
			}},
		},
		{
			Name: "leak-canary", Does: "the result and standard error hold a secret", On: calls, Where: everywhere,
			Params: []Param{text("secret", "canary-7f3a9c51d2e8", "what must not be seen anywhere")},
			effect: effect{in: func(a *act) string {
				if !a.content("token=" + a.rule.values.text("secret")) {
					return ""
				}
				return "the secret was added"
			}},
		},
	}
}

// content adds a text to the content of a tool's result.
func (a *act) content(text string) bool {
	added := false
	a.result(func(raw json.RawMessage) json.RawMessage {
		all := elements(raw)
		if all == nil && raw != nil {
			return raw
		}
		added = true
		return array(append(all, encode([]member{{"type", quote("text")}, {"text", quote(text)}})))
	}, "content")
	return added
}

func every(v values) time.Duration { return v.duration("every") }

func perSecond(v values) time.Duration {
	return time.Duration(float64(time.Second) / max(v.number("rate"), 0.001))
}
