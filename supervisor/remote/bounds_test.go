package remote

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mcpvisor/mcpvisor/messages"
)

// FuzzDecode: with any bytes, a message that was measured decodes to no more fields than were counted.
func FuzzDecode(f *testing.F) {
	for _, m := range []proto.Message{&messages.CallTool{CallId: "x", Arguments: []byte("{}")},
		&messages.SetServers{Servers: map[string]*messages.ServerSpec{"a": {Args: []string{"b"}}}}} {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, m := range []proto.Message{&messages.SetServers{}, &messages.WatchEvent{}, &protoremote.RemoteMessage{}} {
			fieldsLeft, err := decodeBounded(m, raw, 1000)
			if err == nil && (fieldsLeft < 0 || fieldsLeft > 1000) {
				t.Errorf("%d fields are left of 1000", fieldsLeft)
			}
			readCommandID(m, raw)
		}
	})
}

func TestDecodeIsBounded(t *testing.T) {
	many := &messages.SetServers{Servers: map[string]*messages.ServerSpec{}}
	for i := range 100 {
		many.Servers[strings.Repeat("x", i)] = &messages.ServerSpec{}
	}
	raw, _ := proto.Marshal(many)
	if _, err := decodeBounded(&messages.SetServers{}, raw, 100); err == nil {
		t.Error("300 fields where 100 may be")
	}
	if fieldsLeft, err := decodeBounded(&messages.SetServers{}, raw, 1000); err != nil || fieldsLeft != 700 {
		t.Errorf("%d, %v", fieldsLeft, err)
	}
	if _, err := decodeBounded(&messages.CallTool{}, []byte{0x0b, 0x0c}, 10); err == nil {
		t.Error("a group")
	}
}

func TestAnOutboxIsBounded(t *testing.T) {
	o := newSendLimiter()
	for range maxUnread {
		if !o.reserve("a", 1, maxUnread) {
			t.Fatal("it was full too early")
		}
	}
	if o.reserve("a", 1, maxUnread) || !o.reserve("b", 1, maxUnread) {
		t.Error("one address' bound is not its own")
	}
	o.release("a", 10, 10)
	if !o.reserve("a", 1, maxUnread) {
		t.Error("room that was given back")
	}
	o.releaseAll("a")
	o.releaseAll("b")
	if !o.reserve("c", 10*maxUnreadBytes, maxUnread) || o.reserve("c", 1, maxUnread) {
		t.Error("a single large message waits alone")
	}
	o.release("c", 1, 10*maxUnreadBytes)
	if o.bytes != 0 || len(o.unread) != 0 {
		t.Errorf("%d bytes at %d addresses are left", o.bytes, len(o.unread))
	}
}

func TestAnAddressBelongsToOneIdentity(t *testing.T) {
	var unbound []string
	l := newAddressRegistry(func(b *binding) { unbound = append(unbound, b.identity) })
	soon := time.Now().Add(time.Hour)
	a := l.bindAddress("x:1", "a", soon, true)
	l.bindAddress("x:1", "a", soon, true)
	l.closeStream(a)
	if !l.isValid(a, time.Now()) || l.isValid(a, soon) || l.ownerOf("x:1") != "a" || len(unbound) != 0 {
		t.Error("one of two streams has ended, and no more")
	}
	b := l.bindAddress("x:1", "b", soon, true)
	if l.isValid(a, time.Now()) || l.ownerOf("x:1") != "b" || len(unbound) != 1 {
		t.Errorf("the newest proof does not count: %q", unbound)
	}
	l.closeStream(a)
	if l.ownerOf("x:1") != "b" {
		t.Error("the end of another's stream took the address")
	}
	for i := range maxWatchers {
		if !l.addWatcher(b, watchKey{strings.Repeat("w", i+1), Name}, &actor.PID{}) {
			t.Fatal("too few watchers")
		}
	}
	if l.addWatcher(b, watchKey{"more", Name}, &actor.PID{}) || !l.addWatcher(b, watchKey{"w", Name}, &actor.PID{}) {
		t.Error("watchers are not bounded")
	}
	l.addWatched(b, watchKey{"there", "here"})
	if l.removeWatched(b, watchKey{"there", "other"}) || !l.removeWatched(b, watchKey{"there", "here"}) || l.removeWatched(b, watchKey{"there", "here"}) {
		t.Error("an end is believed of what is watched, once")
	}
	l.closeStream(b)
	if l.ownerOf("x:1") != "" || len(unbound) != 2 {
		t.Errorf("%q", unbound)
	}
}

