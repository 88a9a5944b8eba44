package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A run of two servers: what goroutines of one instant record in any order stands in one order in the file.
func Example() {
	r := history.NewRecorder(scenario.Plan{Seed: 7}, nil)
	second := func(e history.Event) { e.T = time.Second; r.Add(e) }
	second(history.Event{Server: "b", Side: history.Caller, Kind: history.End, Call: "c2", Outcome: messages.OutcomeResult})
	second(history.Event{Server: "b", Side: history.World, Kind: history.Executed, Conn: 1, Tool: "read", Call: "c2"})
	second(history.Event{Server: "a", Side: history.World, Kind: history.Open, Conn: 1})
	second(history.Event{Server: "b", Side: history.World, Kind: history.Received, Conn: 1, Method: "tools/call", Call: "c2"})
	for _, e := range r.History().Canonical() {
		fmt.Println(e.Server, e.Seq, e.Kind)
	}
	// Output:
	// a 1 open
	// b 1 received
	// b 2 executed
	// b 3 end
}

func TestTheRecorderIsSafeForConcurrentUse(t *testing.T) {
	const writers, each = 8, 3000
	var clock time.Duration // only read and written under the recorder's lock
	r := history.NewRecorder(scenario.Plan{}, func() time.Duration { clock++; return clock })
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r.Add(history.Event{Server: fmt.Sprint(w), Side: history.World, Kind: history.Open, Conn: i + 1})
				if i == each/2 {
					_ = r.History()
				}
			}
		})
	}
	wg.Wait()
	h := r.History()
	if len(h.Events) != writers*each || r.Len() != writers*each {
		t.Fatalf("%d events of %d", len(h.Events), writers*each)
	}
	next := map[string]int{}
	for i, e := range h.Events {
		if e.Order != i+1 || e.T != time.Duration(i+1) {
			t.Fatalf("event %d has order %d and time %d", i, e.Order, e.T)
		}
		if next[e.Server]++; e.Conn != next[e.Server] {
			t.Fatalf("an event of server %s was lost or overtaken", e.Server)
		}
	}
}

func TestAHistoryIsNotDisturbedByWhatIsRecordedLater(t *testing.T) {
	r := history.NewRecorder(scenario.Plan{}, nil)
	add := func(n int) {
		r.Add(history.Event{T: time.Duration(n), Side: history.World, Kind: history.Open, Conn: n})
	}
	add(1)
	early := r.History()
	add(2)
	late := r.History()
	add(3)
	if len(early.Events) != 1 || len(late.Events) != 2 || len(r.History().Events) != 3 || late.Events[0].Conn != 1 {
		t.Errorf("%d, then %d, then %d events", len(early.Events), len(late.Events), len(r.History().Events))
	}
}

// randomHistory is a random history of few words, so that many events share an instant.
func randomHistory(seed uint64, n int) []history.Event {
	r := rand.New(rand.NewPCG(seed, 1))
	kinds := []struct {
		side history.Side
		kind history.Kind
	}{
		{history.World, history.Open}, {history.World, history.Received}, {history.World, history.Down},
		{history.Caller, history.Call}, {history.Caller, history.End}, {history.Harness, history.FaultOn},
		{history.Harness, history.Fired}, {history.Owner, history.Command}, {history.Owner, history.Done},
	}
	out := make([]history.Event, 0, n)
	for i := range n {
		k := kinds[r.IntN(len(kinds))]
		e := history.Event{
			T: time.Duration(r.IntN(5)), Server: fmt.Sprint("s", r.IntN(3)), Side: k.side, Kind: k.kind,
			ID: fmt.Sprint(i), Call: fmt.Sprint("c", r.IntN(20)),
		}
		switch k.side {
		case history.World:
			e.Conn = 1 + r.IntN(3)
		case history.Owner:
			e.Command = i + 1
		case history.Harness:
			e.Fault = i + 1
		default:
		}
		out = append(out, e)
	}
	return out
}

