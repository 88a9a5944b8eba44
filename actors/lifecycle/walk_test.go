package lifecycle

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
)

// move is something that can happen in the world now.
type move struct {
	name string
	do   func()
}

// moves are all things that can happen now: what leads on, and what disturbs, late answers included.
func (w *world) moves(t *rapid.T) (progress, faults []move) {
	can := func(name string, do func()) { progress = append(progress, move{name, do}) }
	may := func(name string, do func()) { faults = append(faults, move{name, do}) }
	cause := func() *Cause {
		class := rapid.SampledFrom([]messages.Class{
			messages.ClassTimeout, messages.ClassNetwork, messages.ClassUnauthorized, messages.ClassMissing,
		}).Draw(t, "class")
		return &Cause{Class: class, Text: string(class)}
	}
	for _, line := range []string{
		"Enable", "Enable", "Enable", "Enable", "Disable", "Disable", "Disable cold", "Reconnect", "Wake", "Wake", "Refresh",
		"Refresh", "Announce", "Init enabled", "Respec", "Respec enabled", "Respec enabled lazy",
		"Respec enabled blocked=config", "Respec keep", "Respec enabled keep", "Respec enabled lazy keep",
	} {
		may(line, func() { w.wish(line) })
	}
	if len(w.toSup) > 0 {
		can("the supervisor reads", func() {
			w.supervise(func() messages.Retry {
				return rapid.SampledFrom([]messages.Retry{
					messages.RetryAt, messages.RetryParked, messages.RetryNever,
				}).Draw(t, "decision")
			})
		})
	}
	if w.due {
		can("the supervisor grants", w.grant)
	}
	if len(w.fromSup) > 0 {
		can("the supervisor's word arrives", w.deliver)
	}
	may("the tools change", w.change)
	for _, epoch := range sortedKeys(w.conns) {
		c := w.conns[epoch]
		for i, j := range c.jobs {
			can(j.kind+" succeeds", func() { w.finish(c, i, nil) })
			may(j.kind+" fails", func() { w.finish(c, i, cause()) })
			if j.sampled < 0 {
				can("the server looks at its tools", func() { c.jobs[i].sampled = w.version })
			}
		}
		if c.noted {
			can("list_changed arrives", func() { c.noted = false; w.tell(ToolsChanged{epoch}) })
		}
		if c.relistOn {
			can("the quiet period ends", func() { c.relistOn = false; w.tell(RelistDue{epoch}) })
		}
		if c.dialed && epoch+1 >= w.epochs {
			may("the connection dies", func() { w.tell(Lost{epoch, *cause()}) })
			may("a call is unauthorized", func() { w.tell(Unauthorized{Epoch: epoch}) })
			may("nobody calls", func() { w.tell(IdleOut{epoch}) })
		}
		switch {
		case c.shut && !c.closed:
			can("everything is released", func() { w.release(c) })
		case !c.closed:
			may("everything is released", func() { w.release(c) })
		}
	}
	return progress, faults
}

// TestWalks lets random things happen to a server, in any order that a shell could produce, and then lets everything
// end well. After every step the invariants and the history are judged; in the end a server that is wanted is
// connected with its newest tools, one that is not is disabled, no caller waits and nothing is held.
//
// -rapid.checks=N walks N times instead of 100, ten times over.
func TestWalks(t *testing.T) {
	for range 10 {
		t.Run("", rapid.MakeCheck(walk))
	}
}

func walk(t *rapid.T) {
	w := newWorld()
	w.wish(rapid.SampledFrom([]string{
		"Init enabled", "Init", "Init enabled lazy", "Init enabled lazy cached", "Init enabled blocked=config",
	}).Draw(t, "init"))
	for range rapid.IntRange(0, 150).Draw(t, "steps") {
		moves, faults := w.moves(t)
		if len(moves) == 0 || rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
			moves = faults
		}
		m := moves[rapid.IntRange(0, len(moves)-1).Draw(t, "move")]
		t.Log(m.name)
		m.do()
		t.Log("    " + writeState(w.state))
		if w.fault != nil {
			t.Fatal(w.fault)
		}
	}
	end := func(what string) {
		t.Log(what)
		if err := w.settle(); err != nil {
			t.Fatal(err)
		}
	}
	end("everything ends well")
	// What no time heals, a person does; and every server can be ended.
	if w.state.Wanted && w.state.Blocked == nil {
		w.wish("Reconnect")
		end("a person reconnects")
		if w.state.Phase != messages.Connected {
			t.Fatalf("reconnected: %s", writeState(w.state))
		}
	}
	w.wish("Remove")
	end("it is removed")
}
