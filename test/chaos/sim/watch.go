package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// managerWatch takes down what the manager publishes: its events, and the snapshots of the catalog.
type managerWatch struct {
	world       *simulation
	watcher     *supervisor.Watcher
	canceledCtx context.Context // nothing is waited for
	closed      bool            // it was told that there will be no more

	sequence history.Sequence

	snapshot     *supervisor.Snapshot
	shownServers map[string]shownEntries // by server
	hashSum      uint64                  // of all that is shown
}

// shownEntries is what the last snapshot had of one server.
type shownEntries struct {
	entries []*supervisor.Entry
	sum     uint64
}

// isUnchanged reports whether nothing of a server has changed: entries are immutable.
func (s shownEntries) isUnchanged(entries []*supervisor.Entry) bool {
	if len(s.entries) != len(entries) || len(entries) == 0 {
		return len(s.entries) == len(entries)
	}
	return &s.entries[0] == &entries[0] || slices.Equal(s.entries, entries)
}

func (w *managerWatch) startWatching(m *supervisor.Manager) {
	w.watcher = m.Watch(1 << 20)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	w.canceledCtx, w.shownServers = over, map[string]shownEntries{}
}

// recordNew records what is new.
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

func (w *managerWatch) recordEvent(e messages.Event) {
	if problem := w.sequence.Next(e); problem != "" {
		w.world.reportMisled(problem)
	}
	recorded := history.Event{Side: history.Manager, Server: e.Server, T: e.Time.Sub(w.world.start)}
	switch e.Kind {
	case messages.EventPhase:
		recorded.Kind = history.Phase
		fillFromStatus(&recorded, e.Status, w.world.start)
		w.world.secrets.checkStatus(w.world, e.Status)
	case messages.EventRemoved:
		recorded.Kind = history.Removed
	case messages.EventAuth:
		recorded.Kind = history.Auth
	case messages.EventCallStarted, messages.EventCallEnded:
		recorded.Kind, recorded.Method, recorded.Tool, recorded.Outcome, recorded.Took = history.CallReported, string(e.Kind), e.Tool, e.Outcome, time.Duration(e.Took)
	case messages.EventResourceUpdated:
		recorded.Kind = history.Updated
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

// nextEvent reads one event. A watcher that panics is the manager's fault, and has nothing more to say.
func (w *simulation) nextEvent(ctx context.Context, from *supervisor.Watcher) (e messages.Event, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.reportMisled(messages.Line(fmt.Sprintf("it panicked: %v", v), 300))
			err = messages.ErrClosed
		}
	}()
	return from.Next(ctx)
}

// finishWatching reads what is left. A manager that has closed has said so, and of every call that began that it has ended.
func (w *managerWatch) finishWatching() {
	w.recordNew()
	if n := w.sequence.Open(); w.closed && n > 0 {
		w.world.reportMisled(fmt.Sprintf("it was told of %d calls that they began, and until the end not that they ended", n))
	}
}

// hasEnded reports whether the manager has ended its watchers.
func (w *managerWatch) hasEnded() bool { return w.closed }

// fillFromStatus takes over what a status says of a phase.
func fillFromStatus(e *history.Event, s *messages.Status, start time.Time) {
	e.Phase, e.Step, e.Retry, e.Class, e.Attempts = s.Status, s.Step, s.Retry, s.Class, s.Attempts
	e.Epoch, e.Warm, e.Text = s.Epoch, s.Warm, s.Error
	e.Restarts, e.Since, e.Tools = s.Restarts, s.Since.Sub(start), len(s.Tools)
	if s.NextAttempt != nil {
		e.Next = s.NextAttempt.Sub(start)
	}
}

// recordSnapshot records in what a snapshot differs from the one before.
func (w *managerWatch) recordSnapshot(s *supervisor.Snapshot) {
	w.snapshot = s
	e := history.Event{Side: history.Manager, Kind: history.Snapshot, Generation: s.Generation()}
	w.world.eachServer(func(h *simServer) { w.recordServer(&e, s, h.server.Name) })
	e.Hash = fmt.Sprintf("%016x", w.hashSum)
	w.world.recordEvent(e)
}

func (w *managerWatch) recordServer(e *history.Event, s *supervisor.Snapshot, name string) {
	entries := s.Server(name)
	was := w.shownServers[name]
	if was.isUnchanged(entries) {
		return
	}
	groups := map[history.Entries][]messages.Tool{}
	for _, entry := range entries {
		key := history.Entries{Server: name, State: entry.State.String(), Epoch: entry.Epoch}
		groups[key] = append(groups[key], *entry.Tool)
	}
	var states []history.Entries
	for key, tools := range groups {
		key.Count, key.Hash = len(tools), history.HashTools(tools)
		if w.world.plan.Denies(name) {
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

// entriesHash is a number that stands for the entries of a server; that of a whole snapshot is their exclusive or, so that a change
// of one server costs no more than that.
func entriesHash(states []history.Entries) uint64 {
	if states[0].Count == 0 {
		return 0
	}
	h := fnv.New64a()
	for i := range states {
		e := &states[i]
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%d\x00%s\n", e.Server, e.State, e.Epoch, e.Count, e.Hash) // it never fails
	}
	return h.Sum64()
}