func writtenText(t *testing.T, h *history.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheOrderOfRecordingIsNotSeen(t *testing.T) {
	for seed := range uint64(50) {
		events := randomHistory(seed, 200)
		want := writtenText(t, &history.History{Events: events})
		r := history.NewRecorder(scenario.Plan{}, nil)
		for _, i := range rand.New(rand.NewPCG(seed, 2)).Perm(len(events)) {
			r.Add(events[i])
		}
		if got := writtenText(t, r.History()); got != want {
			t.Fatalf("seed %d: the same events in another order give another file", seed)
		}
	}
}

// The same phase may be left and entered again within one instant: sorted by their words, the three would be two.
func TestWhatTheManagerSaysKeepsItsOrder(t *testing.T) {
	h := &history.History{}
	for _, p := range []messages.Phase{messages.Pending, messages.Connected, messages.Disabled, messages.Connected} {
		h.Events = append(h.Events, history.Event{Server: "a", Side: history.Manager, Kind: history.Phase, Phase: p, Order: len(h.Events)})
	}
	var got []string
	for _, e := range h.Canonical() {
		got = append(got, string(e.Phase))
	}
	if s := strings.Join(got, " "); s != "pending connected disabled connected" {
		t.Error(s)
	}
}

// Another goroutine publishes the updates of resources than all else of a server, so that chance would order the two in one instant.
func TestUpdatesOfResourcesHaveOnePlace(t *testing.T) {
	listing := history.Event{Side: history.Manager, Kind: history.ListTold, Server: "s", Method: "prompts"}
	updated := history.Event{Side: history.Manager, Kind: history.Updated, Server: "s", About: "chaos://s/one"}
	for _, events := range [][]history.Event{{listing, updated}, {updated, listing}} {
		for i := range events {
			events[i].Order = i + 1
		}
		h := &history.History{Events: events}
		if got := h.Canonical(); got[0].Kind != history.ListTold || got[1].Kind != history.Updated {
			t.Errorf("%+v", got)
		}
	}
}

func TestCausesStandBeforeEffects(t *testing.T) {
	want := []history.Kind{
		history.Command, history.FaultOn, history.Call, history.Open, history.Received, history.Executed, history.Answered,
		history.Down, history.Fired, history.Phase, history.End, history.Done,
	}
	side := map[history.Kind]history.Side{
		history.Command: history.Owner, history.Done: history.Owner, history.FaultOn: history.Harness, history.Fired: history.Harness,
		history.Call: history.Caller, history.End: history.Caller, history.Phase: history.Manager,
	}
	h := &history.History{}
	for i := range want {
		k := want[len(want)-1-i]
		e := history.Event{Server: "a", Side: side[k], Kind: k, Order: i}
		if e.Side == "" {
			e.Side, e.Conn = history.World, 1
		}
		h.Events = append(h.Events, e)
	}
	var got []history.Kind
	for _, e := range h.Canonical() {
		got = append(got, e.Kind)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// An agent reads the streams of its requests at once, so two notices or answers of one instant come in either order. What came in one stream, and
// what else the agent gets in that instant, stays where it is.
func TestNoticesOfSeveralStreamsHaveOneOrder(t *testing.T) {
	event := func(kind history.Kind, id string) history.Event {
		return history.Event{T: 5, Side: history.Agent, Agent: "agent-1", Kind: kind, ID: id}
	}
	progress, answer := event(history.Noticed, ""), event(history.Replied, "7")
	first, second, third := event(history.Noticed, "1"), event(history.Noticed, "3"), event(history.Noticed, "10")
	third.Method = "again"
	end, updated := event(history.Replied, "3"), event(history.Noticed, "")
	progress.Method, updated.Method = "notifications/progress", "notifications/resources/updated"
	var want []history.Event
	for _, events := range [][]history.Event{
		{progress, answer, first, updated, second, end, third}, {progress, updated, third, first, second, end, answer}, {progress, second, answer, third, end, first, updated},
	} {
		h := &history.History{}
		for i, e := range events {
			e.Order = i + 1
			h.Events = append(h.Events, e)
		}
		got := h.Canonical()
		for i := range got {
			got[i].Order = 0
		}
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) || got[0].Method != progress.Method || got[4].Kind != history.Replied {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

// In one instant the last fault ends before all have ended, whatever was recorded first.
func TestTheHealComesAfterTheLastFault(t *testing.T) {
	off := history.Event{Side: history.Harness, Kind: history.FaultOff, Fault: 1, Name: "sleep"}
	heal := history.Event{Side: history.Harness, Kind: history.Heal, Order: 1}
	closing := history.Event{Side: history.Harness, Kind: history.Closing, Order: 2}
	h := &history.History{Events: []history.Event{heal, closing, off}}
	var kinds []history.Kind
	for _, e := range h.Canonical() {
		kinds = append(kinds, e.Kind)
	}
	if want := []history.Kind{history.FaultOff, history.Heal, history.Closing}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	h := &history.History{
		Plan: scenario.Plan{Seed: 42, Tier: scenario.Sim, Servers: []scenario.Server{{Name: "s0", Kind: messages.Stdio}}},
		Events: append(randomHistory(3, 100), history.Event{
			T: 9, Server: "s0", Side: history.Harness, Kind: history.Resources, House: &history.ResourceUsage{Goroutines: 3, Left: []string{"a"}},
		}, history.Event{
			T: 9, Side: history.Manager, Kind: history.Snapshot, Generation: 3,
			Entries: []history.Entries{{Server: "s0", State: "live", Epoch: 4, Count: 3, Hash: "x<y"}},
		}),
	}
	first := writtenText(t, h)
	back, err := history.Read(strings.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if second := writtenText(t, back); second != first {
		t.Errorf("written, read and written again it differs")
	}
	if !reflect.DeepEqual(back.Plan, h.Plan) {
		t.Errorf("plan %+v", back.Plan)
	}
	for i, e := range back.Events {
		if e.Order != i+1 {
			t.Fatalf("event %d has order %d", i, e.Order)
		}
	}
	want := h.Canonical()
	for i := range want {
		want[i].Order = i + 1
	}
	if !reflect.DeepEqual(back.Events, want) {
		t.Error("the events differ")
	}
}

func TestReadSaysWhereItIsWrong(t *testing.T) {
	good := `{"plan":{"seed":1}}` + "\n" + `{"t":5,"side":"world","kind":"open","conn":1}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1: the history is empty"},
		{"no plan", `{"t":5,"side":"world","kind":"open"}`, `line 1 is not the plan of a history: it has no member "plan"`},
		{"a newer form", `{"version":2,"plan":[]}` + "\n{}", "the history was written by a newer mcpvisor (format 2; this one reads up to 1)"},
		{"no JSON at the begin", "hello\n", "line 1 is not the plan"},
		{"no JSON later", good + "hello\n", "line 3 is not an event"},
		{"a line cut short", good + `{"t":5,"side":"wor`, "line 3 is not an event"},
		{"another object", good + `{"t":5}` + "\n", "line 3 is not an event: it says neither"},
		{"a wrong type", good + `{"t":"soon","side":"world","kind":"open"}` + "\n", "line 3 is not an event"},
	} {
		_, err := history.Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if h, err := history.Read(strings.NewReader(good + "\n\n")); err != nil || len(h.Events) != 1 {
		t.Errorf("blank lines at the end: %v", err)
	}
	long := good + `{"t":6,"side":"harness","kind":"canary","text":"` + strings.Repeat("x", 1<<20) + `"}`
	if h, err := history.Read(strings.NewReader(long)); err != nil || len(h.Events[1].Text) != 1<<20 {
		t.Errorf("a long line without an end: %v", err)
	}
}

type brokenWriter struct{ after int }

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.after -= len(p); b.after < 0 {
		return 0, fmt.Errorf("the disk is full")
	}
	return len(p), nil
}

func TestWriteTellsOfADiskThatIsFull(t *testing.T) {
	for _, after := range []int{0, 70_000} {
		if err := (&history.History{Events: randomHistory(1, 3000)}).Write(&brokenWriter{after}); err == nil {
			t.Errorf("after %d bytes: no error", after)
		}
	}
}

func TestIndex(t *testing.T) {
	h := &history.History{Events: []history.Event{
		{T: 1, Server: "b", Side: history.World, Kind: history.Open, Conn: 1},
		{T: 2, Server: "b", Side: history.World, Kind: history.Opened, Conn: 1},
		{T: 3, Server: "b", Side: history.Caller, Kind: history.Call, Call: "c1"},
		{T: 3, Server: "b", Side: history.World, Kind: history.Executed, Conn: 1, Call: "c1"},
		{T: 4, Server: "b", Side: history.Caller, Kind: history.End, Call: "c1"},
		{T: 5, Server: "b", Side: history.World, Kind: history.Down, Conn: 1},
		{T: 6, Server: "b", Side: history.World, Kind: history.Down, Conn: 1},
		{T: 7, Server: "b", Side: history.World, Kind: history.Open, Conn: 2},
		{T: 8, Server: "a", Side: history.World, Kind: history.Open, Conn: 1},
		{T: 8, Side: history.Manager, Kind: history.Snapshot, Generation: 1},
	}}
	x := h.Index()
	if got := fmt.Sprint(x.Servers(), x.ServerEvents("a"), x.ServerEvents(""), len(x.Order())); got != "[a b] [8] [9] 10" {
		t.Error(got)
	}
	c := x.Call("c1")
	if c == nil || c.Begin != 2 || len(c.Ends) != 1 || c.Ends[0] != 4 || len(c.Executed) != 1 || len(x.Calls()) != 1 {
		t.Errorf("call %+v", c)
	}
	conns := x.Conns("b")
	if len(conns) != 2 || conns[0].Open != 0 || conns[0].Opened != 1 || conns[0].Down != 5 || conns[0].Released != -1 || conns[1].Open != 7 {
		t.Errorf("connections %+v", conns)
	}
	if at, ok := x.Time(conns[0].Down); !ok || at != 5 {
		t.Error("the time of an event")
	}
	if _, ok := x.Time(-1); ok {
		t.Error("what did not happen has no time")
	}
	if x.Call("c2") != nil || x.Event(0).Conn != 1 {
		t.Error("lookup")
	}
	if h.Index() != x {
		t.Error("the index is made once")
	}
	h.Events = append(h.Events, history.Event{T: 9, Server: "c", Side: history.World, Kind: history.Open, Conn: 1})
	if got := h.Index().Servers(); len(got) != 3 {
		t.Error("the index is made again when events were added")
	}
}

func TestHashTools(t *testing.T) {
	raw := func(name, json string) messages.Tool { return messages.Tool{Name: name, Raw: []byte(json)} }
	a, b := raw("a", `{"name":"a","inputSchema":{}}`), raw("b", `{"name":"b"}`)
	same := [][]messages.Tool{
		{a, b}, {b, a}, {raw("a", "{\n\"name\": \"a\", \"inputSchema\": {}}"), b}, {a, b, raw("b", `{"name":"b","title":"second"}`)},
	}
	for i, list := range same {
		if history.HashTools(list) != history.HashTools(same[0]) {
			t.Errorf("list %d is the same as the first", i)
		}
	}
	seen := map[string]int{}
	for i, list := range [][]messages.Tool{
		nil, {a}, {b}, {a, b}, {raw("a", `{"name":"a","description":"x","inputSchema":{}}`)}, {{Name: "a"}},
		{{Name: "a", Description: "x"}}, {{Name: "a", InputSchema: []byte("{broken")}}, {raw("a", `{broken`)},
	} {
		if before, ok := seen[history.HashTools(list)]; ok {
			t.Errorf("lists %d and %d have one hash", before, i)
		}
		seen[history.HashTools(list)] = i
	}
	if history.HashTools([]messages.Tool{{Server: "x", Name: "a"}}) != history.HashTools([]messages.Tool{{Name: "a"}}) {
		t.Error("whose tool it is does not count")
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := history.NewRecorder(scenario.Plan{}, nil)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Add(history.Event{T: 1, Server: "s", Side: history.World, Kind: history.Received, Conn: 1})
		}
	})
}
