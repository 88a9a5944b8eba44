package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

const (
	// journalLimit is the size at which a journal's file is put aside and a new one begun, in bytes. One old file is
	// kept, so at most twice as much is on disk: about 5,000 events.
	journalLimit = 1 << 20
	// repeatedLimit bounds the bytes that a new file repeats of the old one: the last status of each server.
	repeatedLimit = journalLimit / 4
	// previousSuffix ends the name of the file that was put aside.
	previousSuffix = ".1"
)

// RecordKind is the kind of a Record.
type RecordKind string

const (
	// RecordStart begins a run of a manager; PID and Project are set.
	RecordStart RecordKind = "start"
	// RecordEntry is one sentence about a server's past; Entry is set.
	RecordEntry RecordKind = "entry"
	// RecordStatus is a server's status after the entries before it; Status is set, and Withheld if the server
	// failed.
	RecordStatus RecordKind = "status"
	// RecordEnd ends a run in good order. A run without one was killed, or still goes on.
	RecordEnd RecordKind = "end"
)

// Record is one line of a journal. Unset fields are left out of the line.
type Record struct {
	// Time is the time of the event for an entry, and that of the writing for the other kinds.
	Time    time.Time  `json:"time"`
	Kind    RecordKind `json:"kind"`
	PID     int        `json:"pid,omitempty"`
	Project string     `json:"project,omitempty"`
	// Server names the server of an entry or a status; empty for the start and the end of a run.
	Server string                   `json:"server,omitempty"`
	Entry  *supervisor.HistoryEntry `json:"entry,omitempty"`
	Status *messages.Status         `json:"status,omitempty"`
	// Withheld are the names of the variables that a failed server did not get; never their values.
	Withheld []string `json:"withheldEnv,omitempty"`
}

// journalVersion is the form of a line. Members may be added within a version, because no program writes a line that it has read; none
// is removed or changes its meaning. Lines of the first programs have no number.
const journalVersion = 1

// journalLine is a Record as it stands in the file.
type journalLine struct {
	Version int `json:"v,omitempty"`
	Record
}

// Journal is an append-only file of records, one JSON object a line. It is safe for concurrent use within one
// process; the lock of the location keeps other processes away.
type Journal struct {
	path string

	// mu guards the fields below, and orders the writes.
	mu   sync.Mutex
	file *os.File // nil after Close, or after a rotation that failed
	size int64    // of the file, in bytes
	// startLine and statusLines (by server) are the lines with which a new file begins. They are the present state,
	// and would be lost with the second rotation otherwise.
	startLine   []byte
	statusLines map[string][]byte
}

// OpenJournal opens the journal for appending, and creates it and its directory if need be, with modes 0600 and 0700.
// It ends a line that a killed process left unfinished.
func OpenJournal(path string) (*Journal, error) {
	if err := makePrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	j := &Journal{path: path, statusLines: map[string][]byte{}}
	if err := j.openFile(); err != nil {
		return nil, locationError("the journal "+messages.Line(path, 0)+" cannot be opened", err)
	}
	return j, nil
}

// openFile opens the file and completes its last line.
func (j *Journal) openFile() error {
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	j.file, j.size = f, info.Size()
	if j.size > 0 {
		// Without this the next record would be part of the broken line, and be lost with it.
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, j.size-1); err == nil && end[0] != '\n' {
			return j.writeLine([]byte("\n"))
		}
	}
	return nil
}

// Append writes records, each in one write, so that a reader never sees half of one from a living process.
func (j *Journal) Append(records ...Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return locationError("the journal is closed", nil)
	}
	for i := range records {
		line, err := json.Marshal(journalLine{journalVersion, records[i]})
		if err != nil {
			return locationError("a record of the journal cannot be written as JSON", err)
		}
		// The state for a new file is updated first: a rotation below must repeat this line's state.
		line = append(line, '\n')
		switch r := &records[i]; r.Kind {
		// A new run forgets the servers of the last one.
		case RecordStart:
			j.startLine, j.statusLines = line, map[string][]byte{}
		case RecordStatus:
			j.statusLines[r.Server] = line
		case RecordEntry, RecordEnd:
		}
		if j.size > 0 && j.size+int64(len(line)) > journalLimit {
			if err := j.rotate(); err != nil {
				return locationError("the journal cannot be put aside", err)
			}
		}
		if err := j.writeLine(line); err != nil {
			return locationError("the journal cannot be written", err)
		}
	}
	return nil
}

