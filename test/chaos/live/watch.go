package live

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// watchBuffer is how many of the manager's events may wait for us. A thousand servers that die together make ten
// thousand in a moment.
const watchBuffer = 1 << 18

// watch records what the manager says until it is closed. It is a goroutine of its own.
func (r *run) watch(w *supervisor.Watcher) {
	defer close(r.watched)
	ended := make(chan struct{})
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		r.sample(ended)
	}()
	defer func() { close(ended); <-sampled }()
	var sequence history.Sequence
	for e := range w.Events(context.Background()) {
		if wrong := sequence.Next(e); wrong != "" {
			r.record(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I19", Text: "a watcher was misled: " + wrong})
		}
		switch e.Kind {
		case messages.EventPhase, messages.EventAuthRequired:
			if e.Kind == messages.EventPhase {
				r.recordPhase(history.Phase, e.Status, r.since(e.Time), "")
				r.stumbled(e.Status)
			}
			r.secrets.status(e.Status)
		case messages.EventRemoved:
			r.record(history.Event{Side: history.Manager, Kind: history.Removed, Server: e.Server, T: r.since(e.Time)})
			r.tally.phase(e.Server, "")
			r.look(e.Server, "after its end")
		case messages.EventCallStarted, messages.EventCallEnded:
			r.record(history.Event{Side: history.Manager, Kind: history.Told, Server: e.Server, T: r.since(e.Time), Method: string(e.Kind),
				Tool: e.Tool, Outcome: e.Outcome, Took: time.Duration(e.Took)})
		case messages.EventAuth:
			r.record(history.Event{Side: history.Manager, Kind: history.Auth, Server: e.Server, T: r.since(e.Time)})
		case messages.EventGap:
			r.record(history.Event{Side: history.Harness, Kind: history.Violation, Name: "harness",
				Text: "the record has a gap: the manager's events came faster than they could be written down"})
		default:
		}
	}
}

// since is a time of the manager's on the clock of the run.
func (r *run) since(t time.Time) time.Duration { return max(t.Sub(r.began), 1) }

// recordPhase records what a status says.
func (r *run) recordPhase(kind history.Kind, st *messages.Status, at time.Duration, name string) {
	if st == nil {
		return
	}
	e := history.Event{
		Side: history.Manager, Kind: kind, Server: st.Name, T: at, Phase: st.Status, Step: st.Step, Retry: st.Retry,
		Class: st.Class, Attempts: st.Attempts, Epoch: st.Epoch, Warm: st.Warm, Text: st.Error, Name: name,
	}
	if kind == history.Status {
		e.Side = history.Harness
	}
	if st.NextAttempt != nil {
		e.Next = r.since(*st.NextAttempt)
	}
	r.record(e)
	r.tally.phase(st.Name, st.Status)
}

// statuses records what every server's status says now.
func (r *run) statuses(when string) {
	for _, st := range r.manager.Status() {
		r.recordPhase(history.Status, &st, r.now(), when)
	}
}

// look records what the status says of one server, if it stands there.
func (r *run) look(server, when string) {
	if st, err := r.manager.ServerStatus(server); err == nil {
		e := history.Event{Side: history.Harness, Kind: history.Status, Server: server, T: r.now(), Phase: st.Status, Step: st.Step,
			Epoch: st.Epoch, Text: when}
		r.record(e)
	}
}

// sampleEvery is the time between two looks at the catalog. A look is one atomic load as long as nothing has changed.
const sampleEvery = time.Millisecond

// sample records each snapshot that is there when it looks, until ended is closed. It does not wait for the manager to tell
// of it: what was told of would have been replaced by the time it is read, and its time would be wrong.
func (r *run) sample(ended <-chan struct{}) {
	seen, sums := entries{}, hashes{}
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		r.recordSnapshot(seen, sums)
		select {
		case <-t.C:
		case <-ended:
			r.recordSnapshot(seen, sums)
			return
		}
	}
}

// entries are what the last recorded snapshot had of each server.
type entries map[string]history.Entries

// recordSnapshot records the snapshot that is published now, if it is another one than the last: those in between were
// replaced before anybody could look.
func (r *run) recordSnapshot(seen entries, sums hashes) {
	at := r.now()
	snap := r.manager.Tools()
	if g := seen[""]; g.Epoch == snap.Generation() {
		return
	}
	seen[""] = history.Entries{Epoch: snap.Generation()}
	e := history.Event{Side: history.Manager, Kind: history.Snapshot, Generation: snap.Generation(), T: at}
	for _, srv := range r.plan.Servers {
		name := srv.Name
		now := history.Entries{Server: name}
		tools := snap.Server(name)
		if now.Count = len(tools); now.Count > 0 {
			now.State, now.Epoch, now.Hash = tools[0].State.String(), tools[0].Epoch, sums.of(name, tools)
			if r.plan.Denies(name) {
				now.Tools = history.NamesOf(toolsOf(tools))
			}
		}
		if was, known := seen[name]; known && was == now || !known && now.Count == 0 {
			continue
		}
		seen[name] = now
		e.Entries = append(e.Entries, now)
	}
	r.record(e)
}

// toolsOf are the tools of some entries.
func toolsOf(entries []*supervisor.Entry) []messages.Tool {
	out := make([]messages.Tool, len(entries))
	for i, e := range entries {
		out[i] = *e.Tool
	}
	return out
}

// stumbled lets a server that cannot be reached know that it was tried.
func (r *run) stumbled(st *messages.Status) {
	if s := r.seats[st.Name]; s != nil && st.Class != "" && st.Status != messages.Connected {
		s.stumbled(st.Class)
	}
}
