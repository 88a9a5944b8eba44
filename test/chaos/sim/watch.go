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

// watch takes down what the manager publishes: its events, and the snapshots of the catalog.
type watch struct {
	world   *world
	watcher *supervisor.Watcher
	ended   context.Context // nothing is waited for
	closed  bool            // it was told that there will be no more

	sequence history.Sequence

	snapshot *supervisor.Snapshot
	shown    map[string]shown // by server
	sum      uint64           // of all that is shown
}

// shown is what the last snapshot had of one server.
type shown struct {
	entries []*supervisor.Entry
	sum     uint64
}

// same reports whether nothing of a server has changed: entries are immutable.
func (s shown) same(entries []*supervisor.Entry) bool {
	if len(s.entries) != len(entries) || len(entries) == 0 {
		return len(s.entries) == len(entries)
	}
	return &s.entries[0] == &entries[0] || slices.Equal(s.entries, entries)
}

func (w *watch) begin(m *supervisor.Manager) {
	w.watcher = m.Watch(1 << 20)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	w.ended, w.shown = over, map[string]shown{}
}

// look records what is new.
func (w *watch) look() {
	if w.watcher == nil {
		return
	}
	for {
		e, err := w.world.next(w.ended, w.watcher)
		if err != nil {
			w.closed = errors.Is(err, messages.ErrClosed)
			break
		}
		w.event(e)
	}
	if s := w.world.manager.Tools(); s != w.snapshot {
		w.compare(s)
	}
}

func (w *watch) event(e messages.Event) {
	if wrong := w.sequence.Next(e); wrong != "" {
		w.world.misled(wrong)
	}
	own := history.Event{Side: history.Manager, Server: e.Server, T: e.Time.Sub(w.world.start)}
	switch e.Kind {
	case messages.EventPhase:
		own.Kind = history.Phase
		fill(&own, e.Status, w.world.start)
		w.world.secrets.status(w.world, e.Status)
	case messages.EventRemoved:
		own.Kind = history.Removed
	case messages.EventAuth:
		own.Kind = history.Auth
	case messages.EventCallStarted, messages.EventCallEnded:
		own.Kind, own.Method, own.Tool, own.Outcome, own.Took = history.Told, string(e.Kind), e.Tool, e.Outcome, time.Duration(e.Took)
	case messages.EventResourceUpdated:
		own.Kind = history.Updated
	case messages.EventGap:
		w.world.fail("the watcher of the manager missed %d events", e.Missed)
		return
	default:
		return
	}
	w.world.rec.Add(own)
	if own.Kind == history.Removed {
		w.world.look(own.Server, "after its end")
	}
}

// next reads one event. A watcher that panics is the manager's fault, and has nothing more to say.
func (w *world) next(ctx context.Context, from *supervisor.Watcher) (e messages.Event, err error) {
	defer func() {
		if v := recover(); v != nil {
			w.misled(messages.Line(fmt.Sprintf("it panicked: %v", v), 300))
			err = messages.ErrClosed
		}
	}()
	return from.Next(ctx)
}

// end reads what is left. A manager that has closed has said so, and of every call that began that it has ended.
func (w *watch) end() {
	w.look()
	if n := w.sequence.Open(); w.closed && n > 0 {
		w.world.misled(fmt.Sprintf("it was told of %d calls that they began, and until the end not that they ended", n))
	}
}

// over reports whether the manager has ended its watchers.
func (w *watch) over() bool { return w.closed }

// fill takes over what a status says of a phase.
func fill(e *history.Event, s *messages.Status, start time.Time) {
	e.Phase, e.Step, e.Retry, e.Class, e.Attempts = s.Status, s.Step, s.Retry, s.Class, s.Attempts
	e.Epoch, e.Warm, e.Text = s.Epoch, s.Warm, s.Error
	e.Restarts, e.Since, e.Tools = s.Restarts, s.Since.Sub(start), len(s.Tools)
	if s.NextAttempt != nil {
		e.Next = s.NextAttempt.Sub(start)
	}
}

// compare records in what a snapshot differs from the one before.
func (w *watch) compare(s *supervisor.Snapshot) {
	w.snapshot = s
	e := history.Event{Side: history.Manager, Kind: history.Snapshot, Generation: s.Generation()}
	w.world.each(func(h *host) { w.server(&e, s, h.server.Name) })
	e.Hash = fmt.Sprintf("%016x", w.sum)
	w.world.record(e)
}

func (w *watch) server(e *history.Event, s *supervisor.Snapshot, name string) {
	entries := s.Server(name)
	was := w.shown[name]
	if was.same(entries) {
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
	now := shown{entries, sumOf(states)}
	w.sum ^= was.sum ^ now.sum
	w.shown[name] = now
	e.Entries = append(e.Entries, states...)
}

// sumOf is a number that stands for the entries of a server; that of a whole snapshot is their exclusive or, so that a change
// of one server costs no more than that.
func sumOf(states []history.Entries) uint64 {
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