// The gap that reports missed events comes before the next event.
func TestAGapIsTold(t *testing.T) {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	got := make(chan *messages.WatchEvent, 10)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*messages.WatchEvent); ok {
			got <- m
		}
	}))
	w := newPeerTransport(system, Config{}, Name)
	r := &relay{transport: w, sender: pid, limit: 1000, buffer: 256, rights: Rights{Servers: []string{"own"}}}
	w.sendLimiter.reserve(pid.GetAddress(), 2*maxUnreadBytes, maxUnread) // it reads nothing
	for seq := range 3 {
		r.forwardEvent(&messages.WatchEvent{Seq: uint64(seq), Server: "own"})
	}
	r.forwardEvent(&messages.WatchEvent{Seq: 3, Server: "other"})
	w.sendLimiter.releaseAll(pid.GetAddress())
	r.forwardEvent(&messages.WatchEvent{Seq: 4, Server: "own", Kind: "phase"})
	if gap, next := <-got, <-got; gap.GetKind() != "gap" || gap.GetMissed() != 3 || next.GetSeq() != 4 {
		t.Errorf("%v, then %v", gap, next)
	}
}

// No command that names a caller reaches the manager in the name of another identity.
func TestEachCallerIsThePeers(t *testing.T) {
	stamped := 0
	for name, rule := range messageRules {
		if rule.kind != kindCommand {
			continue
		}
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(messagePrefix + name))
		if err != nil {
			t.Fatal(err)
		}
		caller := kind.Descriptor().Fields().ByName("caller")
		if caller == nil {
			continue
		}
		stamped++
		for _, own := range []string{"", "anna", "peer-2 anna"} {
			m := kind.New()
			m.Set(caller, protoreflect.ValueOfString(own))
			(&relay{identity: "peer-1", command: m.Interface()}).stampIdentity()
			got, shared := m.Get(caller).String(), strings.HasSuffix(name, "ubscribeResource")
			if shared && got != "" || !shared && got != strings.TrimSuffix("peer-1 "+own, " ") {
				t.Errorf("%s with the caller %q has %q", name, own, got)
			}
		}
	}
	if stamped < 11 {
		t.Errorf("only %d commands have a caller", stamped)
	}
}

// The events that wait for a slow peer are bounded by the buffer that its watch asked for, and a gap reports the
// rest. Also with the smallest buffer, a peer that reads again gets events and not only gaps.
func TestTheBufferOfAWatchCounts(t *testing.T) {
	for buffer, most := range map[int32]int{1: 1, 10: 10, 0: 256, maxEvents: maxEvents} {
		system := actor.NewActorSystem()
		got := make(chan *messages.WatchEvent, maxEvents+10)
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*messages.WatchEvent); ok {
				got <- m
			}
		}))
		w := newPeerTransport(system, Config{}, Name)
		r := &relay{transport: w, sender: pid, limit: 1000, rights: Rights{Servers: []string{"own"}}, command: &messages.Watch{Buffer: buffer}}
		r.stampIdentity()
		for seq := range most + 100 { // nothing of it is written
			r.forwardEvent(&messages.WatchEvent{Seq: uint64(seq), Server: "own", Kind: "phase"})
		}
		if n := w.sendLimiter.unread[pid.GetAddress()].messages; n != most {
			t.Errorf("buffer %d: %d events wait", buffer, n)
		}
		w.sendLimiter.release(pid.GetAddress(), most, 0)
		r.forwardEvent(&messages.WatchEvent{Seq: uint64(most + 100), Server: "own", Kind: "phase"})
		for range most {
			<-got
		}
		if gap, next := <-got, <-got; gap.GetKind() != "gap" || gap.GetMissed() != 100 || next.GetSeq() != uint64(most+100) {
			t.Errorf("buffer %d: %v, then %v", buffer, gap, next)
		}
		system.Shutdown()
	}
}
