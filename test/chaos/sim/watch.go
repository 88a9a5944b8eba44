package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// managerWatch records what the manager publishes: its events, and the snapshots of the catalog. The loop reads whenever every
// goroutine waits, so that it misses no snapshot.
type managerWatch struct {
	world   *simulation
	watcher *supervisor.Watcher
	// canceledCtx has ended, so that Next returns only what is there.
	canceledCtx context.Context
	// closed is set when the watcher has returned that the manager is closed.
	closed bool

	// sequence checks that no event is missing and none comes twice.
	sequence history.Sequence

	// snapshot is the last one that was recorded, nil before the first.
	snapshot *supervisor.Snapshot
	// shownServers holds each server's part of the last snapshot, hashSum the hash of all parts.
	shownServers map[string]shownEntries
	hashSum      uint64
	// refused holds the tools of each server that the last snapshot refused, by name and reason.
	refused map[string][]messages.QuarantinedTool
	// toolsNews has the servers of whose tools the events since the last snapshot tell; "" stands for an event of several.
	toolsNews map[string]bool
}

// shownEntries is one server's part of a snapshot, with its hash.
type shownEntries struct {
	entries []*supervisor.Entry
	sum     uint64
}

// isUnchanged reports whether a server has the same entries as before. Entries are immutable, so that comparing pointers
// suffices.
func (s shownEntries) isUnchanged(entries []*supervisor.Entry) bool {
	if len(s.entries) != len(entries) || len(entries) == 0 {
		return len(s.entries) == len(entries)
	}
	return &s.entries[0] == &entries[0] || slices.Equal(s.entries, entries)
}

// startWatching subscribes to the events, with more room than a run fills.
func (w *managerWatch) startWatching(m *supervisor.Manager) {
	w.watcher = m.Watch(1 << 20)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	w.canceledCtx, w.shownServers, w.toolsNews = over, map[string]shownEntries{}, map[string]bool{}
}

// recordNew records the new events, and the snapshot if it is another one.
func (w *managerWatch) recordNew() {
	if w.watcher == nil {
		return
	}
	for {
		e, err := w.world.nextEvent(w.canceledCtx, w.watcher)
		if err != nil {
			w.closed = errors.Is(err, messages.ErrClosed)
			break
		}
		w.recordEvent(e)
	}
	if s := w.world.manager.Tools(); s != w.snapshot {
		w.recordSnapshot(s)
	}
}

// recordEvent records one event of the manager, and checks its place in the sequence. A gap is an error of the harness, because
// the room is large.
func (w *managerWatch) recordEvent(e messages.Event) {
	if problem := w.sequence.Next(e); problem != "" {
		w.world.reportMisled(problem)
	}
	// No scenario has this server, and no invariant knows what becomes of it: the program judges that itself.
	if e.Server == misfit {
		return
	}
	recorded := history.Event{Side: history.Manager, Server: e.Server, T: e.Time.Sub(w.world.start)}
	switch e.Kind {
	case messages.EventPhase:
		recorded.Kind = history.Phase
		fillFromStatus(&recorded, e.Status, w.world.start)
		w.world.reads.notePhase(e.Server, e.Time, e.Status)
		w.world.secrets.checkStatus(w.world, e.Status)
	case messages.EventRemoved:
		recorded.Kind = history.Removed
		w.world.reads.notePhase(e.Server, e.Time, nil)
		delete(w.world.ownerSet.leaving, e.Server)
	case messages.EventTools:
		w.toolsNews[e.Server] = true
		return
	case messages.EventAuth:
		recorded.Kind = history.Auth
	case messages.EventCallStarted, messages.EventCallEnded:
		recorded.Kind, recorded.Method, recorded.Tool, recorded.Outcome, recorded.Took = history.CallReported, string(e.Kind), e.Tool, e.Outcome, time.Duration(e.Took)
	case messages.EventResourceUpdated:
		recorded.Kind, recorded.About = history.Updated, e.URI
	case messages.EventResources, messages.EventPrompts:
		recorded.Kind, recorded.Method = history.ListTold, string(e.Kind)
	case messages.EventGap:
		w.world.failHarness("the watcher of the manager missed %d events", e.Missed)
		return
	default:
		return
	}
	w.world.rec.Add(recorded)
	if recorded.Kind == history.Removed {
		w.world.recordStatus(recorded.Server, "after its end")
	}
}

// nextEvent reads one event. A panic of the watcher is the manager's fault, and counts as the end of the events.
func (w *simulation) nextEvent(ctx context.Context, from *supervisor.Watcher) (e messages.Event, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.reportMisled(messages.Line(fmt.Sprintf("it panicked: %v", v), 300))
			err = messages.ErrClosed
		}
	}()
	return from.Next(ctx)
}

