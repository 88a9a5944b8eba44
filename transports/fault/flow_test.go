package fault_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// The conversation of the tests: what the client asks, and what the server answers.
const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	initialized = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	discover    = `{"jsonrpc":"2.0","id":"d","method":"server/discover"}`
	discovered  = `{"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}`
	list        = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	listed      = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","description":"e","inputSchema":{}, "x":1.0},{"name":"add"}]}}`
	call        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"n":9007199254740993},"_meta":{"progressToken":"p"}}}`
	called      = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hi"}]}}`
	cancel      = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`
)

// place gives a flow with rules, for the place where each can be done.
func flowOf(t *testing.T, rules ...string) (*fault.Flow, *fault.Control) {
	t.Helper()
	control, err := fault.New(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range rules {
		r, err := fault.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := control.At(0).Add(r); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return control.Flow(), control
}

// tell describes fates as one line.
func tell(fates []fault.Fate) string {
	if fates == nil {
		return "passes"
	}
	var parts []string
	for _, f := range fates {
		add := func(yes bool, format string, args ...any) {
			if yes {
				parts = append(parts, fmt.Sprintf(format, args...))
			}
		}
		for _, b := range f.Before {
			add(true, "before %s", b)
		}
		for _, b := range f.Late {
			add(true, "late %s", b)
		}
		add(f.After > 0, "after %v", f.After)
		add(f.Drop, "dropped")
		add(f.Block, "blocked")
		add(f.Copies > 0, "%d copies", f.Copies)
		add(f.Torn, "%d bytes", f.Cut)
		add(f.Chunk > 0, "%d bytes every %v", f.Chunk, f.Every)
		add(f.Big > 0, "grows to %d", f.Big)
		add(f.ContentType != "", "as %s", f.ContentType)
		add(f.Cutting, "cuts")
		if f.Refuse != nil {
			add(true, "status %d %v", f.Refuse.Status, f.Refuse.Header)
		}
		if f.Changed {
			b := f.Body
			if len(b) > 300 {
				b = fmt.Appendf(nil, "%s…(%d)", b[:150], len(b))
			}
			add(true, "%s", b)
		}
		if f.End != nil {
			add(true, "end %+v last %v", *f.End, f.Last)
		}
	}
	return strings.Join(parts, "; ")
}

// fates are what becomes of the conversation by each fault. Only what is hit is named; everything else must pass.
var fates = []struct {
	rule string
	want map[string]string // by message
}{
	{"latency by=2s", map[string]string{initialized: "after 2s", discovered: "after 2s", listed: "after 2s", called: "after 2s"}},
	{"latency by=2s on=tools/call direction=server", map[string]string{call: "after 2s"}},
	{"slow-start by=3s", map[string]string{initialized: "after 3s", discovered: "after 3s"}},
	{"hang-start", map[string]string{initialized: "dropped", discovered: "dropped"}},
	{"silent-discover", map[string]string{discovered: "dropped"}},
	{"hang-call", map[string]string{called: "dropped"}},
	{"hang-call tool=add", nil},
	{"late-response", map[string]string{called: "dropped", cancel: "late " + called + "; after 100ms"}},
	{"ignore-cancel", map[string]string{cancel: "dropped"}},
	{"black-hole on=tools/*", map[string]string{list: "dropped", call: "dropped"}},
	{"deaf on=tools/list", map[string]string{list: "blocked"}},
	{"slow rate=2k on=tools/call", map[string]string{called: "102 bytes every 50ms"}},
	{"slow-drip on=tools/call chunk=3 every=1s", map[string]string{called: "3 bytes every 1s"}},
	{"crash on=tools/list code=9", map[string]string{list: "end {Code:9 Signal: Reset:false Session:false} last false"}},
	{"exit-after-list code=0", map[string]string{listed: "end {Code:0 Signal: Reset:false Session:false} last true"}},
	{"die-on-discover signal=SEGV", map[string]string{discover: "end {Code:1 Signal:SEGV Reset:false Session:false} last false"}},
	{"die-mid-call", map[string]string{called: "dropped; end {Code:1 Signal: Reset:false Session:false} last false"}},
	{"answer-and-die", map[string]string{called: "end {Code:1 Signal: Reset:false Session:false} last true"}},
	{"reset on=tools/call direction=client", map[string]string{
		called: "dropped; end {Code:0 Signal: Reset:true Session:false} last false"}},
	{"huge-line size=20m", map[string]string{called: "grows to 20971520"}},
	{"half-line", map[string]string{called: "37 bytes; end {Code:1 Signal: Reset:false Session:false} last true"}},
	{"truncate", map[string]string{called: "37 bytes; end {Code:0 Signal: Reset:true Session:false} last true"}},
	{"duplicate-response", map[string]string{called: "1 copies"}},
	{"unknown-response", map[string]string{called: `before {"jsonrpc":"2.0","id":"chaos-*","result":{}}`}},
	{"big-result size=3", map[string]string{
		called: `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hi"},{"type":"text","text":"the"}]}}`}},
	{"leak-canary secret=s3cret", map[string]string{
		called: `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hi"},{"type":"text","text":"token=s3cret"}]}}`}},
	{"tool-error", map[string]string{
		called: `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"chaos: the tool failed"}],"isError":true}}`}},
	{`tool-error rpc=yes code=-1 text="no luck"`, map[string]string{
		called: `{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no luck"}}`}},
	{"bad-output", map[string]string{
		listed: `*"x":1.0,"outputSchema":*`,
		called: `*"structuredContent":{"chaos":"not what the schema says"}}}`}},
	{"control-characters on=tools/list", map[string]string{listed: `*\u001b[2J*`}},
	{"cursor-loop on=tools/list", map[string]string{listed: `*"nextCursor":"chaos-once-more"}}`}},
	{"empty-cursor on=tools/list", map[string]string{listed: `*"nextCursor":""}}`}},
	{"quiet-change", map[string]string{
		listed: `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","description":"e","inputSchema":{}, "x":1.0}]}}`}},
	{"quiet-change which=echo", map[string]string{listed: `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add"}]}}`}},
	{"change-during-list", map[string]string{listed: `before {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}},
	{"duplicate-names", map[string]string{listed: `*{"name":"add"},{"name":"echo",*`}},
	{"long-names length=8", map[string]string{listed: `*"name":"echo____"*"name":"add_____"*`}},
	{"bad-schema", map[string]string{listed: `*"inputSchema":{"type":["object","nonsense"]*`}},
	{"rug-pull text=evil", map[string]string{listed: `*"name":"echo","description":"evil"*`}},
	{"era-flip", map[string]string{initialized: `*"error":{"code":-32601*`, discovered: `*"id":"d","error":{"code":-32601*`}},
	{"wrong-version", map[string]string{initialized: `*"protocolVersion":"1999-12-31"*`, discovered: `*"supportedVersions":["1999-12-31"]*`}},
	{"modern-breach", map[string]string{discovered: `{"jsonrpc":"2.0","id":"d","result":{"supportedVersions":["2026-07-28"]}}`}},
	{"throttle when=call after=90s", map[string]string{call: "status 429 map[Retry-After:90]"}},
	{"unauthorized on=tools/list", map[string]string{list: `status 401 map[Www-Authenticate:Bearer error="invalid_token"]`}},
	{"forbidden", map[string]string{call: `status 403 map[Www-Authenticate:Bearer error="insufficient_scope", scope="mcp:write"]`}},
	{"redirect on=tools/call to=http://x/", map[string]string{call: "status 307 map[Location:http://x/]"}},
	{"server-error on=tools/call status=502", map[string]string{call: "status 502 map[]"}},
	{"wrong-content-type on=tools/call", map[string]string{call: "as text/html"}},
	{"lose-session on=tools/call", map[string]string{call: "end {Code:0 Signal: Reset:false Session:true} last false"}},
}

func TestFates(t *testing.T) {
	for _, c := range fates {
		t.Run(c.rule, func(t *testing.T) {
			flow, _ := flowOf(t, c.rule)
			gone := map[string]bool{}
			for _, m := range []struct {
				toServer bool
				body     string
				after    string // the request that it answers
			}{
				{true, initialize, ""}, {false, initialized, initialize}, {true, discover, ""}, {false, discovered, discover},
				{true, list, ""}, {false, listed, list}, {true, call, ""}, {false, called, call}, {true, cancel, ""},
			} {
				if gone[m.after] {
					continue
				}
				pass := flow.ToClient
				if m.toServer {
					pass = flow.ToServer
				}
				fates := pass("", []byte(m.body))
				want := "passes"
				if w, ok := c.want[m.body]; ok {
					want = w
				}
				if got := tell(fates); !matches(want, got) {
					t.Errorf("%s\n\t got %s\n\twant %s", m.body, got, want)
				}
				for _, f := range fates {
					if len(f.Hits) == 0 && len(f.Late) == 0 {
						t.Errorf("%s: nothing was told of it", m.body)
					}
					if f.Drop || f.Refuse != nil || f.End != nil {
						gone[m.body] = true
					}
				}
			}
		})
	}
}

// matches compares with a pattern in which * is anything.
func matches(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) || !strings.HasSuffix(s, parts[len(parts)-1]) {
		return false
	}
	for _, p := range parts[:len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}

// TestEveryFaultIsTried: a fault of the catalogue that no test names is one that nobody knows to work.
func TestEveryFaultIsTried(t *testing.T) {
	tried := map[string]bool{
		"grandchild": true, "sleep": true, // cannot be done, and say so
		// In TestProgress, and as states that the proxy acts on, in its own tests.
		"endless-progress": true, "ignore-eof": true, "ignore-term": true, "stale-session-400": true, "silent-delete": true,
		// In TestDial.
		"refuse": true, "missing-binary": true, "exhausted": true, "partition": true,
	}
	for _, c := range fates {
		name, _, _ := strings.Cut(c.rule, " ")
		tried[name] = true
	}
	for _, c := range clocks {
		name, _, _ := strings.Cut(c.rule, " ")
		tried[name] = true
	}
	for _, k := range fault.Kinds() {
		if !tried[k.Name] {
			t.Errorf("%s is tried nowhere", k.Name)
		}
		if k.Does == "" || k.Where != fault.Program|fault.Stdio|fault.HTTP && k.Why == "" {
			t.Errorf("%s does not say what it does, or why not", k.Name)
		}
		if k.Where == 0 {
			if _, err := fault.Parse(k.Name); err == nil || !strings.Contains(err.Error(), k.Why) {
				t.Errorf("%s is refused with %v", k.Name, err)
			}
		}
	}
}

func TestPagesAfterTheLast(t *testing.T) {
	const again = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":%q}}`
	const page = `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo"}]}}`
	flow, _ := flowOf(t, "cursor-loop")
	if got := tell(flow.ToServer("", fmt.Appendf(nil, again, "chaos-once-more"))); got != `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}` {
		t.Errorf("the server is asked %s", got)
	}
	flow, _ = flowOf(t, "empty-cursor")
	if got := tell(flow.ToServer("", fmt.Appendf(nil, again, ""))); got != `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}` {
		t.Errorf("the server is asked %s", got)
	}
	if got := tell(flow.ToClient("", []byte(page))); got != `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}` {
		t.Errorf("the page after the last one is %s", got)
	}
}

func TestLongNamesCanBeCalled(t *testing.T) {
	flow, _ := flowOf(t, "long-names length=8")
	flow.ToServer("", []byte(list))
	flow.ToClient("", []byte(listed))
	got := tell(flow.ToServer("", []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo____","arguments":{"a":1.0}}}`)))
	if got != `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1.0}}}` {
		t.Errorf("the server is asked %s", got)
	}
}

func TestBatchesAreTakenApart(t *testing.T) {
	flow, _ := flowOf(t, "black-hole on=tools/call")
	got := tell(flow.ToServer("", []byte("["+list+" , "+call+"]")))
	if want := "[" + list + "]; dropped"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := tell(flow.ToServer("", []byte(" [ "+list+" , "+initialize+"] "))); got != "passes" {
		t.Errorf("a batch that is not hit: %s", got)
	}
}

// TestWhatIsNoMessagePasses: nothing that cannot be understood is touched.
func TestWhatIsNoMessagePasses(t *testing.T) {
	flow, _ := flowOf(t, "black-hole", "latency by=1s", "era-flip", "modern-breach")
	for _, s := range []string{"", " ", "{", "nonsense", "[", "[]", "[1,2]", "null", "7", `"x"`, "\xff\xfe", `{"id":null,"result":1}`, `{"params":{}}`} {
		for _, pass := range []func(string, []byte) []fault.Fate{flow.ToServer, flow.ToClient} {
			if got := tell(pass("", []byte(s))); got != "passes" {
				t.Errorf("%q: %s", s, got)
			}
		}
	}
}

// TestTheSameSeedBreaksTheSame compares which of 200 calls are hit, with other traffic in between and without it.
func TestTheSameSeedBreaksTheSame(t *testing.T) {
	run := func(seed uint64, disturbed bool) (hit []int) {
		control, err := fault.New(seed, fault.Rule{Fault: "hang-call", Chance: 0.3})
		if err != nil {
			t.Fatal(err)
		}
		flow := control.Flow()
		for i := range 200 {
			flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}`, i))
			if disturbed {
				flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"x%d","method":"tools/call","params":{"name":"other"}}`, i))
			}
			if f := flow.ToClient("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i)); f != nil {
				hit = append(hit, i)
			}
		}
		return hit
	}
	one := run(7, false)
	if !slices.Equal(one, run(7, false)) || !slices.Equal(one, run(7, true)) {
		t.Error("the same seed breaks different calls")
	}
	if slices.Equal(one, run(8, false)) {
		t.Error("another seed breaks the same calls")
	}
	if len(one) < 30 || len(one) > 90 {
		t.Errorf("%d of 200 were hit with a chance of 0.3", len(one))
	}
}

func TestHowOftenAndWhen(t *testing.T) {
	ask := func(flow *fault.Flow, n int) (hit []int) {
		for i := 1; i <= n; i++ {
			flow.ToServer("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, i))
			if flow.ToClient("", fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result":{}}`, i)) != nil {
				hit = append(hit, i)
			}
		}
		return hit
	}
	flow, _ := flowOf(t, "hang-call nth=3 times=2")
	if got := ask(flow, 20); !slices.Equal(got, []int{3, 6}) {
		t.Errorf("every third, at most twice: %v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		flow, control := flowOf(t, "hang-call at=10s for=5s every=1m")
		for _, w := range []struct {
			sleep time.Duration
			hits  int
		}{{0, 0}, {9 * time.Second, 0}, {time.Second, 1}, {4 * time.Second, 1}, {time.Second, 0}, {55 * time.Second, 1}, {5 * time.Second, 0}} {
			time.Sleep(w.sleep)
			if got := len(ask(flow, 1)); got != w.hits {
				t.Errorf("after %v more: %d hits, want %d", w.sleep, got, w.hits)
			}
		}
		if s := control.List(); len(s) != 1 || s[0].Done != 3 || s[0].Active {
			t.Errorf("the list says %+v", s)
		}
	})
}

// TestRemovingHealsWhatWaits: the answer to a request that was hit passes if the rule is gone by then.
func TestRemovingHealsWhatWaits(t *testing.T) {
	flow, control := flowOf(t, "hang-call")
	flow.ToServer("", []byte(call))
	if err := control.Remove("r1"); err != nil {
		t.Fatal(err)
	}
	if got := tell(flow.ToClient("", []byte(called))); got != "passes" {
		t.Errorf("the answer: %s", got)
	}
}

// clocks are what each fault does by the time, in a minute.
var clocks = []struct {
	rule string
	want string
}{
	{"crash at=5s code=4", "5s end {Code:4 Signal: Reset:false Session:false}"},
	{"crash at=5s every=20s", "5s end*25s end*45s end*"},
	{"crash-loop after=25s", "25s end*50s end*"},
	{"noise rate=0.05 line=hello", "0s noise hello, 20s noise hello, 40s noise hello, 1m0s noise hello"},
	{"noise rate=1 at=10s for=2s line=x", "10s noise x, 11s noise x"},
	{"list-storm rate=0.1 for=15s", "0s deliver*list_changed*10s deliver*list_changed*"},
	{"list-changed at=10s for=10s", "10s deliver*list_changed*20s deliver*list_changed*"},
	{"stderr-flood bytes=10", "0s stderr chaos: a l"},
	{"stop at=1s for=3s", "1s stop, 4s continue"},
	{"half-open at=7s", "7s half-open"},
	{"cut-stream every=25s", "25s cut, 50s cut"},
	{"rotate-token at=3s", "3s forget-token"},
	{"lose-session at=3s", "3s forget-session"},
	{"lose-session at=3s on=tools/call", ""},
	{"reset at=9s", "9s end {Code:0 Signal: Reset:true Session:false}"},
	{"endless-line rate=10 for=150ms", `0s raw {"jsonrpc"*100ms raw t, 150ms raw "}}*`},
}

// TestTheClock runs what happens by the time through virtual hours.
func TestTheClock(t *testing.T) {
	for _, c := range clocks {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				flow, _ := flowOf(t, c.rule)
				begin := time.Now()
				var got []string
				for time.Since(begin) <= time.Minute {
					events, wake := flow.Tick()
					for _, e := range events {
						line := fmt.Sprintf("%v %s", time.Since(begin), e.Do)
						if e.Body != nil {
							line += " " + string(bytes.TrimSpace(e.Body))
						}
						if e.End != nil {
							line += fmt.Sprintf(" %+v", *e.End)
						}
						got = append(got, line)
					}
					if wake.IsZero() {
						break
					}
					time.Sleep(time.Until(wake))
				}
				if s := strings.Join(got, ", "); !matches(c.want, s) {
					t.Errorf("got %s\nwant %s", s, c.want)
				}
			})
		})
	}
}

