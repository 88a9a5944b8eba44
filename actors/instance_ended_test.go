package actors

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
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

// An instance was removed, and the next call of its caller made another one, before the registry had forgotten the tools of the first: the call
// took those for its own, and failed because they had no connection, where it should have waited for that of the new instance.
func TestToolsOfAnInstanceThatWasRemovedAreNotThoseOfTheNext(t *testing.T) {
	cell := NewCell(&View{Name: "s@anna", Spec: &messages.Spec{InstanceOf: "s", Principal: "anna"}})
	cell.Use = NewUse("anna", 5)
	c := &Calls{Catalog: NewCatalog(messages.Naming{}), Cell: func(string) *Cell { return cell }}
	for _, found := range []struct {
		epoch uint64
		want  bool
	}{{4, false}, {5, false}, {6, true}} {
		next, _ := c.Catalog.Snapshot().Apply(catalog.Change{Kind: catalog.Announce, Server: "s@anna", Of: "s", Epoch: found.epoch, Rev: 1,
			Tools: []messages.Tool{{Name: "t"}}})
		c.Catalog.snapshot.Store(next)
		for _, name := range [][2]string{{"t", ""}, {"", "mcp__s__t"}} {
			if e := c.entryOfInstance("s@anna", name[0], name[1]); (e != nil) != found.want {
				t.Errorf("%q of epoch %d: %+v", name, found.epoch, e)
			}
		}
	}
}

// An instance is used until its last request has ended, however long that took: its time of idleness begins then.
func TestIdlenessBeginsWithTheEndOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewUse("anna", 0)
		if !u.enter() {
			t.Fatal("a new instance admits no caller")
		}
		time.Sleep(time.Hour)
		if idle := u.IdleFor(); idle != 0 {
			t.Errorf("idle for %s during a request", idle)
		}
		u.leave()
		time.Sleep(time.Minute)
		if idle := u.IdleFor(); idle != time.Minute {
			t.Errorf("idle for %s a minute after the end of a request", idle)
		}
	})
}
