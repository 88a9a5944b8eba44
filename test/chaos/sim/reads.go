package sim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// statusReads compares what the methods of the facade say at one moment: they are different ways to the same published values. It
// also compares each server's history with the phases that were published, and waits for the servers to settle now and then.
type statusReads struct {
	// lookCount counts the looks, so that some of them do more.
	lookCount int
	// published are the phases of each server since it was added, the newest last.
	published map[string][]publishedPhase
}

// publishedPhase is one Phase event of the manager.
type publishedPhase struct {
	at     time.Time
	status *messages.Status
}

// keptPhases bounds publishedPhase: more than a history has entries.
const keptPhases = 400

// notePhase keeps a published phase. A nil status stands for the removal of the server.
func (r *statusReads) notePhase(server string, at time.Time, status *messages.Status) {
	if r.published == nil {
		r.published = map[string][]publishedPhase{}
	}
	if status == nil {
		delete(r.published, server)
		return
	}
	all := append(r.published[server], publishedPhase{at, status})
	r.published[server] = all[max(0, len(all)-keptPhases):]
}

// comparedShare is the number of looks after which each server was compared in all ways. What the ways say differs for good once it
// differs, so that a look at a third of the servers finds it soon, and costs a third.
const comparedShare = 3

// compareReads judges what the manager says of itself while nothing moves. statuses are those of this moment.
func (w *simulation) compareReads(statuses []messages.Status) {
	m := w.manager
	w.reads.lookCount++
	var names, connected []string
	for i := range statuses {
		st := &statuses[i]
		names = append(names, st.Name)
		if st.Status == messages.Connected {
			connected = append(connected, st.Name)
		}
		if (i+w.reads.lookCount)%comparedShare == 0 {
			w.compareServerReads(st)
			w.compareHistory(st.Name)
		}
	}
	if all := m.Servers(); !slices.Equal(all, names) {
		w.reportBrokenPromise("", fmt.Sprintf("Servers says %q and Status says %q", all, names))
	}
	if all := m.ConnectedServers(); !slices.Equal(all, connected) {
		w.reportBrokenPromise("", fmt.Sprintf("ConnectedServers says %q, and by Status %q are connected", all, connected))
	}
	w.compareCatalog(names)
	switch w.reads.lookCount % 3 {
	case 1:
		w.users.runAsUser(w.useUnknownNames)
	case 2:
		w.users.runAsUser(w.awaitSettled)
	}
}

// compareServerReads compares the ways to the status and the tools of one server.
func (w *simulation) compareServerReads(st *messages.Status) {
	m, name := w.manager, st.Name
	one, err := m.ServerStatus(name)
	if err != nil || !reflect.DeepEqual(one, *st) {
		w.reportBrokenPromise(name, fmt.Sprintf("ServerStatus says %s (%v), and Status says %s", describeStatus(&one), err, describeStatus(st)))
	}
	w.compareConfig(st)
	handle := m.Server(name)
	if handle == nil {
		w.reportBrokenPromise(name, "it stands in the status, and Server returns nothing for its name")
		return
	}
	if own, err := handle.Status(); handle.Name() != name || err != nil || own.Status != st.Status || handle.IsConnected() != (st.Status == messages.Connected) {
		w.reportBrokenPromise(name, fmt.Sprintf("its handle is called %s and says %s, connected %t (%v), and Status says %s", handle.Name(), describeStatus(&own),
			handle.IsConnected(), err, describeStatus(st)))
	}
	entries := m.Tools().Server(name)
	if !slices.Equal(handle.Tools(), entries) {
		w.reportBrokenPromise(name, fmt.Sprintf("its handle has %d tools, and the catalog has %d", len(handle.Tools()), len(entries)))
	}
	// Without tools ToolsOf would connect a server that rests.
	if len(entries) > 0 || st.Status != messages.Pending {
		if own, err := m.ToolsOf(w.watch.canceledCtx, name); err != nil || !slices.Equal(own, entries) {
			w.reportBrokenPromise(name, fmt.Sprintf("ToolsOf says %d tools (%v), and the catalog has %d", len(own), err, len(entries)))
		}
	}
}

