package fault_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

func TestParse(t *testing.T) {
	r, err := fault.Parse(` latency by=2s  jitter=0.5 on=tools/call,tools/list tool='a b*' chance=30% nth=2 times=3 at=1s for=2s every=1m name=slow `)
	if err != nil {
		t.Fatal(err)
	}
	if r.Fault != "latency" || r.With["by"] != "2s" || r.With["jitter"] != "0.5" || r.On != "tools/call,tools/list" || r.Tool != "a b*" ||
		r.Chance != 0.3 || r.Nth != 2 || r.Times != 3 || time.Duration(r.At) != time.Second || time.Duration(r.For) != 2*time.Second ||
		time.Duration(r.Every) != time.Minute || r.Name != "slow" {
		t.Errorf("%+v", r)
	}
	reparsed, err := fault.Parse(r.String())
	if err != nil || reparsed.String() != r.String() {
		t.Errorf("%q is read as %+v (%v)", r.String(), reparsed, err)
	}
	// "every" is the parameter of the fault here, not that of the schedule.
	if r, err = fault.Parse("cut-stream every=5s"); err != nil || r.With["every"] != "5s" || r.Every != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestParseErrors: an error names the fault of the text, its place, and what to do about it.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "at character 1: there is no fault",
		"latancy by=2s":                     `at character 1: there is no fault "latancy"; did you mean "latency"?`,
		"quux":                              "known are answer-and-die, ",
		"latency bye=2s":                    `at character 9: latency has no parameter "bye"; did you mean "by"?`,
		"latency  by=2":                     "at character 10: by=2 is no duration; write a number with its unit",
		"latency by":                        `at character 9: "by" is no key=value`,
		"latency by=1s by=2s":               "at character 15: by is given twice",
		"latency chance=2":                  "at character 9: chance=2: write a number above 0, at most 1",
		"latency nth=0":                     "at character 9: nth=0: write a whole number from 1 on",
		"latency on='x":                     "at character 12: the quote ' is not closed",
		"latency direction=up":              "at character 9: direction=up: write server or client",
		"tool-error direction=server":       "tool-error does nothing to what goes to the server",
		"latency for=2m every=1m":           "let for be shorter than every",
		"half-line then=never":              "then=never is unknown; write one of stall, next, exit",
		"huge-line size=1t":                 "size=1t is no size; write bytes",
		"huge-line size=2g":                 "at most 1GiB",
		"huge-line size=\u0130":             "is no size",
		"tool-error rpc=perhaps":            "rpc=perhaps is unknown; write yes or no",
		"half-line then=stal":               `then=stal is unknown; did you mean "stall"?`,
		"crash down=1s":                     `crash has no parameter "down" in a rule; known are code, signal, midcall, on, `,
		"crash signal=KIL":                  `signal=KIL is unknown; did you mean "KILL"?`,
		"throttle status=200":               "write a number from 300 to 599, such as 429",
		"stuck-dial":                        "stuck-dial cannot be done between a client and a server: who waits",
		"grandchild":                        "it would leave a process behind",
		"latency jitter=2":                  "jitter=2 is no jitter; write a duration",
		"throttle status=x":                 "status=x is no status; write a number from 300 to 599",
		"latency on=":                       "on=: it is empty",
		"late-response by=-1s":              "by=-1s is no duration",
		"modern-breach what=result":         "what=result is unknown",
		"latency at=never":                  `at=never: "never" is no duration`,
		"latency server=a tool=b on=c x=d=": `latency has no parameter "x"`,
	} {
		_, err := fault.Parse(text)
		var e *fault.RuleError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n\t got %v\n\twant %s", text, err, want)
		}
	}
}

func TestWhereAFaultCanBeDone(t *testing.T) {
	for text, want := range map[string]string{
		"stop":       "stop cannot be done inside of a program: only the process",
		"cut-stream": "cut-stream cannot be done inside of a program: there is no HTTP",
	} {
		r, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fault.New(1, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	r, _ := fault.Parse("throttle")
	if err := r.Check(fault.Stdio); err == nil || !strings.Contains(err.Error(), "over stdio: there is no HTTP") {
		t.Errorf("throttle over stdio: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"latency by=2s", "tool-error text='a b'", "x=y", `hang-call tool="é*" chance=0.5`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := fault.Parse(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(text, `"'`) {
			return // a value with both quotes cannot be written back
		}
		reparsed, err := fault.Parse(r.String())
		if err != nil || reparsed.String() != r.String() {
			t.Errorf("%q became %q, which is read as %q (%v)", text, r.String(), reparsed.String(), err)
		}
	})
}

func TestControl(t *testing.T) {
	c, err := fault.New(1)
	if err != nil || !c.Passive() {
		t.Fatalf("a new control: %v", err)
	}
	changed := c.Changed()
	name, err := c.Add(fault.Rule{Fault: "hang-call"})
	if err != nil || name != "r1" || c.Passive() {
		t.Fatalf("Add: %q, %v", name, err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody is told of the change")
	}
	if _, err := c.Add(fault.Rule{Fault: "hang-call", Name: "r1"}); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := c.Remove("r9"); err == nil || !strings.Contains(err.Error(), "known are r1") {
		t.Errorf("Remove of another name: %v", err)
	}
	// A list with a rule that cannot be used changes nothing; rules with an equal text keep their counts.
	if err := c.Set([]fault.Rule{{Fault: "latency"}, {Fault: "nonsense"}}); err == nil || len(c.List()) != 1 {
		t.Errorf("Set of nonsense: %v, %+v", err, c.List())
	}
	flow := c.Flow()
	flow.ToServer("", []byte(call))
	if err := c.Set([]fault.Rule{{Fault: "latency"}, {Fault: "hang-call"}}); err != nil {
		t.Fatal(err)
	}
	if l := c.List(); len(l) != 2 || l[1].Rule.Name != "r1" || l[1].Done != 1 || l[0].Done != 0 {
		t.Errorf("after Set: %+v", l)
	}
	var hits []fault.Hit
	c.Watch(func(h fault.Hit) { hits = append(hits, h) })
	flow.ToClient("", []byte(called))
	if len(hits) != 1 || hits[0].Fault != "hang-call" || hits[0].Rule != "r1" || hits[0].Tool != "echo" || hits[0].ID != "2" {
		t.Errorf("told: %+v", hits)
	}
	c.Clear()
	if !c.Passive() {
		t.Error("rules are left")
	}
	// A rule for one server does not match another.
	if _, err := c.Add(fault.Rule{Fault: "hang-call", Server: "git*"}); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]string{"github": "dropped", "files": "passes"} {
		flow := c.Named(server).Flow()
		flow.ToServer("", []byte(call))
		if got := tell(flow.ToClient("", []byte(called))); got != want {
			t.Errorf("%s: %s", server, got)
		}
	}
}
