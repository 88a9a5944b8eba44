package fault_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// The conversation of the tests: the client's messages, and the server's answers.
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

// flowOf returns a flow with rules, which are accepted for any location.
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

// tell writes dispositions as one line.
func tell(fates []fault.Disposition) string {
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
		add(f.Block != "", "blocked by %s", f.Block)
		add(f.Copies > 0, "%d copies", f.Copies)
		add(f.Torn, "%d bytes", f.Cut)
		add(f.Stall != "", "and nothing more")
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

func TestPagesAfterTheLast(t *testing.T) {
	const nextPage = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":%q}}`
	const page = `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"echo"}]}}`
	flow, _ := flowOf(t, "cursor-loop")
	if got := tell(flow.ToServer("", fmt.Appendf(nil, nextPage, "chaos-once-more"))); got != `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}` {
		t.Errorf("the server is asked %s", got)
	}
	flow, _ = flowOf(t, "empty-cursor")
	if got := tell(flow.ToServer("", fmt.Appendf(nil, nextPage, ""))); got != `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}` {
		t.Errorf("the server is asked %s", got)
	}
	if got := tell(flow.ToClient("", []byte(page))); got != `{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}` {
		t.Errorf("the page after the last one is %s", got)
	}
}

// TestTheSecondPageHasTheEmptyCursor: the first page names the next one by the empty text, and the server is asked by its own.
func TestTheSecondPageHasTheEmptyCursor(t *testing.T) {
	flow, _ := flowOf(t, "empty-cursor what=second")
	const first = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo"}],"nextCursor":%q}}`
	flow.ToServer("", []byte(list))
	if got := tell(flow.ToClient("", fmt.Appendf(nil, first, "p2"))); got != fmt.Sprintf(first, "") {
		t.Errorf("the first page is %s", got)
	}
	const ask = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":%q}}`
	if got := tell(flow.ToServer("", fmt.Appendf(nil, ask, ""))); got != fmt.Sprintf(ask, "p2") {
		t.Errorf("the server is asked %s", got)
	}
	if got := tell(flow.ToClient("", []byte(`{"jsonrpc":"2.0","id":3,"result":{"tools":[],"nextCursor":"p3"}}`))); got != "passes" {
		t.Errorf("the second page is %s", got)
	}
}

func TestAlikeNamesCanBeCalled(t *testing.T) {
	flow, _ := flowOf(t, "duplicate-names what=alike")
	flow.ToServer("", []byte(list))
	flow.ToClient("", []byte(listed))
	got := tell(flow.ToServer("", []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo.too"}}`)))
	if got != `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}` {
		t.Errorf("the server is asked %s", got)
	}
}

// TestLateInEitherOrder: a late answer comes after the cancellation, also if the server answered before it.
func TestLateInEitherOrder(t *testing.T) {
	flow, _ := flowOf(t, "late-response by=1s")
	flow.ToServer("", []byte(call))
	if got := tell(flow.ToServer("", []byte(cancel))); got != "passes" {
		t.Errorf("the cancellation: %s", got)
	}
	if got := tell(flow.ToClient("", []byte(called))); got != "after 1s" {
		t.Errorf("the answer that was still to come: %s", got)
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

// TestWhatIsNoMessagePasses: input that cannot be read as JSON-RPC passes unchanged.
func TestWhatIsNoMessagePasses(t *testing.T) {
	flow, _ := flowOf(t, "black-hole", "latency by=1s", "era-flip", "modern-breach")
	for _, s := range []string{"", " ", "{", "nonsense", "[", "[]", "[1,2]", "null", "7", `"x"`, "\xff\xfe", `{"id":null,"result":1}`, `{"params":{}}`} {
		for _, pass := range []func(string, []byte) []fault.Disposition{flow.ToServer, flow.ToClient} {
			if got := tell(pass("", []byte(s))); got != "passes" {
				t.Errorf("%q: %s", s, got)
			}
		}
	}
}

// FuzzFlow: with any bytes from either side, a flow neither panics nor turns broken input into JSON.
func FuzzFlow(f *testing.F) {
	for _, s := range []string{initialize, initialized, discover, discovered, list, listed, call, called, cancel, "[" + list + "," + call + "]", "[", "{}"} {
		f.Add([]byte(s), []byte(called))
	}
	var rules []fault.Rule
	for _, k := range fault.Kinds() {
		if k.ProblemAt(0) == "" && !slices.Contains([]string{"black-hole", "partition", "big-result", "stderr-flood", "hang-call"}, k.Name) {
			r := fault.Rule{Fault: k.Name, On: "*", Chance: 0.5}
			if r.Check(0) != nil { // it happens by the clock
				r = fault.Rule{Fault: k.Name}
			}
			rules = append(rules, r)
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
			for _, fates := range [][]fault.Disposition{flow.ToServer("", out), flow.ToClient("", in)} {
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