// finishWatching reads what is left. A manager that has closed must have reported the end of every call that it reported to
// have begun.
func (w *managerWatch) finishWatching() {
	w.recordNew()
	if n := w.sequence.Open(); w.closed && n > 0 {
		w.world.reportMisled(fmt.Sprintf("it was told of %d calls that they began, and until the end not that they ended", n))
	}
}

// hasEnded reports whether the manager has ended its watchers.
func (w *managerWatch) hasEnded() bool { return w.closed }

// fillFromStatus copies a status into an event. Times become times of the run.
func fillFromStatus(e *history.Event, s *messages.Status, start time.Time) {
	e.Phase, e.Step, e.Retry, e.Class, e.Attempts = s.Status, s.Step, s.Retry, s.Class, s.Attempts
	e.Epoch, e.Warm, e.Text = s.Epoch, s.Warm, s.Error
	e.Restarts, e.Since, e.Tools = s.Restarts, s.Since.Sub(start), len(s.Tools)
	if s.NextAttempt != nil {
		e.Next = s.NextAttempt.Sub(start)
	}
}

// recordSnapshot records in what a snapshot differs from the one before, and a hash of the whole.
func (w *managerWatch) recordSnapshot(s *supervisor.Snapshot) {
	w.checkRefused(s)
	before := w.snapshot
	w.snapshot = s
	e := history.Event{Side: history.Manager, Kind: history.Snapshot, Generation: s.Generation()}
	w.world.eachServer(func(h *simServer) { w.recordServer(&e, s, h.server.Name) })
	if before != nil { // the first snapshot has what changed before the watch began
		w.checkTold(e.Entries)
	}
	clear(w.toolsNews)
	e.Hash = fmt.Sprintf("%016x", w.hashSum)
	w.world.recordEvent(e)
}

// checkTold judges that the watcher was told of each server whose tools have changed: one that follows a single server reads the catalog only
// when an event names that server, or none.
func (w *managerWatch) checkTold(changed []history.Entries) {
	for _, e := range changed {
		if !w.toolsNews[e.Server] && !w.toolsNews[""] {
			w.world.reportMisled(fmt.Sprintf("the tools of %s have changed, and it was told of those of %q alone", e.Server, slices.Sorted(maps.Keys(w.toolsNews))))
			return
		}
	}
}

// checkRefused judges that a snapshot which refuses other tools than the one before has another generation: who reads again only
// when the generation rises would not hear of them. The history does not hold what is refused.
func (w *managerWatch) checkRefused(s *supervisor.Snapshot) {
	if w.refused == nil {
		w.refused = map[string][]messages.QuarantinedTool{}
	}
	w.world.eachServer(func(h *simServer) {
		name := h.server.Name
		now, was := s.Refused(name), w.refused[name]
		if w.snapshot != nil && s.Generation() == w.snapshot.Generation() && !slices.Equal(now, was) {
			w.world.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I5", Server: name,
				Text: fmt.Sprintf("the catalog refused %d tools instead of %d and stayed at generation %d", len(now), len(was), s.Generation())})
		}
		w.refused[name] = now
	})
}

// recordServer adds a server's part to the event, if it has changed: one entry for each state and epoch of its tools.
func (w *managerWatch) recordServer(e *history.Event, s *supervisor.Snapshot, name string) {
	entries := s.Server(name)
	was := w.shownServers[name]
	if was.isUnchanged(entries) {
		return
	}
	w.world.learnShown(name, entries)
	groups := map[history.Entries][]messages.Tool{}
	for _, entry := range entries {
		key := history.Entries{Server: name, State: entry.State.String(), Epoch: entry.Epoch}
		groups[key] = append(groups[key], *entry.Tool)
	}
	var states []history.Entries
	for key, tools := range groups {
		key.Count, key.Hash, key.Parts = len(tools), history.HashTools(tools), history.PartsOf(w.world.plan.PartsOf(name), tools)
		if w.world.plan.Hides(name) {
			key.Tools = history.NamesOf(tools)
		}
		states = append(states, key)
	}
	slices.SortFunc(states, func(a, b history.Entries) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Epoch, b.Epoch))
	})
	if len(states) == 0 {
		states = []history.Entries{{Server: name}}
	}
	now := shownEntries{entries, entriesHash(states)}
	w.hashSum ^= was.sum ^ now.sum
	w.shownServers[name] = now
	e.Entries = append(e.Entries, states...)
}

// entriesHash hashes the entries of a server. The hash of a snapshot is the exclusive or of all servers' hashes, so that the
// change of one server costs only that server's.
func entriesHash(states []history.Entries) uint64 {
	if states[0].Count == 0 {
		return 0
	}
	h := fnv.New64a()
	for i := range states {
		e := &states[i]
		// Write of a hash never fails.
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%d\x00%s\n", e.Server, e.State, e.Epoch, e.Count, e.Hash)
	}
	return h.Sum64()
}
