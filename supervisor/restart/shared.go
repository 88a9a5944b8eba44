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
	owners map[string]*Entrance
	joined int
}

// NewSharedGate makes an empty one.
func NewSharedGate(l Limits) *SharedGate {
	return &SharedGate{gate: NewGate(l), owners: map[string]*Entrance{}}
}

// Join returns the way of a further owner to the gate. wake is called, without a lock, when Next or Displace has something for this owner
// because of what another one did; it must not block and must not call the Entrance. The owner calls Leave at its end.
func (s *SharedGate) Join(wake func()) *Entrance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined++
	e := &Entrance{shared: s, wake: wake, prefix: "\x00" + strconv.Itoa(s.joined) + "\x00"}
	s.owners[e.prefix] = e
	return e
}

// Entrance is the way of one owner to a SharedGate. Its methods are those of [Gate], for the servers of this owner. The owner calls them
// as it would call those of a gate: one at a time.
type Entrance struct {
	shared *SharedGate
	prefix string
	wake   func()
	// granted and displaced are what others' calls have decided about this owner's servers; the gate's mu guards them.
	granted, displaced []string
}

// with calls f with the gate. What it decides for others they learn with the owner's next call of Next, which follows each of its calls.
func (e *Entrance) with(f func(g *Gate)) {
	e.shared.mu.Lock()
	f(e.shared.gate)
	e.shared.mu.Unlock()
}

// Enqueue is that of Gate.
func (e *Entrance) Enqueue(now time.Time, r Request) {
	r.Server = e.prefix + r.Server
	e.with(func(g *Gate) { g.Enqueue(now, r) })
}

// Cancel is that of Gate. A grant that the owner has not heard of is given back.
func (e *Entrance) Cancel(server string) {
	e.with(func(g *Gate) {
		g.Cancel(e.prefix + server)
		if i := slices.Index(e.granted, server); i >= 0 {
			e.granted = slices.Delete(e.granted, i, i+1)
			g.endGrant(g.now, e.prefix+server)
		}
	})
}

// Answered is that of Gate.
func (e *Entrance) Answered(now time.Time, server string) {
	e.with(func(g *Gate) { g.Answered(now, e.prefix+server) })
}

// Closed is that of Gate.
func (e *Entrance) Closed(now time.Time, server string) {
	e.with(func(g *Gate) { g.Closed(now, e.prefix+server) })
}

// Installing is that of Gate.
func (e *Entrance) Installing(now time.Time, server string) {
	e.with(func(g *Gate) { g.Installing(now, e.prefix+server) })
}

// Waited is that of Gate.
func (e *Entrance) Waited(now time.Time, server string, ran, waited time.Duration) {
	e.with(func(g *Gate) { g.Waited(now, e.prefix+server, ran, waited) })
}

// Next is that of Gate, for the servers of this owner. Others whose servers may start are woken, and find that with their own Next.
func (e *Entrance) Next(now time.Time) (granted []string, wake time.Time) {
	s := e.shared
	s.mu.Lock()
	all, wake := s.gate.Next(now)
	woken := s.handOut(e, all, func(o *Entrance) *[]string { return &o.granted })
	granted, e.granted = e.granted, nil
	s.mu.Unlock()
	wakeAll(woken)
	return granted, wake
}

// Displace is that of Gate, for the servers of this owner. Call it after Next.
func (e *Entrance) Displace(now time.Time) (servers []string) {
	s := e.shared
	s.mu.Lock()
	woken := s.handOut(e, s.gate.Displace(now), func(o *Entrance) *[]string { return &o.displaced })
	servers, e.displaced = e.displaced, nil
	s.mu.Unlock()
	wakeAll(woken)
	return servers
}

// handOut puts each server into the list of its owner, and returns the owners that have to be woken: all but the caller. The caller holds
// mu.
func (s *SharedGate) handOut(caller *Entrance, servers []string, list func(*Entrance) *[]string) (woken []*Entrance) {
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

func wakeAll(owners []*Entrance) {
	for _, o := range owners {
		o.wake()
	}
}

// Retire takes back every request of this owner, which will call Next no more: the others are woken, so that one of them keeps the time.
func (e *Entrance) Retire() {
	s := e.shared
	s.mu.Lock()
	s.cancelAll(e)
	rest := s.others(e)
	s.mu.Unlock()
	wakeAll(rest)
}

// cancelAll takes back the requests of an owner; the caller holds mu.
func (s *SharedGate) cancelAll(e *Entrance) {
	for _, server := range slices.Collect(maps.Keys(s.gate.waiting)) {
		if strings.HasPrefix(server, e.prefix) {
			s.gate.Cancel(server)
		}
	}
}

// others returns all owners but one; the caller holds mu.
func (s *SharedGate) others(e *Entrance) []*Entrance {
	return slices.DeleteFunc(slices.Collect(maps.Values(s.owners)), func(o *Entrance) bool { return o == e })
}

// Leave takes back every request of this owner, and gives back its grants: what they have started must be gone. What waits at the gate
// goes on with the next call of another owner; all are woken for that.
func (e *Entrance) Leave() {
	s := e.shared
	s.mu.Lock()
	s.cancelAll(e)
	for _, server := range slices.Collect(maps.Keys(s.gate.open)) {
		if strings.HasPrefix(server, e.prefix) {
			s.gate.endGrant(s.gate.now, server)
		}
	}
	delete(s.owners, e.prefix)
	rest := s.others(e)
	s.mu.Unlock()
	wakeAll(rest)
}
