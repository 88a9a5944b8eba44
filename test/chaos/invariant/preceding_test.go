package invariant_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// A verdict says what came before: what broke, what the owner asked for, how the last connection ended, and what the manager said.
func TestWhatCameBefore(t *testing.T) {
	h := &history.History{Plan: simPlan(t, "s1", "s2"), Events: parseEvents(t, `
		0s     s1 phase phase=pending step=queued epoch=1
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=handshaking epoch=2
		10ms   s1 answered conn=1 method=initialize
		10ms   s1 phase phase=pending step=listing epoch=2
		20ms   s1 answered conn=1 method=tools/list
		20ms   s1 listed conn=1
		20ms   s1 phase phase=connected epoch=2
		1s     s2 fault-on name=hang-call fault=1
		5s     s1 fault-on name=crash fault=2
		5s     s1 down conn=1 class=exited text=the_process_ended
		5s     s1 phase phase=pending step=restarting epoch=2 class=exited
		6s     - command command=1 method=wake
		10s    s1 command command=2 method=disable
		10s    s1 done command=2 method=disable
		10s    s1 phase phase=disabled epoch=2
		20s    s1 open conn=2
		21s    s1 command command=3 method=enable
	`)}
	check, _ := invariant.Find("I8")
	v := check.Judge(h)
	want := "What came before it, on s1: at 5s the fault crash began; at 5s connection 1 ended (the process ended); at 6s the owner's command wake; " +
		"at 10s the owner's command disable; at 10s the manager said that it is disabled."
	if v.Answer != invariant.Violated || v.Before != want {
		t.Errorf("%s: %s\n%s\nwant %s", v.Answer, v.Why, v.Before, want)
	}
}

// That Close disables the servers is no cause of what is found after it.
func TestCloseIsNoCause(t *testing.T) {
	h := &history.History{Plan: simPlan(t, "s1"), Events: parseEvents(t, `
		0s     s1 open conn=1
		0s     s1 opened conn=1
		20ms   s1 phase phase=connected epoch=2
		30s    - closing
		30s    s1 phase phase=disabled epoch=2
		31s    - closed
	`)}
	check, _ := invariant.Find("I12")
	v := check.Judge(h)
	if want := "What came before it, on s1: at 20ms the manager said that it is connected."; v.Answer != invariant.Violated || v.Before != want {
		t.Errorf("%s: %s\n%s\nwant %s", v.Answer, v.Why, v.Before, want)
	}
}

// A fault without a duration may break something in the instant in which the time of faults ends: that end came not before it, and is no
// part of what happened.
func TestTheLastFaultIsNoEndOfFaults(t *testing.T) {
	h := &history.History{Plan: simPlan(t, "s1"), Events: parseEvents(t, `
		0s     s1 phase phase=pending step=dialing epoch=2
		0s     s1 open conn=1
		0s     s1 phase phase=pending step=handshaking epoch=2
		10ms   s1 answered conn=1 method=initialize
		10ms   s1 phase phase=pending step=listing epoch=2
		20ms   s1 answered conn=1 method=tools/list
		20ms   s1 phase phase=connected epoch=2
		5s     -  heal
		5s     s1 fault-on name=crash fault=1
		5s     s1 down conn=1 class=exited text=the_process_ended
		5s     s1 phase phase=disabled epoch=2
		6s     s1 open conn=2
	`)}
	check, _ := invariant.Find("I8")
	v := check.Judge(h)
	want := "What came before it, on s1: at 20ms the manager said that it is connected; at 5s the fault crash began; at 5s connection 1 ended (the process ended)."
	if v.Answer != invariant.Violated || v.Before != want {
		t.Errorf("%s: %s\n%s\nwant %s", v.Answer, v.Why, v.Before, want)
	}
}
