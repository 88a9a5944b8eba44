package servers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// modernDoes are the checks of the modern era's kinds, as does.
var modernDoes = map[string]func(t *testing.T){
	"modern":                    modern,
	"both-eras":                 bothEras,
	"modern-result-type":        answersCall(`"resultType":"surprise"`),
	"modern-no-result-type":     modernNoResultType,
	"modern-input-for-ever":     modernInputForEver,
	"modern-task-for-ever":      modernTaskForEver,
	"modern-unnamed-changes":    tellsOnListen("modern-unnamed-changes", `"method":"notifications/tools/list_changed"}`),
	"modern-foreign-changes":    tellsOnListen("modern-foreign-changes", `"io.modelcontextprotocol/subscriptionId":987654321`),
	"modern-no-acknowledgement": modernNoAcknowledgement,
	"modern-listen-flaps":       modernListenFlaps,
	"modern-listen-refused":     modernListenRefused,
	"modern-dies-on-listen":     modernDiesOnListen,
	"modern-asks":               modernAsks,
	"modern-odd-answers":        modernOddAnswers,
	"modern-cancels":            says("modern-cancels", `"notifications/cancelled"`),
	"modern-odd-progress":       says("modern-odd-progress", `"progress":9`),
	"modern-forgets-version":    modernForgetsVersion,
	"modern-odd-discovery":      modernOddDiscovery,

	"silent-on-probe":        silentOnProbe,
	"deaf-before-initialize": deafBeforeInitialize,
	"closes-on-probe":        closesOnProbe,
	"odd-on-probe":           oddOnProbe,
}

