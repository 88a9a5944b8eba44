package control

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Follow writes into the journal what happens to a manager's servers, from now on and with what their history holds
// already, until ctx ends or the manager is closed; it returns then. It writes the run's start, and its end. The error
// is the first write that failed: nothing more is written after that.
//
// A burst that is too fast for the journal costs nothing but detail: each server's own history is what is copied.
func (j *Journal) Follow(ctx context.Context, m *supervisor.Manager, cfg LocalConfig) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &messages.Error{Op: "journal", Class: messages.ClassPanic,
				Text: "a defect of mcpvisor ended the journal: " + messages.Line(fmt.Sprint(p), 200)}
		}
	}()
	w := m.Watch(4096)
	defer w.Close()
	f := &follower{journal: j, m: m, inherit: cfg.InheritEnv, lastEntries: map[string]supervisor.HistoryEntry{}}
	start := Record{Time: time.Now(), Kind: RecordStart, PID: os.Getpid(), Project: cfg.Project}
	if err := j.Append(start); err != nil {
		return err
	}
	if err := f.copyAll(); err != nil {
		return err
	}
	for e := range w.Events(ctx) {
		switch e.Kind {
		case messages.EventPhase:
			err = f.copyServer(e.Server, e.Status)
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

type follower struct {
	journal     *Journal
	m           *supervisor.Manager
	inherit     bool
	lastEntries map[string]supervisor.HistoryEntry // the last entry of each server that is in the journal
}

func (f *follower) copyAll() error {
	for _, st := range f.m.Status() {
		if err := f.copyServer(st.Name, &st); err != nil {
			return err
		}
	}
	return nil
}

// copyServer writes the entries that are new, and what the server is after them if it has come to a rest.
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

func (f *follower) newEntries(name string, entries []supervisor.HistoryEntry) []supervisor.HistoryEntry {
	last, ok := f.lastEntries[name]
	if len(entries) > 0 {
		f.lastEntries[name] = entries[len(entries)-1]
	}
	if !ok {
		return entries
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Time.Equal(last.Time) && entries[i].Text == last.Text {
			return entries[i+1:]
		}
	}
	return entries // so much has happened that the last one was forgotten
}

// shortStatus is a status without what is long and can be had elsewhere: the entries hold the end of standard error.
func shortStatus(st *messages.Status) *messages.Status {
	b := *st
	b.Tools, b.StderrTail, b.Instructions, b.Quarantined = nil, "", "", nil
	return &b
}