// compareConfig judges that a status has the specification that the owner gave last, without its secrets, once that is long ago.
func (w *simulation) compareConfig(st *messages.Status) {
	h := w.servers[st.Name]
	if h == nil || h.removed || st.Config == nil {
		return
	}
	for _, o := range w.plan.Commands {
		if at := o.At; at <= w.virtualNow && at > w.virtualNow-configBound && (o.Server == st.Name || o.Server == "") {
			return
		}
	}
	if w.stuckUntil(st.Name) > w.virtualNow-configBound {
		return
	}
	want := h.spec.Redacted()
	want.Scope, want.Source, want.Disabled = st.Config.Scope, st.Config.Source, st.Config.Disabled
	got := st.Config.Redacted()
	// A specification that came by message has milliseconds.
	for _, s := range []*messages.Spec{&want, &got} {
		for _, d := range []*messages.Duration{&s.ConnectTimeout, &s.CallTimeout, &s.MaxCallTimeout, &s.IdleTimeout, &s.InstanceIdle, &s.StopGrace} {
			*d -= *d % messages.Duration(time.Millisecond)
		}
	}
	if got.Equal(want) {
		return
	}
	for i, v := 0, reflect.ValueOf(got); i < v.NumField(); i++ {
		if shown, wanted := v.Field(i).Interface(), reflect.ValueOf(want).Field(i).Interface(); !reflect.DeepEqual(shown, wanted) {
			w.reportBrokenPromise(st.Name, fmt.Sprintf("its status says %v for %s of its specification, and its owner gave %v", shown, v.Type().Field(i).Name, wanted))
			return
		}
	}
}

// stuckUntil returns until when the dials of a server may be held that the fault stuck-dial keeps from returning; 0 if there are none yet.
// The server of before ends with its dial, and the commands about the new one wait. Other faults may hold the answer of such a dial longer.
func (w *simulation) stuckUntil(server string) (until time.Duration) {
	for _, f := range w.plan.Faults {
		if f.Fault == "stuck-dial" && f.Server == server && f.Begin <= w.virtualNow {
			until = max(until, f.End)
		}
	}
	if until == 0 {
		return 0
	}
	for range w.plan.Faults { // each round may add one fault that begins before the end of those before it
		for _, f := range w.plan.Faults {
			if f.Server == server && f.Begin <= until {
				until = max(until, f.End)
			}
		}
	}
	return until
}

// configBound is the time after which a command of the owner is over, also one that waits for the end of the server of before.
const configBound = 90 * time.Second

// describeStatus says in a few words what a status says.
func describeStatus(st *messages.Status) string {
	return fmt.Sprintf("%s %s %s, %d attempts, %d restarts, %d tools", st.Status, st.Step, st.Retry, st.Attempts, st.Restarts, len(st.Tools))
}

// compareCatalog judges that each tool of the newest snapshot is found by each of its names, and stands in it once.
func (w *simulation) compareCatalog(names []string) {
	s := w.manager.Tools()
	all, err := w.manager.ToolsOf(w.watch.canceledCtx)
	if listed := slices.Collect(s.All()); err != nil || !slices.Equal(all, listed) || len(listed) != s.Len() {
		w.reportBrokenPromise("", fmt.Sprintf("ToolsOf says %d tools (%v), All says %d and Len says %d", len(all), err, len(listed), s.Len()))
	}
	counts := map[string]int{}
	for e := range s.All() {
		counts[e.Tool.Server]++
		byName, _ := s.Lookup(e.Name)
		byTool, _ := s.LookupTool(e.Tool.Server, e.Tool.Name)
		if byName != e || byTool != e {
			w.reportBrokenPromise(e.Tool.Server, "the tool "+e.Name+" is in the catalog and not found by its names")
		}
	}
	for _, server := range s.Servers() {
		if counts[server] == 0 || counts[server] != len(s.Server(server)) || !slices.Contains(names, server) {
			w.reportBrokenPromise(server, fmt.Sprintf("the catalog has %d tools of it in all, and %d under its name", counts[server], len(s.Server(server))))
		}
		delete(counts, server)
	}
	for server := range counts {
		w.reportBrokenPromise(server, "the catalog has tools of it, and does not say so")
	}
}

// compareHistory judges that the history of a server tells what was published: each entry the phase of its time, and each phase
// an entry.
func (w *simulation) compareHistory(server string) {
	entries, err := w.manager.History(server)
	if err != nil {
		w.reportBrokenPromise(server, "it stands in the status, and its history is refused: "+err.Error())
		return
	}
	published := w.reads.published[server]
	if len(published) == 0 {
		return
	}
	for i, e := range entries {
		switch {
		case i > 0 && e.Time.Before(entries[i-1].Time):
			w.reportBrokenPromise(server, "its history goes back in time at: "+e.Text)
		case e.Text == "":
			w.reportBrokenPromise(server, "its history has an entry without a text")
		case e.Time.Before(published[0].at) || slices.ContainsFunc(published, func(p publishedPhase) bool { return p.tellsOf(e) }):
		default:
			w.reportBrokenPromise(server, fmt.Sprintf("its history says %s %s at %s, which it was not: %s", e.Phase, e.Step, w.timeOf(e.Time), e.Text))
		}
	}
	for i, p := range published {
		if i == 0 || len(entries) == 0 || !p.at.After(entries[0].Time) || p.status.Status == published[i-1].status.Status || p.status.Status == messages.Pending {
			continue
		}
		if !slices.ContainsFunc(entries, func(e supervisor.HistoryEntry) bool {
			return !e.Time.After(p.at) && p.status.Status == e.Phase && p.status.Epoch == e.Epoch
		}) {
			w.reportBrokenPromise(server, fmt.Sprintf("it was %s at %s, of which its history says nothing", p.status.Status, w.timeOf(p.at)))
		}
	}
}

