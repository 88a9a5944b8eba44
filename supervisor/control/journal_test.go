package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

func openJournal(t *testing.T, path string) *control.Journal {
	t.Helper()
	j, err := control.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func readJournal(t *testing.T, path string) []control.Record {
	t.Helper()
	records, err := control.ReadJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func entry(server string, n int) control.Record {
	at := time.Unix(int64(n), 0).UTC()
	return control.Record{Time: at, Kind: control.RecordEntry, Server: server,
		Entry: &supervisor.HistoryEntry{Time: at, Phase: messages.Failed, Text: fmt.Sprint("entry ", n)}}
}

func status(server string, phase messages.Phase) control.Record {
	return control.Record{Time: time.Unix(9, 0).UTC(), Kind: control.RecordStatus, Server: server,
		Status: &messages.Status{Name: server, Status: phase}}
}

func start(pid int, at int64) control.Record {
	return control.Record{Time: time.Unix(at, 0).UTC(), Kind: control.RecordStart, PID: pid}
}

func TestAJournalGivesBackWhatItWasGiven(t *testing.T) {
	path := newLocation(t).Journal
	if got := readJournal(t, path); len(got) != 0 {
		t.Errorf("a journal that is not there has %d records", len(got))
	}
	j := openJournal(t, path)
	want := []control.Record{start(7, 1), entry("a", 1), status("a", messages.Failed)}
	if err := j.Append(want...); err != nil {
		t.Fatal(err)
	}
	j.Close()
	j.Close()
	if err := j.Append(start(1, 1)); err == nil {
		t.Error("a closed journal takes records")
	}
	j = openJournal(t, path) // the next run goes on
	if err := j.Append(start(8, 2)); err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, readJournal(t, path)); got != asJSON(t, append(want, start(8, 2))) {
		t.Errorf("the journal has %s", got)
	}
	unixOnly(t)
	for file, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v (%v)", file, info.Mode().Perm(), err)
		}
	}
}

// A killed process may leave half a line, which costs only itself.
func TestADamagedLineCostsItself(t *testing.T) {
	path := newLocation(t).Journal
	j := openJournal(t, path)
	if err := j.Append(entry("a", 1)); err != nil {
		t.Fatal(err)
	}
	j.Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "\x00\xff not json\n{}\n"+`{"time":"2026-01-01T00:00:00Z","kind":"ent`)
	f.Close()
	j = openJournal(t, path)
	if err := j.Append(entry("a", 2)); err != nil {
		t.Fatal(err)
	}
	got := readJournal(t, path)
	if len(got) != 2 || got[0].Entry.Text != "entry 1" || got[1].Entry.Text != "entry 2" {
		t.Errorf("the journal has %s", asJSON(t, got))
	}
}

