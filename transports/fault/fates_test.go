package fault_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// fates lists the dispositions that each fault gives to the messages of a conversation. Messages that are not named
// must pass.
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
	{"late-response", map[string]string{called: "dropped", cancel: "late " + called + "; after 50ms"}},
	{"ignore-cancel", map[string]string{cancel: "dropped"}},
	{"black-hole on=tools/*", map[string]string{list: "dropped", call: "dropped"}},
	{"deaf on=tools/list", map[string]string{list: "blocked by r1"}},
	{"slow rate=2k on=tools/call", map[string]string{called: "102 bytes every 50ms"}},
	{"slow-drip on=tools/call chunk=3 every=1s", map[string]string{called: "3 bytes every 1s"}},
	{"crash on=tools/list code=9", map[string]string{list: "end {Code:9 Signal: Reset:false Session:false} last false"}},
	{"exit-after-list code=0", map[string]string{listed: "end {Code:0 Signal: Reset:false Session:false} last true"}},
	{"die-on-discover signal=SEGV", map[string]string{discover: "end {Code:1 Signal:SEGV Reset:false Session:false} last false"}},
	{"die-mid-call", map[string]string{called: "dropped; end {Code:1 Signal: Reset:false Session:false} last false"}},
	{"answer-and-die", map[string]string{called: "end {Code:0 Signal: Reset:false Session:false} last true"}},
	{"reset on=tools/call direction=client", map[string]string{
		called: "dropped; end {Code:0 Signal: Reset:true Session:false} last false"}},
	{"huge-line size=20m", map[string]string{called: "grows to 20971520"}},
	{"half-line then=exit", map[string]string{called: "37 bytes; end {Code:1 Signal: Reset:false Session:false} last true"}},
	{"half-line", map[string]string{called: "37 bytes; and nothing more"}},
	{"half-line then=next", map[string]string{called: "37 bytes"}},
	{"drop on=tools/list", map[string]string{listed: "dropped"}},
	{"drop on=tools/list direction=server", map[string]string{list: "dropped"}},
	{"cut", map[string]string{called: "37 bytes; end {Code:0 Signal: Reset:true Session:false} last true"}},
	{"close on=tools/list", map[string]string{list: "end {Code:0 Signal: Reset:false Session:false} last false"}},
	{"close on=tools/call direction=client", map[string]string{called: "dropped; end {Code:0 Signal: Reset:false Session:false} last false"}},
	{"partition on=tools/call", map[string]string{call: "blocked by r1", called: "blocked by r1"}},
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
	{"cursor-loop on=tools/list what=endless", map[string]string{listed: `*"nextCursor":"chaos-once-more-*"}}`}},
	{"cursor-loop on=tools/list", map[string]string{listed: `*"nextCursor":"chaos-once-more"}}`}},
	{"empty-cursor on=tools/list", map[string]string{listed: `*"nextCursor":""}}`}},
	{"empty-cursor on=tools/list what=second", nil},
	{"list-error code=-32000", map[string]string{listed: `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"chaos: the list cannot be read"}}`}},
	{"quiet-change", map[string]string{
		listed: `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","description":"e","inputSchema":{}, "x":1.0}]}}`}},
	{"quiet-change which=echo", map[string]string{listed: `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add"}]}}`}},
	{"change-during-list", map[string]string{listed: `before {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}},
	{"duplicate-names", map[string]string{listed: `*{"name":"add"},{"name":"echo","description":"the same name, another tool",*`}},
	{"duplicate-names what=alike", map[string]string{listed: `*{"name":"add"},{"name":"echo.too",*{"name":"echo_too",*`}},
	{"long-names length=8", map[string]string{listed: `*"name":"echo____"*"name":"add_____"*`}},
	{"bad-schema", map[string]string{listed: `*"inputSchema":{"type":["object","nonsense"]*`}},
	{"rug-pull text=evil", map[string]string{listed: `*"name":"echo","description":"evil"*`}},
	{"era-flip", map[string]string{initialized: `*"error":{"code":-32601*`, discovered: `*"id":"d","error":{"code":-32601*`}},
	{"wrong-version", map[string]string{initialized: `*"protocolVersion":"1999-01-01"*`, discovered: `*"supportedVersions":["1999-01-01"]*`}},
	{"modern-breach", map[string]string{discovered: `{"jsonrpc":"2.0","id":"d","result":{"supportedVersions":["2026-07-28"]}}`}},
	{"throttle", map[string]string{initialize: "status 429 map[Retry-After:5]", discover: "status 429 map[Retry-After:5]"}},
	{"throttle when=call after=90s", map[string]string{call: "status 429 map[Retry-After:90]"}},
	{"unauthorized on=tools/list", map[string]string{list: `status 401 map[Www-Authenticate:Bearer error="invalid_token", scope="tools"]`}},
	{"forbidden", map[string]string{call: `status 403 map[Www-Authenticate:Bearer error="insufficient_scope", scope="tools:write"]`}},
	{"redirect on=tools/call to=http://x/", map[string]string{call: "status 307 map[Location:http://x/]"}},
	{"server-error on=tools/call status=502", map[string]string{call: "status 502 map[]"}},
	{"wrong-content-type on=tools/call", map[string]string{call: "as text/html"}},
	{"lose-session on=tools/call", map[string]string{call: "end {Code:0 Signal: Reset:false Session:true} last false"}},
}

func TestFates(t *testing.T) {
	for _, c := range fates {
		t.Run(c.rule, func(t *testing.T) {
			flow, _ := flowOf(t, c.rule)
			sent := map[string]bool{}
			for _, m := range []struct {
				toServer bool
				body     string
				after    string // the request that it answers
			}{
				{true, initialize, ""}, {false, initialized, initialize}, {true, discover, ""}, {false, discovered, discover},
				{true, list, ""}, {false, listed, list}, {true, call, ""}, {false, called, call}, {true, cancel, ""},
			} {
				if sent[m.after] {
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
						sent[m.body] = true
					}
				}
			}
		})
	}
}

// matches compares s with a pattern in which * is any text.
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

// TestEveryFaultIsTried: every fault of the catalogue is named by a test.
func TestEveryFaultIsTried(t *testing.T) {
	tried := map[string]bool{
		// In TestProgressWithoutAnEnd, and as states that the proxy acts on, in its own tests.
		"endless-progress": true, "ignore-eof": true, "ignore-term": true, "stale-session-400": true, "silent-delete": true,
		// In TestDial.
		"refuse": true, "missing-binary": true, "exhausted": true,
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
		can := k.ProblemAt(0) == ""
		if can != tried[k.Name] {
			t.Errorf("%s can be done by a rule: %v, is tried: %v", k.Name, can, tried[k.Name])
		}
		if !can {
			if _, err := fault.Parse(k.Name); err == nil || !strings.Contains(err.Error(), k.Why) {
				t.Errorf("%s is refused with %v", k.Name, err)
			}
		}
	}
}
