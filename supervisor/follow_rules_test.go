package supervisor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// recorded is an audit record in memory.
type recorded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorded) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *recorded) count(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), what)
}

// Rules of a changed file are in force when Reload returns, those that cannot be read included, which deny everything until they
// can. A file whose rules did not change sets none anew: every server would have to show its tools again, and the record would
// tell of a change that was none.
func TestRulesAreFollowed(t *testing.T) {
	d := newDesktop(t, "a")
	d.write(d.user, entries("a"), false)
	record := &recorded{}
	d.m = startWith(t, supervisor.Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": d.fakes["a"].serve},
		Audit: record, Ask: func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
			return supervisor.AskNo, nil
		}})
	reading, err := discover.Read(d.options)
	if err != nil {
		t.Fatal(err)
	}
	if d.follow, err = supervisor.Follow(t.Context(), d.m, supervisor.FollowOptions{Reading: &reading}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.follow.Close)
	d.becomes("a")
	with := func(rest string) string { return strings.TrimSuffix(entries("a"), "}") + rest + "}" }
	sets := 0
	for i, c := range []struct {
		rest, fault string
		set         bool
	}{
		{``, "", false},
		{`, "permissions": {"deny": ["mcp__a__x"], "allow": ["a:y"]}`, "denied: the rule deny mcp__a__x (", true},
		{`, "permissions": {"deny": ["mcp__a__x"], "allow": ["a:y"]}, "registry": "https://r.example"`, "denied: the rule deny", false},
		{`, "permissions": {"deny": ["x"]}`, "the rule x cannot be read, and until it can everything is denied (", true},
		{`, "permissions": {"dney": []}`, "the rule dney cannot be read, and until it can everything is denied (", true},
		{`, "permissions": {"ask": ["mcp__a"]}`, "it must be asked for, because the rule ask mcp__a (", true},
		{``, "", true},
	} {
		d.write(d.user, with(c.rest), i%2 == 0)
		if _, err := d.m.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.set {
			sets++
		}
		_, err := d.m.CallServerTool(t.Context(), "a", "x", nil)
		switch {
		case c.fault == "" && err != nil, c.fault != "" && (!errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) ||
			!strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v, want %q", c.rest, err, c.fault)
		}
	}
	eventually(t, fmt.Sprint(sets, " changes of the rules are recorded"), func() bool { return record.count(`"change":"permissions"`) >= sets })
	if n := record.count(`"change":"permissions"`); n != sets {
		t.Errorf("rules were set %d times, and changed %d times", n, sets)
	}
	if st := status(t, d.m, "a"); st.Restarts != 0 {
		t.Errorf("the server was restarted %d times", st.Restarts)
	}
}

// The same reload by a message from another actor, and the same difference of servers: what is equal is left alone.
func TestAnotherActorReloads(t *testing.T) {
	d := newDesktop(t, "a", "b", "c")
	d.write(d.user, entries("a", "b"), false)
	d.begin(func(o *supervisor.FollowOptions) { o.Quiet, o.Most, o.Poll = time.Hour, time.Hour, time.Hour })
	d.becomes("a", "b")
	before := status(t, d.m, "a").Epoch
	c := correspond(t, d.m)
	d.write(d.user, entries(`a "callTimeout": "9s"`, "c")+" // changed", true)
	reply, ok := c.ask(&messages.Reload{}).(*messages.ReloadReply)
	if !ok || reply.GetFailure() != nil || !slices.Equal(reply.GetAdded(), []string{"c"}) ||
		!slices.Equal(reply.GetRemoved(), []string{"b"}) || !slices.Equal(reply.GetAdjusted(), []string{"a"}) {
		t.Fatalf("%v", reply)
	}
	d.becomes("a", "c")
	if got := status(t, d.m, "a").Epoch; got != before {
		t.Error("a server that was adjusted lost its connection")
	}
	d.write(d.user, "{", true)
	reply, ok = c.ask(&messages.Reload{}).(*messages.ReloadReply)
	if !ok || len(reply.GetProblems()) != 1 || reply.GetProblems()[0].GetLine() != 1 || reply.GetProblems()[0].GetFile() != d.user ||
		!slices.Equal(reply.GetKept(), []string{"a", "c"}) {
		t.Errorf("a broken file: %v", reply)
	}

	spec := &messages.ServerSpec{Type: string(messages.SDK), Name: "b"}
	set, ok := c.ask(&messages.SetServers{Servers: map[string]*messages.ServerSpec{"own": spec}}).(*messages.SetServersReply)
	if !ok || !slices.Equal(set.GetAdded(), []string{"own"}) {
		t.Fatalf("%v", set)
	}
	d.becomes("a", "c", "own")
	own := status(t, d.m, "own").Epoch
	d.write(d.user, entries("a"), true)
	if reply, ok = c.ask(&messages.Reload{}).(*messages.ReloadReply); !ok || !slices.Equal(reply.GetRemoved(), []string{"c"}) {
		t.Errorf("%v", reply)
	}
	set, ok = c.ask(&messages.SetServers{Servers: map[string]*messages.ServerSpec{"own": spec, "more": spec}}).(*messages.SetServersReply)
	if !ok || !slices.Equal(set.GetAdded(), []string{"more"}) || !slices.Equal(set.GetKept(), []string{"own"}) || len(set.GetRemoved()) > 0 {
		t.Errorf("%v", set)
	}
	d.becomes("a", "more", "own")
	if got := status(t, d.m, "own").Epoch; got != own {
		t.Error("a reload, or an equal spec, cost a server that was added by message its connection")
	}
	d.follow.Close()
	if reply, ok = c.ask(&messages.Reload{}).(*messages.ReloadReply); !ok || reply.GetFailure() == nil {
		t.Errorf("nobody follows any more: %v", reply)
	}
}