func init() {
	for name, check := range modernDoes {
		does[name] = check
	}
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

// ask sends a request of the modern era; members are further ones of its params.
func (f *fixture) ask(id int, method, members string) answer {
	f.t.Helper()
	f.request(id, method, `{`+members+modernMeta+`}`)
	return f.answerTo(id)
}

func (f *fixture) discover() {
	f.t.Helper()
	if a := f.ask(1, "server/discover", ""); !strings.Contains(string(a.Result), `"2026-07-28"`) {
		f.t.Fatalf("server/discover gave %s %s", a.Result, a.Error)
	}
}

const listenAll = `"notifications":{"toolsListChanged":true},`

func modern(t *testing.T) {
	f := start(t, "modern", "start=10ms")
	f.discover()
	f.request(2, "tools/list", "{}")
	if a := f.answerTo(2); !strings.Contains(string(a.Error), "-32022") {
		t.Errorf("without a version: %s %s", a.Result, a.Error)
	}
	if a := f.ask(3, "initialize", ""); !strings.Contains(string(a.Error), "-32601") {
		t.Errorf("initialize gave %s", a.Result)
	}
	if a := f.ask(4, "tools/call", `"name":"echo","arguments":{"text":"x"},`); !strings.HasPrefix(string(a.Result),
		`{"resultType":"complete","content":`) {
		t.Errorf("a call gave %s", a.Result)
	}
	if a := f.ask(5, "tools/call", `"name":"ask","arguments":{"method":"roots/list"},`); !strings.Contains(
		string(a.Result), `"inputRequests":{"asked":{"method":"roots/list","params":{}}},"requestState":"state"`) {
		t.Errorf("ask gave %s", a.Result)
	}
	a := f.ask(6, "tools/call", `"name":"ask","inputResponses":{"asked":{}},"requestState":"state",`)
	if !strings.Contains(string(a.Result), `state {\"asked\":{}}`) {
		t.Errorf("ask with input gave %s", a.Result)
	}
	f.request(7, "subscriptions/listen", `{`+listenAll+modernMeta+`}`)
	if l := f.line(); !strings.Contains(l, "acknowledged") || !strings.Contains(l, `subscriptionId":7`) {
		t.Errorf("listen gave %s", l)
	}
	f.request(8, "tools/call", `{"name":"grow","arguments":{"name":"new"},`+modernMeta+`}`)
	f.answerTo(8)
	if l := f.line(); !strings.Contains(l, "list_changed") || !strings.Contains(l, `subscriptionId":7`) {
		t.Errorf("a change gave %s", l)
	}
	f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	f.ask(9, "tools/call", `"name":"shrink","arguments":{"name":"new"},`)
	f.quiet()
}

func bothEras(t *testing.T) {
	f := start(t, "both-eras")
	f.discover()
	f.initialize()
	f.list(3, "{}")
	if got := f.text(4, "echo", `{"text":"x"}`); got != "x" {
		t.Errorf("echo gave %q", got)
	}
}

// says checks that a kind sends something beside the answer to a call.
func says(kind, words string) func(t *testing.T) {
	return func(t *testing.T) {
		f := start(t, kind)
		f.discover()
		f.request(2, "tools/call", `{"name":"echo","arguments":{"text":"x"},`+modernMeta+`}`)
		if l := f.line(); !strings.Contains(l, words) {
			t.Errorf("it sends %s, want %s", l, words)
		}
		f.answerTo(2)
	}
}

func answersCall(words string) func(t *testing.T) {
	return func(t *testing.T) {
		f := start(t, "modern-result-type")
		f.discover()
		if a := f.ask(2, "tools/call", `"name":"echo",`); !strings.Contains(string(a.Result), words) {
			t.Errorf("a call gave %s", a.Result)
		}
	}
}

func modernNoResultType(t *testing.T) {
	f := start(t, "modern-no-result-type")
	f.discover()
	if a := f.ask(2, "tools/call", `"name":"echo",`); strings.Contains(string(a.Result), "resultType") {
		t.Errorf("a call gave %s", a.Result)
	}
}

func modernInputForEver(t *testing.T) {
	f := start(t, "modern-input-for-ever", "with=roots")
	f.discover()
	for i := range 3 {
		a := f.ask(2+i, "tools/call", `"name":"echo","inputResponses":{"r":{"roots":[]}},`)
		if want := fmt.Sprintf(`"requestState":"round %d"`, i+1); !strings.Contains(string(a.Result), want) ||
			!strings.Contains(string(a.Result), "roots/list") {
			t.Errorf("round %d gave %s", i, a.Result)
		}
	}
}

func modernTaskForEver(t *testing.T) {
	f := start(t, "modern-task-for-ever")
	f.discover()
	if a := f.ask(2, "tools/call", `"name":"echo",`); !strings.Contains(string(a.Result), `"resultType":"task"`) {
		t.Errorf("a call gave %s", a.Result)
	}
	if a := f.ask(3, "tasks/get", `"taskId":"endless",`); !strings.Contains(string(a.Result), `"working"`) {
		t.Errorf("tasks/get gave %s", a.Result)
	}
	if a := f.ask(4, "tasks/cancel", `"taskId":"endless",`); a.Error == nil {
		t.Errorf("tasks/cancel gave %s", a.Result)
	}
}

func tellsOnListen(kind, words string) func(t *testing.T) {
	return func(t *testing.T) {
		f := start(t, kind, "count=2")
		f.discover()
		f.request(2, "subscriptions/listen", `{`+listenAll+modernMeta+`}`)
		f.line()
		if l := f.line(); !strings.Contains(l, words) {
			t.Errorf("it tells %s, want %s", l, words)
		}
		f.ask(3, "tools/list", "")
	}
}

func modernNoAcknowledgement(t *testing.T) {
	f := start(t, "modern-no-acknowledgement")
	f.discover()
	f.request(2, "subscriptions/listen", `{`+listenAll+modernMeta+`}`)
	if l := f.line(); !strings.Contains(l, "tools/list_changed") {
		t.Errorf("it sends %s", l)
	}
	f.quiet()
}

func modernListenFlaps(t *testing.T) {
	f := start(t, "modern-listen-flaps")
	f.discover()
	if a := f.ask(2, "subscriptions/listen", listenAll); a.Result == nil {
		t.Errorf("listen gave %s", a.Error)
	}
	if a := f.ask(3, "tools/call", `"name":"heard","arguments":{"name":"listens"},`); !strings.Contains(string(a.Result),
		`"text":"1"`) {
		t.Errorf("it counts %s", a.Result)
	}
}

func modernListenRefused(t *testing.T) {
	f := start(t, "modern-listen-refused", "code=-32099")
	f.discover()
	if a := f.ask(2, "subscriptions/listen", listenAll); !strings.Contains(string(a.Error), "-32099") {
		t.Errorf("listen gave %s", a.Result)
	}
}

func modernDiesOnListen(t *testing.T) {
	f := start(t, "modern-dies-on-listen")
	f.discover()
	f.request(2, "subscriptions/listen", `{`+listenAll+modernMeta+`}`)
	f.exits(1)
}

func modernAsks(t *testing.T) {
	f := start(t, "modern-asks")
	f.discover()
	f.request(2, "tools/call", `{"name":"heard","arguments":{"name":"answers"},`+modernMeta+`}`)
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "ping"} {
		if l := f.line(); !strings.Contains(l, `"id":2,"method":"`+method) {
			t.Errorf("it asks %s, want %s", l, method)
		}
	}
	f.answerTo(2)
	f.send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if a := f.ask(3, "tools/call", `"name":"heard","arguments":{"name":"answers"},`); !strings.Contains(string(a.Result),
		`"text":"1"`) {
		t.Errorf("it heard %s", a.Result)
	}
}