// TestAnInstantHappensOnceToAServer: not again to its next connection.
func TestAnInstantHappensOnceToAServer(t *testing.T) {
	_, control := flowOf(t, "crash")
	count := func(c *fault.Control) int { events, _ := c.Flow().Tick(); return len(events) }
	if a, again, b := count(control.Named("a")), count(control.Named("a")), count(control.Named("b")); a != 1 || again != 0 || b != 1 {
		t.Errorf("a: %d, a again: %d, b: %d", a, again, b)
	}
}

func TestProgressWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flow, control := flowOf(t, "endless-progress each=1s")
		flow.ToServer("", []byte(call))
		if got := tell(flow.ToClient("", []byte(called))); got != "dropped" {
			t.Errorf("the answer: %s", got)
		}
		for i := 1; i <= 3; i++ {
			time.Sleep(time.Second)
			events, _ := flow.Tick()
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%d}}`, i)
			if len(events) != 1 || string(events[0].Body) != want {
				t.Fatalf("after %d s: %+v", i, events)
			}
		}
		flow.ToServer("", []byte(cancel))
		time.Sleep(5 * time.Second)
		if events, _ := flow.Tick(); len(events) != 0 {
			t.Errorf("after the cancellation: %d reports", len(events))
		}
		flow.ToServer("", []byte(call))
		control.Clear()
		time.Sleep(time.Minute)
		if events, wake := flow.Tick(); len(events) != 0 || !wake.IsZero() {
			t.Errorf("without the rule: %d reports", len(events))
		}
	})
}

// FuzzFlow: whatever either side sends, a flow neither panics nor makes JSON of what is none.
func FuzzFlow(f *testing.F) {
	for _, s := range []string{initialize, initialized, discover, discovered, list, listed, call, called, cancel, "[" + list + "," + call + "]", "[", "{}"} {
		f.Add([]byte(s), []byte(called))
	}
	var rules []fault.Rule
	for _, k := range fault.Kinds() {
		if k.Where != 0 && !slices.Contains([]string{"black-hole", "partition", "big-result", "stderr-flood", "hang-call"}, k.Name) {
			rules = append(rules, fault.Rule{Fault: k.Name, On: "*", Chance: 0.5})
		}
	}
	f.Fuzz(func(t *testing.T, out, in []byte) {
		control, err := fault.New(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := control.At(0).Set(rules); err != nil {
			t.Fatal(err)
		}
		flow := control.Flow()
		for range 2 {
			for _, fates := range [][]fault.Fate{flow.ToServer("", out), flow.ToClient("", in)} {
				for _, fate := range fates {
					if fate.Changed && !json.Valid(fate.Body) {
						t.Fatalf("no JSON: %q", fate.Body)
					}
				}
			}
		}
		flow.Tick()
	})
}
