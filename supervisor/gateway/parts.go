package gateway

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// partWait is how long a list waits for the servers that are asked for their parts. Most answer in milliseconds, and one that is silent must
// not keep agents from what the others have. It is no multiple of a second, see settle.
const partWait = 4900 * time.Millisecond

// leastPartWait is how long a list waits that follows another one of the same request, for which that was spent.
const leastPartWait = 290 * time.Millisecond

// A partKey names the part that a view has of one server.
type partKey struct {
	server string
	kind   listKind
}

// lateParts are the parts for which the lists of a view have waited in vain.
type lateParts struct {
	mu    sync.Mutex
	parts map[partKey]*latePart
}

// A latePart is still waited for, or its server has answered by now and not in time since.
type latePart struct {
	isAwaited, isAnswered bool
	answer                listPart
}

// awaitLate reports whether a part was not waited for, and is from now on.
func (l *lateParts) awaitLate(key partKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[key]
	if p == nil {
		p = &latePart{}
		if l.parts == nil {
			l.parts = map[partKey]*latePart{}
		}
		l.parts[key] = p
	}
	was := p.isAwaited
	p.isAwaited = true
	return !was
}

// endAwait notes the answer to a part that was waited for. After an error the one before stays.
func (l *lateParts) endAwait(key partKey, answer listPart, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.parts[key]; p != nil {
		p.isAwaited = false
		if err == nil {
			p.isAnswered, p.answer = true, answer
		}
	}
}

// lateAnswer returns the newest answer of a server that came too late, false if its newest one came in time.
func (l *lateParts) lateAnswer(key partKey) (listPart, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[key]
	if p == nil || !p.isAnswered {
		return listPart{}, false
	}
	return p.answer, true
}

// noteInTime forgets the late answer of a server that has answered in time.
func (l *lateParts) noteInTime(key partKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p := l.parts[key]; {
	case p == nil:
	case p.isAwaited:
		p.isAnswered, p.answer = false, listPart{}
	default:
		delete(l.parts, key)
	}
}

// forgetOthers forgets the answers of servers that have this list no more.
func (l *lateParts) forgetOthers(kind listKind, servers []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.parts, func(key partKey, _ *latePart) bool { return key.kind == kind && !slices.Contains(servers, key.server) })
}

// gatherParts asks the servers of a view for their parts of a list, at the same time, and waits for them until due.
func (v *view) gatherParts(ctx context.Context, kind listKind, due time.Time) []listPart {
	servers := v.listedBy(kind)
	v.late.forgetOthers(kind, servers)
	parts := make([]listPart, len(servers))
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(due), leastPartWait))
	defer cancel()
	if len(servers) == 1 {
		parts[0] = v.awaitPart(ctx, kind, servers[0])
		return parts
	}
	var all sync.WaitGroup
	for i := range servers {
		all.Go(func() { parts[i] = v.awaitPart(ctx, kind, servers[i]) })
	}
	all.Wait()
	return parts
}

// awaitPart returns the part of one server; that of one which refuses it is empty. Where ctx ends before there is an answer, the part is the
// last one that the view has. If it has ended because the server is late, the session goes on with its request, and if the answer is another
// part, the views are compared again, so that agents are notified.
func (v *view) awaitPart(ctx context.Context, kind listKind, server string) listPart {
	g, key := v.g, partKey{server, kind}
	part, err := g.readPart(ctx, kind, server)
	if err == nil || ctx.Err() == nil {
		v.late.noteInTime(key)
		return part
	}
	last := v.lastPart(key)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && g.lifetime.Err() == nil && v.late.awaitLate(key) {
		g.work.Go(func() {
			part, err := g.readPart(supervisor.WithCaller(g.lifetime, v.principal), kind, server)
			v.late.endAwait(key, part, err)
			if err == nil && !part.hasSameEntries(last) {
				g.noteChange(func(*saidChanges) {})
			}
		})
	}
	return last
}

// lastPart returns what the view knows of a server: its newest answer if that came too late, else the part in its newest list, empty if there
// is none.
func (v *view) lastPart(key partKey) listPart {
	if part, ok := v.late.lateAnswer(key); ok {
		return part
	}
	if l := v.offered[key.kind].Load(); l != nil {
		if i := slices.IndexFunc(l.parts, func(p listPart) bool { return p.server == key.server }); i >= 0 {
			return l.parts[i]
		}
	}
	return listPart{server: key.server}
}

// hasSameEntries reports whether two parts list the same, byte for byte.
func (p listPart) hasSameEntries(other listPart) bool {
	if p.n != other.n {
		return false
	}
	for i := range p.n {
		name, definition := p.entry(i)
		otherName, otherDefinition := other.entry(i)
		if name != otherName || !bytes.Equal(definition, otherDefinition) {
			return false
		}
	}
	return true
}

// readPart returns the part of one server, empty with an error.
func (g *Gateway) readPart(ctx context.Context, kind listKind, server string) (listPart, error) {
	m, ctx := g.all.Owner(ctx, server)
	kept, err := m.ReadOrRecall(ctx, lists[kind].method, server, func(ctx context.Context, s *wire.Session) (supervisor.KeptList, error) {
		part, err := lists[kind].read(ctx, s)
		part.server = server
		return part, err
	})
	part, _ := kept.(listPart)
	part.server = server
	return part, err
}
