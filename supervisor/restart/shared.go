package restart

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// SharedGate is one gate for several owners: what they start together stays within its limits, in one order. Safe for concurrent use.
type SharedGate struct {
	mu   sync.Mutex
	gate *Gate
	// owners are those that have joined, by the prefix of their servers' names in the gate.
	owners map[string]*Owner
	joined int
}

// NewSharedGate makes an empty one.
func NewSharedGate(l Limits) *SharedGate {
	return &SharedGate{gate: NewGate(l), owners: map[string]*Owner{}}
}

// Join adds an owner. wake is called, without a lock, when Next or Displace has something for this owner
// because of what another one did; it must not block and must not call the Owner. The caller calls Leave at its end.
func (s *SharedGate) Join(wake func()) *Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	o := &Owner{shared: s, wake: wake, prefix: "\x00" + strconv.Itoa(s.joined) + "\x00"}
	s.owners[o.prefix] = o
	return o
}

// Owner is one of those that share a SharedGate. Its methods are those of [Gate], for the servers of this owner. The caller calls them
// as it would call those of a gate: one at a time.
type Owner struct {
	shared *SharedGate
	prefix string
	wake   func()
	// granted and displaced are what others' calls have decided about this owner's servers; the gate's mu guards them.
	granted, displaced []string
}

// with calls f with the gate. What it decides for others they learn with the owner's next call of Next, which follows each of its calls.
func (o *Owner) with(f func(g *Gate)) {
	o.shared.mu.Lock()
	f(o.shared.gate)
	o.shared.mu.Unlock()
}

// Enqueue is that of Gate.
func (o *Owner) Enqueue(now time.Time, r Request) {
	r.Server = o.prefix + r.Server
	o.with(func(g *Gate) { g.Enqueue(now, r) })
}

// Cancel is that of Gate. A grant that the owner has not heard of is given back.
func (o *Owner) Cancel(server string) {
	o.with(func(g *Gate) {
		g.Cancel(o.prefix + server)
		if i := slices.Index(o.granted, server); i >= 0 {
			o.granted = slices.Delete(o.granted, i, i+1)
			g.endGrant(g.now, o.prefix+server)
		}
	})
}

// Answered is that of Gate.
func (o *Owner) Answered(now time.Time, server string) {
	o.with(func(g *Gate) { g.Answered(now, o.prefix+server) })
}

// Closed is that of Gate.
func (o *Owner) Closed(now time.Time, server string) {
	o.with(func(g *Gate) { g.Closed(now, o.prefix+server) })
}

// Installing is that of Gate.
func (o *Owner) Installing(now time.Time, server string) {
	o.with(func(g *Gate) { g.Installing(now, o.prefix+server) })
}

// Waited is that of Gate.
func (o *Owner) Waited(now time.Time, server string, ran, waited time.Duration) {
	o.with(func(g *Gate) { g.Waited(now, o.prefix+server, ran, waited) })
}

// Next is that of Gate, for the servers of this owner. Others whose servers may start are woken, and find that with their own Next.
func (o *Owner) Next(now time.Time) (granted []string, wake time.Time) {
	s := o.shared
	s.mu.Lock()
	all, wake := s.gate.Next(now)
	woken := s.handOut(o, all, func(o *Owner) *[]string { return &o.granted })
	granted, o.granted = o.granted, nil
	s.mu.Unlock()
	wakeAll(woken)
	return granted, wake
}

// Displace is that of Gate, for the servers of this owner. Call it after Next.
func (o *Owner) Displace(now time.Time) (servers []string) {
	s := o.shared
	s.mu.Lock()
	woken := s.handOut(o, s.gate.Displace(now), func(o *Owner) *[]string { return &o.displaced })
	servers, o.displaced = o.displaced, nil
	s.mu.Unlock()
	wakeAll(woken)
	return servers
}

// handOut puts each server into the list of its owner, and returns the owners that have to be woken: all but the caller. The caller holds
// mu.
func (s *SharedGate) handOut(caller *Owner, servers []string, list func(*Owner) *[]string) (woken []*Owner) {
	for _, full := range servers {
		end := strings.IndexByte(full[1:], 0) + 2
		o := s.owners[full[:end]]
		if o == nil {
			continue // it has left, and Leave has given everything back
		}
		*list(o) = append(*list(o), full[end:])
		if o != caller && !slices.Contains(woken, o) {
			woken = append(woken, o)
		}
	}
	return woken
}

func wakeAll(owners []*Owner) {
	for _, o := range owners {
		o.wake()
	}
}

// Retire takes back every request of this owner, which will call Next no more: the others are woken, so that one of them keeps the time.
func (o *Owner) Retire() {
	s := o.shared
	s.mu.Lock()
	s.cancelAll(o)
	rest := s.others(o)
	s.mu.Unlock()
	wakeAll(rest)
}

// cancelAll takes back the requests of an owner; the caller holds mu.
func (s *SharedGate) cancelAll(o *Owner) {
	for _, server := range slices.Collect(maps.Keys(s.gate.waiting)) {
		if strings.HasPrefix(server, o.prefix) {
			s.gate.Cancel(server)
		}
	}
}

// others returns all owners but one; the caller holds mu.
func (s *SharedGate) others(o *Owner) []*Owner {
	return slices.DeleteFunc(slices.Collect(maps.Values(s.owners)), func(other *Owner) bool { return other == o })
}

// Leave takes back every request of this owner, and gives back its grants: what they have started must be gone. What waits at the gate
// goes on with the next call of another owner; all are woken for that.
func (o *Owner) Leave() {
	s := o.shared
	s.mu.Lock()
	s.cancelAll(o)
	for _, server := range slices.Collect(maps.Keys(s.gate.open)) {
		if strings.HasPrefix(server, o.prefix) {
			s.gate.endGrant(s.gate.now, server)
		}
	}
	delete(s.owners, o.prefix)
	rest := s.others(o)
	s.mu.Unlock()
	wakeAll(rest)
}
