package fault_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// TestAWordIsTheRuleOfItsText: a rule of typed words has a text, and the text is read as the same rule.
func TestAWordIsTheRuleOfItsText(t *testing.T) {
	for text, r := range map[string]fault.Rule{
		"drop":                                      fault.Drop(),
		"drop on=tools/call nth=3 times=1":          fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1)),
		"drop direction=server":                     fault.Drop(fault.On(fault.ToServer)),
		"latency by=1.5s tool=search chance=0.25":   fault.Delay(1500*time.Millisecond, fault.Tool("search"), fault.Chance(0.25)),
		"cut on=tools/list":                         fault.Cut(fault.On("tools/list")),
		"close on=tools/call direction=client":      fault.Close(fault.On("tools/call"), fault.On(fault.ToClient)),
		"duplicate-response at=1m0s for=2s":         fault.Duplicate(fault.After(time.Minute), fault.For(2*time.Second)),
		"hang-call tool=x":                          fault.Hang(fault.Tool("x")),
		"die-mid-call times=1":                      fault.Die(fault.Times(1)),
		`tool-error text="no luck" on=tools/call`:   fault.Fail("no luck", fault.On("tools/call")),
		"latency by=2s on=tools/* direction=server": fault.Delay(2*time.Second, fault.On("tools/*"), fault.On(fault.ToServer)),
	} {
		read, err := fault.Parse(text)
		if err != nil || !reflect.DeepEqual(read, r) {
			t.Errorf("%s is read as %+v (%v), and the words give %+v", text, read, err, r)
		}
		if r.String() != text {
			t.Errorf("the text is %q, want %q", r.String(), text)
		}
		if err := r.Check(fault.Program); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestANameThatPeopleTry: the answer names what does it in that place, and what that is.
func TestANameThatPeopleTry(t *testing.T) {
	for _, c := range []struct {
		name string
		at   fault.Location
		want string
	}{
		{"delay", fault.Program, "write latency (what the server says takes longer"},
		{"Disconnect", fault.Program, "write close (the server's side is closed"},
		{"disconnect", fault.Stdio, "write close ("},
		{"kill", fault.Program, "write crash ("},
		{"timeout", fault.HTTP, "write hang-call (calls run, and their answers never come)"},
		{"half-line", fault.HTTP, "there are no lines over HTTP; cut does it there; write cut ("},
		{"truncate", fault.Program, "cut does it everywhere; write cut ("},
		{"stop", fault.Program, "write deaf (the server stops reading and goes on writing; at the end it reads on)"},
		{"dealy", fault.Program, "write latency (what the server says takes longer"},
		{"timout", fault.Program, "write hang-call ("},
		{"dropp", fault.Program, `did you mean "drop"?`},
		{"cut-strea", fault.Stdio, "write close ("}, // cut-stream is none of the faults over stdio, and close does that there
	} {
		err := fault.Rule{Fault: c.name}.Check(c.at)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for _, name := range []string{"drop", "close", "half-line", "cut"} {
		if err := (fault.Rule{Fault: name}).Check(fault.Program); err != nil {
			t.Errorf("%s inside of a program: %v", name, err)
		}
	}
	if _, err := fault.Parse("delay by=2s"); err == nil || !strings.Contains(err.Error(), "at character 1") {
		t.Errorf("%v", err)
	}
	// The clock does not wait for a message: such a rule would never do anything.
	if _, err := fault.Parse("cut-stream on=tools/call nth=3"); err == nil || !strings.Contains(err.Error(), "leave on, tool") {
		t.Errorf("%v", err)
	}
}

// testRecorder is a test that notes what is said of it.
type testRecorder struct {
	said    []string
	cleanup []func()
}

func (r *testRecorder) Helper()                   {}
func (r *testRecorder) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }
func (r *testRecorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }
func (r *testRecorder) Fatalf(f string, a ...any) { r.Errorf(f, a...) }

// TestARuleThatNeverDidAnythingFailsItsTest: whatever the reason is; one that did something is not named.
func TestARuleThatNeverDidAnythingFailsItsTest(t *testing.T) {
	r := &testRecorder{}
	synctest.Test(t, func(t *testing.T) {
		control := fault.Test(r, fault.Drop(fault.Tool("echo")), fault.Drop(fault.On("tools/list")), fault.Duplicate(fault.Nth(5)),
			fault.Rule{Fault: "bad-schema"}, fault.Close(fault.After(time.Hour)))
		later, err := control.Add(fault.Delay(time.Second, fault.Tool("other")))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := fault.Wrap(inprocess.New(echoing), control).Dial(t.Context(), &transporttest.Recorder{})
		if err != nil {
			t.Fatal(err)
		}
		for id := range int64(2) {
			if _, err := conn.Send(t.Context(), request(id+1, "tools/call", "echo")); err != nil {
				t.Error(err)
			}
		}
		if _, err := conn.Send(t.Context(), request(3, "resources/list", "")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := control.Remove(later); err != nil {
			t.Fatal(err)
		}
	})
	for _, f := range r.cleanup {
		f()
	}
	want := []string{
		`"latency by=1s tool=other" never did anything: no message was like those`,
		`"drop on=tools/list" never did anything: no message was like those`,
		`"duplicate-response nth=5" never did anything: nth and chance left out every message`,
		`"bad-schema" never did anything: no message`,
		`"close at=1h0m0s" never did anything: `,
	}
	if len(r.said) != len(want) {
		t.Fatalf("said %q, want %q", r.said, want)
	}
	for i := range want {
		if !strings.Contains(r.said[i], want[i]) {
			t.Errorf("said %q, want %q", r.said[i], want[i])
		}
	}
	unusable := &testRecorder{}
	fault.Test(unusable, fault.Rule{Fault: "stop"})
	if len(unusable.said) != 1 || !strings.Contains(unusable.said[0], "inside of a program") {
		t.Errorf("said %q", unusable.said)
	}
}

// TestAWordWithoutAValueIsRefused: each meant no limit, or was lost without a word.
func TestAWordWithoutAValueIsRefused(t *testing.T) {
	for want, r := range map[string]fault.Rule{
		"Times(0)": fault.Drop(fault.Times(0)), "Nth(0)": fault.Drop(fault.Nth(0)), "For(0)": fault.Drop(fault.For(0)),
		"Chance(0)": fault.Drop(fault.Chance(0)), "Delay(0)": fault.Delay(0),
		`Tool("")`: fault.Drop(fault.Tool("")), `On("")`: fault.Drop(fault.On("")),
		`write Tool("a,b")`: fault.Drop(fault.Tool("a"), fault.Tool("b")), "option 1 of the fault drop is nil": fault.Drop(nil),
	} {
		if err := r.Check(fault.Program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	late := &testRecorder{}
	fault.Test(late, fault.Drop(fault.After(time.Hour)))
	for _, f := range late.cleanup {
		f()
	}
	if len(late.said) != 1 || !strings.Contains(late.said[0], "came in its time, which After and For bound") {
		t.Errorf("%q", late.said)
	}
}

// The third call of a tool runs, and its answer is lost: nobody can tell its caller what became of it. The rule must have done
// so, or the test that made it fails.
func ExampleTest() {
	t := &testRecorder{} // in a test it is the *testing.T
	transport := fault.Wrap(inprocess.New(echoing), fault.Test(t, fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1))))

	var _ transports.Transport = transport // what is given to a manager, or dialled
	for _, f := range t.cleanup {          // the end of the test
		f()
	}
	fmt.Println(t.said[0])
	// Output: the rule "drop on=tools/call nth=3 times=1" never did anything: no message was like those that it is about, or the control was not given to Wrap
}

func ExampleDrop() {
	fmt.Println(fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1)))
	fmt.Println(fault.Delay(2*time.Second, fault.Tool("search")))
	fmt.Println(fault.Close(fault.On(fault.ToClient)))
	// Output:
	// drop on=tools/call nth=3 times=1
	// latency by=2s tool=search
	// close direction=client
}
