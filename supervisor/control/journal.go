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
)

const (
	// journalLimit is when a journal's file is put aside and a new one begun, in bytes. One old file is kept, so that at
	// most twice as much is on disk: about 5,000 events.
	journalLimit = 1 << 20
	// repeatedLimit bounds what a new file repeats of the old one: the last word about each server.
	repeatedLimit = journalLimit / 4
	// previousSuffix ends the name of the file that was put aside.
	previousSuffix = ".1"
)

// RecordKind says what a Record tells.
type RecordKind string

const (
	// RecordStart begins a run of a manager; PID and Project are set.
	RecordStart RecordKind = "start"
	// RecordEntry is one sentence about a server's past; Entry is set.
	RecordEntry RecordKind = "entry"
	// RecordStatus is what a server was after the entries before; Status is set, and Withheld when it fails.
	RecordStatus RecordKind = "status"
	// RecordEnd ends a run in good order. A run without one was killed, or still goes on.
	RecordEnd RecordKind = "end"
)

// Record is one line of a journal.
type Record struct {
	Time     time.Time                `json:"time"`
	Kind     RecordKind               `json:"kind"`
	PID      int                      `json:"pid,omitempty"`
	Project  string                   `json:"project,omitempty"`
	Server   string                   `json:"server,omitempty"`
	Entry    *supervisor.HistoryEntry `json:"entry,omitempty"`
	Status   *messages.Status         `json:"status,omitempty"`
	Withheld []string                 `json:"withheldEnv,omitempty"`
}

// Journal is an append-only file of records, one JSON object a line. Safe for concurrent use.
type Journal struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
	// startLine and last are the lines that a new file begins with: they would be lost otherwise with the second file that
	// follows, although they are what is true now.
	startLine   []byte
	statusLines map[string][]byte
}

// OpenJournal opens the journal for appending, and makes it and its directory if need be: mode 0600 and 0700. A line
// that a killed process left unfinished is ended.
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
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, j.size-1); err == nil && end[0] != '\n' {
			return j.writeLine([]byte("\n"))
		}
	}
	return nil
}

// Append writes records. Each is written whole, in one write.
func (j *Journal) Append(records ...Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return locationError("the journal is closed", nil)
	}
	for i := range records {
		line, err := json.Marshal(&records[i])
		if err != nil {
			return locationError("a record of the journal cannot be written as JSON", err)
		}
		line = append(line, '\n')
		switch r := &records[i]; r.Kind {
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

func (j *Journal) writeLine(line []byte) error {
	n, err := j.file.Write(line)
	j.size += int64(n)
	return err
}

func (j *Journal) rotate() error {
	j.file.Close()
	j.file = nil
	if err := os.Rename(j.path, j.path+previousSuffix); err != nil {
		return err
	}
	if err := j.openFile(); err != nil {
		return err
	}
	repeated := slices.Clone(j.startLine)
	for _, line := range j.statusLines {
		if len(repeated)+len(line) > repeatedLimit {
			break
		}
		repeated = append(repeated, line...)
	}
	return j.writeLine(repeated)
}

// Close ends the journal. It is idempotent.
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

// ReadJournal reads the records of a journal, oldest first, also while it is written. A line that cannot be read is
// left out. A journal that does not exist has none.
func ReadJournal(path string) ([]Record, error) {
	var out []Record
	for _, file := range []string{path + previousSuffix, path} {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, locationError("the journal "+messages.Line(file, 0)+" cannot be read", err)
		}
		for line := range bytes.Lines(data) {
			var r Record
			if json.Unmarshal(line, &r) == nil && r.Kind != "" {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// PastRun is what a journal tells about one server in the last run that knew it.
type PastRun struct {
	// Started is when that run began, Ended when it ended in good order, zero if it did not.
	Started, Ended time.Time
	PID            int
	History
}

// PastRunOf is the past of a server; false if no run knew it.
func PastRunOf(records []Record, server string) (PastRun, bool) {
	var run, found PastRun
	known := false
	for i := range records {
		r := &records[i]
		switch {
		case r.Kind == RecordStart && (r.PID != run.PID || !r.Time.Equal(run.Started)): // else it was carried over
			run = PastRun{Started: r.Time, PID: r.PID}
		case r.Kind == RecordEnd:
			run.Ended = r.Time
			if known && found.PID == run.PID && found.Started.Equal(run.Started) {
				found.Ended = r.Time
			}
		case r.Server != server:
		case r.Kind == RecordEntry && r.Entry != nil:
			run.Entries = append(run.Entries, *r.Entry)
			found, known = run, true
		case r.Kind == RecordStatus && r.Status != nil:
			run.Status, run.Withheld = *r.Status, r.Withheld
			found, known = run, true
		}
	}
	return found, known
}
