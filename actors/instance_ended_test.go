package actors

import (
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A request that names an instance, such as a ping, may have found it a moment before it ends for idleness: it is refused, and counts
// nothing. Before the end it counts itself in, and holds the instance.
func TestARequestForAnInstanceThatHasEndedIsRefused(t *testing.T) {
	cell := NewCell(&View{Name: "s@anna", Spec: &messages.Spec{InstanceOf: "s", Principal: "anna"}})
	cell.Use = new(Use)
	c := &Calls{Cell: func(string) *Cell { return cell }}
	r := &Request{Method: "ping", Server: "s@anna"}
	if err := c.enterNamed(r, cell, "bert"); err != nil || r.Server != "s" || r.Instance != "s@anna" || cell.Use.EndIdle() {
		t.Fatalf("a ping is not admitted: %+v, %v", r, err)
	}
	r.LeaveInstance()
	if !cell.Use.EndIdle() {
		t.Fatal("the ping is still inside")
	}
	r = &Request{Method: "ping", Server: "s@anna"}
	var e *messages.Error
	if err := c.enterNamed(r, cell, "anna"); !errors.As(err, &e) || e.Outcome != messages.OutcomeNotSent || e.Class != messages.ClassNetwork {
		t.Errorf("of an instance that has ended: %v", err)
	}
	if r.Instance != "" || r.Server != "s@anna" {
		t.Errorf("the request leads to it all the same: %+v", r)
	}
	if r.LeaveInstance(); cell.Use.IdleFor() == 0 {
		t.Error("the request counts as inside")
	}
}