// tellsOf reports whether an entry may be about this phase: it says the same, not before it was published.
func (p publishedPhase) tellsOf(e supervisor.HistoryEntry) bool {
	return p.status.Status == e.Phase && p.status.Step == e.Step && p.status.Epoch == e.Epoch && !p.at.After(e.Time)
}

// timeOf is a time as one of the run.
func (w *simulation) timeOf(t time.Time) time.Duration { return t.Sub(w.start) }

// useUnknownNames asks for servers and tools that do not exist. Each answer says that, and nothing was sent.
func (w *simulation) useUnknownNames() {
	const nobody = "nobody-has-this-name"
	m := w.manager
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	unknown := func(what string, err, want error) {
		if err != nil && errors.Is(err, messages.ErrClosed) {
			return
		}
		if !errors.Is(err, want) || messages.ClassOf(err) != messages.ClassInvalid || !strings.Contains(err.Error(), nobody) {
			w.reportBrokenPromise("", fmt.Sprintf("%s of a name that nobody has is answered with %v", what, err))
		}
	}
	unknown("Toggle", m.Toggle(ctx, nobody, true), messages.ErrUnknownServer)
	unknown("Disconnect", m.Disconnect(ctx, nobody), messages.ErrUnknownServer)
	unknown("Reconnect", m.Reconnect(ctx, nobody), messages.ErrUnknownServer)
	unknown("Refresh", m.Refresh(ctx, nobody), messages.ErrUnknownServer)
	unknown("Remove", m.Remove(ctx, nobody), messages.ErrUnknownServer)
	unknown("Settled", m.Settled(ctx, nobody), messages.ErrUnknownServer)
	_, err := m.ServerStatus(nobody)
	unknown("ServerStatus", err, messages.ErrUnknownServer)
	_, err = m.History(nobody)
	unknown("History", err, messages.ErrUnknownServer)
	_, err = m.ToolsOf(ctx, nobody)
	unknown("ToolsOf", err, messages.ErrUnknownServer)
	_, err = m.Ping(ctx, nobody)
	unknown("Ping", err, messages.ErrUnknownServer)
	_, err = m.Resources(ctx, nobody)
	unknown("Resources", err, messages.ErrUnknownServer)
	_, err = m.ReadServerResource(ctx, nobody, "chaos://one")
	unknown("ReadServerResource", err, messages.ErrUnknownServer)
	_, err = m.GetServerPrompt(ctx, nobody, "greet", nil)
	unknown("GetServerPrompt", err, messages.ErrUnknownServer)
	_, err = m.Task(ctx, nobody, "task-1")
	unknown("Task", err, messages.ErrUnknownServer)
	unknown("SubscribeResource", m.SubscribeResource(ctx, nobody, "chaos://one"), messages.ErrUnknownServer)
	unknown("CancelTask", m.CancelTask(ctx, nobody, "task-1"), messages.ErrUnknownServer)
	if m.Server(nobody) != nil {
		w.reportBrokenPromise("", "there is a handle on a server that nobody has added")
	}
}

// settledTimeout bounds how long the harness waits for all servers to settle.
const settledTimeout = 50 * time.Second

// readSettled is the Method of the record of a wait until no server changes its phase by itself. Invariant I20 judges it by the phases.
const readSettled = "settled"

// awaitSettled waits until no server changes its phase by itself, and records from when to when.
func (w *simulation) awaitSettled() {
	ctx, cancel := context.WithTimeout(context.Background(), settledTimeout)
	defer cancel()
	e := history.Event{T: w.elapsedTime(), Side: history.Caller, Kind: history.Reading, Method: readSettled}
	w.rec.Add(e)
	err := w.manager.Settled(ctx)
	if errors.Is(err, messages.ErrNotConnected) {
		err = nil // it has waited, and tells of specs that cannot work
	}
	e.Kind, e.Took = history.ReadEnd, w.elapsedTime()-e.T
	e.T += e.Took
	if e.Class = messages.ClassOf(err); err != nil {
		e.Text = err.Error()
		if own := (*messages.Error)(nil); errors.As(err, &own) {
			e.Name = own.Server
		}
	}
	w.rec.Add(e)
}