// writeLine writes and counts the bytes, also those of a failed write. The caller holds mu.
func (j *Journal) writeLine(line []byte) error {
	n, err := j.file.Write(line)
	j.size += int64(n)
	return err
}

// rotate puts the file aside, in place of the older one, and begins a new file with the present state. If the
// file cannot be renamed or opened, the journal has none, and every later Append fails. The caller holds mu.
func (j *Journal) rotate() error {
	j.file.Close()
	j.file = nil
	if err := os.Rename(j.path, j.path+previousSuffix); err != nil {
		return err
	}
	if err := j.openFile(); err != nil {
		return err
	}
	// The order of the servers is that of the map: a reader does not depend on it.
	repeated := slices.Clone(j.startLine)
	for _, line := range j.statusLines {
		if len(repeated)+len(line) > repeatedLimit {
			break
		}
		repeated = append(repeated, line...)
	}
	return j.writeLine(repeated)
}

// Close closes the journal; Append fails afterwards. It is idempotent.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// ReadJournal reads the records of a journal, oldest first, also while another process writes it. Lines that cannot
// be read are left out; if a newer program wrote some of them, the records come with an error that wraps a
// [*files.NewerError]. A journal that does not exist has no records.
func ReadJournal(path string) ([]Record, error) {
	var out []Record
	newest := 0
	for _, file := range []string{path + previousSuffix, path} {
		// The old file comes first, so the records are in order. A rotation in between may show records twice or not
		// at all.
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, locationError("the journal "+messages.Line(file, 0)+" cannot be read", err)
		}
		for line := range bytes.Lines(data) {
			var l journalLine
			if json.Unmarshal(line, &l) == nil && l.Version <= journalVersion && l.Kind != "" {
				out = append(out, l.Record)
			}
			newest = max(newest, l.Version)
		}
	}
	if newest > journalVersion {
		newer := &files.NewerError{What: "a part of the journal " + messages.Line(path, 0), Version: newest, Reads: journalVersion}
		return out, &messages.Error{Op: "control", Class: messages.ClassConfig, Text: newer.Error(), Fix: "upgrade mcpvisor", Err: newer}
	}
	return out, nil
}

// PastRun is the journal's knowledge of one server in the last run that had it.
type PastRun struct {
	// Started is the beginning of that run, Ended its end in good order, zero if there was none.
	Started, Ended time.Time
	PID            int
	History
}

// PastRunOf returns the past of a server; false if no run had it. It reads the records once, in order, and keeps the
// newest run with a record of the server.
func PastRunOf(records []Record, server string) (PastRun, bool) {
	var run, found PastRun
	known := false
	for i := range records {
		r := &records[i]
		switch {
		case r.Kind == RecordStart && (r.PID != run.PID || !r.Time.Equal(run.Started)): // an equal start was repeated by a rotation
			run = PastRun{Started: r.Time, PID: r.PID}
		case r.Kind == RecordEnd:
			// The server's last record may have come before the end of the run.
			run.Ended = r.Time
			if known && found.PID == run.PID && found.Started.Equal(run.Started) {
				found.Ended = r.Time
			}
		// Records of other servers do not matter from here on.
		case r.Server != server:
		case r.Kind == RecordEntry && r.Entry != nil:
			run.Entries = append(run.Entries, *r.Entry)
			// found is the newest run that has a record of this server; a later run without one does not replace it.
			found, known = run, true
		case r.Kind == RecordStatus && r.Status != nil:
			run.Status, run.Withheld = *r.Status, r.Withheld
			found, known = run, true
		}
	}
	return found, known
}