func modernOddAnswers(t *testing.T) {
	f := start(t, "modern-odd-answers")
	f.discover()
	f.request(2, "tools/call", `{"name":"echo",`+modernMeta+`}`)
	if a := f.answerTo(2); a.Result == nil {
		t.Errorf("first %s", a.Error)
	}
	if a := f.answerTo(2); a.Error == nil {
		t.Errorf("then %s", a.Result)
	}
}

func modernForgetsVersion(t *testing.T) {
	f := start(t, "modern-forgets-version")
	f.discover()
	if a := f.ask(2, "tools/call", `"name":"echo",`); !strings.Contains(string(a.Error), "2099-01-01") {
		t.Errorf("a call gave %s %s", a.Result, a.Error)
	}
}

func modernOddDiscovery(t *testing.T) {
	f := start(t, "modern-odd-discovery")
	if a := f.ask(1, "server/discover", ""); !strings.Contains(string(a.Result), `"listChanged":"perhaps"`) {
		t.Errorf("server/discover gave %s", a.Result)
	}
	f.ask(2, "tools/list", "")
}

func silentOnProbe(t *testing.T) {
	f := start(t, "silent-on-probe")
	f.request(1, "server/discover", "{}")
	f.quiet()
	f.initialize()
}

func deafBeforeInitialize(t *testing.T) {
	f := start(t, "deaf-before-initialize")
	f.request(1, "server/discover", "{}")
	f.request(2, "initialize", "{}")
	f.quiet()
	f.lives()
	start(t, "deaf-before-initialize").initialize()
}

func closesOnProbe(t *testing.T) {
	f := start(t, "closes-on-probe")
	f.request(1, "server/discover", "{}")
	if _, ok := <-f.out; ok {
		t.Error("its output is open")
	}
	f.lives()
	start(t, "closes-on-probe").initialize()
}

func oddOnProbe(t *testing.T) {
	for _, how := range servers.Oddities() {
		f := start(t, "odd-on-probe", "how="+how)
		f.request(1, "server/discover", "{}")
		if l := f.line(); strings.Contains(l, `"2026-07-28"`) {
			t.Errorf("%s: %s", how, l)
		}
		f.initialize()
	}
}