// With any number of records, two files of 1 MiB hold the journal, and the start of the run and the last status of
// each server are still there.
func TestAJournalIsBounded(t *testing.T) {
	path := newLocation(t).Journal
	j := openJournal(t, path)
	if err := j.Append(start(7, 1), status("quiet", messages.NeedsAuth)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1000)
	const total = 4000 // 4 MiB
	for i := range total {
		e := entry("loud", i)
		e.Entry.Stderr = long
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	size := int64(0)
	for _, file := range []string{path, path + ".1"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 2<<20 || size < 1<<20 {
		t.Errorf("the journal takes %d bytes", size)
	}
	if files, err := filepath.Glob(path + "*"); err != nil || len(files) != 2 {
		t.Errorf("the files are %v (%v)", files, err)
	}
	records := readJournal(t, path)
	quiet, ok := control.PastRunOf(records, "quiet")
	if !ok || quiet.Status.Status != messages.NeedsAuth || quiet.PID != 7 {
		t.Errorf("the quiet server's past is %+v, %v", quiet, ok)
	}
	loud, ok := control.PastRunOf(records, "loud")
	if n := len(loud.Entries); !ok || n < 900 || loud.Entries[n-1].Text != fmt.Sprint("entry ", total-1) {
		t.Errorf("the loud server has %d entries, %v", len(loud.Entries), ok)
	}
}

func TestPastIsOfTheLastRunThatKnewTheServer(t *testing.T) {
	end := func(at int64) control.Record {
		return control.Record{Time: time.Unix(at, 0).UTC(), Kind: control.RecordEnd}
	}
	records := []control.Record{
		entry("a", 0), // the beginning of this run was lost
		start(1, 10), entry("a", 11), entry("b", 12), end(13),
		start(2, 20), entry("a", 21), start(2, 20), status("a", messages.Connected), entry("a", 22), // carried over
		start(3, 30), entry("c", 31),
	}
	a, ok := control.PastRunOf(records, "a")
	if !ok || a.PID != 2 || !a.Ended.IsZero() || len(a.Entries) != 2 || a.Entries[0].Text != "entry 21" ||
		a.Status.Status != messages.Connected {
		t.Errorf("a: %+v, %v", a, ok)
	}
	b, ok := control.PastRunOf(records, "b")
	if !ok || b.PID != 1 || b.Ended.Unix() != 13 || len(b.Entries) != 1 {
		t.Errorf("b: %+v, %v", b, ok)
	}
	if _, ok := control.PastRunOf(records, "d"); ok {
		t.Error("d has a past")
	}
}

func TestFollowWritesEveryServersPast(t *testing.T) {
	s := newTestManager(t)
	j := openJournal(t, s.location.Journal)
	followed := make(chan error)
	go func() { followed <- j.Follow(t.Context(), s.m, control.LocalConfig{Project: "/the/project"}) }()
	// The events before Follow are in the journal as soon as the status of p is.
	until(t, s.location.Journal, "p", messages.Connected)
	if err := s.m.Toggle(t.Context(), "p", false); err != nil {
		t.Fatal(err)
	}
	until(t, s.location.Journal, "p", messages.Disabled)
	if err := s.m.Reconnect(t.Context(), "off"); err == nil {
		t.Fatal("a disabled server was reconnected")
	}
	if err := s.m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	records := readJournal(t, s.location.Journal)
	if records[0].Kind != control.RecordStart || records[0].PID != os.Getpid() || records[0].Project != "/the/project" ||
		records[len(records)-1].Kind != control.RecordEnd {
		t.Errorf("the run is not framed: %s", asJSON(t, records))
	}
	past, _ := control.PastRunOf(records, "p")
	var texts []string
	for _, e := range past.Entries {
		texts = append(texts, string(e.Phase))
	}
	if got := strings.Join(texts, " "); !strings.HasPrefix(got, "pending pending pending pending connected disabled") {
		t.Errorf("the past of p is: %s", got)
	}
	if past.Ended.IsZero() {
		t.Error("the run has no end")
	}
	seen := map[string]int{}
	for _, e := range past.Entries {
		seen[e.Time.String()+e.Text]++
	}
	for e, n := range seen {
		if n > 1 {
			t.Errorf("%q stands %d times in the journal", e, n)
		}
	}
}

// until waits for a status in the journal.
func until(t *testing.T, path, server string, phase messages.Phase) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		if past, ok := control.PastRunOf(readJournal(t, path), server); ok && past.Status.Status == phase {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the journal never says that %s is %s", server, phase)
		}
	}
}

// No secret of a configuration reaches the journal.
func TestTheJournalHoldsNoSecret(t *testing.T) {
	const canary = "canary-5f1d"
	path := newLocation(t).Journal
	m, err := supervisor.Start(t.Context(), supervisor.Config{Servers: map[string]supervisor.Spec{
		"a": {Command: "no-such-command", Env: map[string]string{"TOKEN": canary}},
		"b": {URL: "http://127.0.0.1:1/?key=" + canary, Headers: map[string]string{"Authorization": canary}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	j := openJournal(t, path)
	followed := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { followed <- j.Follow(ctx, m, control.LocalConfig{}) }()
	until(t, path, "a", messages.Failed)
	until(t, path, "b", messages.Failed)
	cancel()
	if err := <-followed; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), canary) {
		t.Errorf("the journal holds it:\n%s", data)
	}
}
