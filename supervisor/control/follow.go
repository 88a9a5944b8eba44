package control

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Follow writes the past and the future of a manager's servers into the journal: their history until now, then every
// change, until ctx ends or the manager is closed. It writes the run's start and its end. The error is the first
// write that failed: nothing more is written after that. The caller runs it on a goroutine of its own, where a panic
// becomes an error.
//
// If events come too fast for the journal, only details are lost: it copies each server's own history, not the
// events.
func (j *Journal) Follow(ctx context.Context, m *supervisor.Manager, cfg LocalConfig) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &messages.Error{Op: "journal", Class: messages.ClassPanic,
				Text: "a defect of mcpvisor ended the journal: " + messages.Line(fmt.Sprint(p), 200)}
		}
	}()
	w := m.Watch(4096).WithoutCalls() // a full queue becomes a gap, after which everything is copied
	defer w.Close()
	f := &follower{journal: j, m: m, inherit: cfg.InheritEnv, lastEntries: map[string]supervisor.HistoryEntry{}}
	// The start comes first, so that a reader knows to which run the records belong.
	start := Record{Time: time.Now(), Kind: RecordStart, PID: os.Getpid(), Project: cfg.Project}
	if err := j.Append(start); err != nil {
		return err
	}
	if err := f.copyAll(); err != nil {
		return err
	}
	for e := range w.Events(ctx) {
		switch e.Kind {
		// Only changes of a server's state are written; lists, logs and progress are not.
		case messages.EventPhase:
			err = f.copyServer(e.Server, e.Status)
		// Instances of servers come and go under ever new names.
		case messages.EventRemoved:
			delete(f.lastEntries, e.Server)
		case messages.EventGap:
			err = f.copyAll()
		default:
			continue
		}
		if err != nil {
			return err
		}
	}
	return j.Append(Record{Time: time.Now(), Kind: RecordEnd, PID: start.PID})
}

// A follower copies the history of servers into a journal. One goroutine uses it. It compares with the last entry
// that it wrote, because a manager's history has no numbers.
type follower struct {
	// The journal must not be closed before Follow has returned.
	journal     *Journal
	m           *supervisor.Manager
	inherit     bool                               // Config.InheritEnv of the manager
	lastEntries map[string]supervisor.HistoryEntry // by server: its last entry that is in the journal
}

// copyAll copies every server, at the start and after a gap.
func (f *follower) copyAll() error {
	for _, st := range f.m.Status() {
		if err := f.copyServer(st.Name, &st); err != nil {
			return err
		}
	}
	return nil
}

// copyServer writes the new entries of a server's history, and its status after them if the server is at rest: a
// status on the way would be out of date in the next line.
func (f *follower) copyServer(name string, st *messages.Status) error {
	entries, err := f.m.History(name)
	if err != nil {
		return nil //nolint:nilerr // it was removed in the meantime
	}
	var records []Record
	for _, e := range f.newEntries(name, entries) {
		records = append(records, Record{Time: e.Time, Kind: RecordEntry, Server: name, Entry: &e})
	}
	if st != nil && (st.Status != messages.Pending || st.Step == messages.Restarting) {
		r := Record{Time: time.Now(), Kind: RecordStatus, Server: name, Status: shortStatus(st)}
		if st.Status == messages.Failed {
			r.Withheld = WithheldEnv(*st, f.inherit)
		}
		records = append(records, r)
	}
	return f.journal.Append(records...)
}

// newEntries returns the entries that are not in the journal yet, and remembers the last one.
func (f *follower) newEntries(name string, entries []supervisor.HistoryEntry) []supervisor.HistoryEntry {
	last, ok := f.lastEntries[name]
	if len(entries) > 0 {
		f.lastEntries[name] = entries[len(entries)-1]
	}
	if !ok {
		return entries
	}
	// The known entry is near the end, so the search begins there. Time and text together identify an entry.
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Time.Equal(last.Time) && entries[i].Text == last.Text {
			return entries[i+1:]
		}
	}
	return entries // the last one was forgotten, so all of these are newer
}

// shortStatus returns a status without its long fields: tools and instructions can be fetched, and the entries hold
// the end of standard error.
func shortStatus(st *messages.Status) *messages.Status {
	b := *st
	b.Tools, b.StderrTail, b.Instructions, b.Quarantined = nil, "", "", nil
	return &b
}
