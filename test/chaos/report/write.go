package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// The files of a report.
const (
	htmlFile     = "report.html"
	jsonFile     = "report.json"
	junitFile    = "junit.xml"
	historyFile  = "history.jsonl"
	scenarioFile = "scenario.yaml"
	seedFile     = "seed"
	foundFile    = "found.yaml"
)

// HistoryFile returns the path of the history in the folder of a report.
func HistoryFile(dir string) string { return filepath.Join(dir, historyFile) }

// ErrOccupied is wrapped by the error of a Write whose folder holds the report of another run, or something else.
var ErrOccupied = errors.New("the place is taken")

// Write writes the report of a run into a folder, which it creates. An older report of the same scenario and seed is
// replaced. If Write fails, the folder is as it was before.
func Write(dir string, r Run) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	f := factsOf(r)
	d := f.newDocument()
	if err := checkFree(dir, d, r.Replace); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("the folder of the report cannot be made: %w", err)
	}
	// The temporary folder is a sibling, so that the rename stays on one file system.
	next, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-unfinished-")
	if err != nil {
		return fmt.Errorf("the folder of the report cannot be made: %w", err)
	}
	// After the rename the temporary folder is gone, and this does nothing.
	defer os.RemoveAll(next)
	// MkdirTemp makes folders for the owner alone, and reports are read by CI systems under other users.
	if err := os.Chmod(next, 0o755); err != nil {
		return fmt.Errorf("the folder of the report cannot be opened to readers: %w", err)
	}
	if err := f.writeFiles(next, d); err != nil {
		return err
	}
	return swapFolders(next, dir)
}

// writeFiles writes every file of the report.
func (f *facts) writeFiles(dir string, d Document) error {
	h := f.run.History
	writes := []struct {
		name string
		do   func(io.Writer) error
	}{
		{historyFile, h.Write},
		// The scenario and the seed alone play the day again, without the history.
		{scenarioFile, writeBytes(h.Plan.Scenario.YAML(), nil)},
		{seedFile, writeBytes(seedText(h.Plan.Seed), nil)},
		{jsonFile, writeBytes(d.encodeJSON())},
		{junitFile, writeBytes(d.junitXML())},
		{htmlFile, f.renderHTML(d)},
	}
	if f.run.Found != nil {
		writes = append(writes, struct {
			name string
			do   func(io.Writer) error
		}{foundFile, writeBytes(f.run.Found.Scenario.YAML(), nil)})
	}
	for _, w := range writes {
		if err := writeFile(filepath.Join(dir, w.name), w.do); err != nil {
			return fmt.Errorf("%s of the report cannot be written: %w", w.name, err)
		}
	}
	return nil
}

// writeBytes returns a function that writes b, or returns the error of making it.
func writeBytes(b []byte, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		if err != nil {
			return err
		}
		_, err := io.Copy(w, bytes.NewReader(b))
		return err
	}
}

// writeFile creates a file with what do writes. It fails if the file exists, because the folder is new.
func writeFile(path string, do func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(file, 1<<16)
	err = do(b)
	if err == nil {
		err = b.Flush()
	}
	return errors.Join(err, file.Close())
}

// checkFree says why a report may not be written to a folder; nil if it may. Every file in the folder must be one of a
// report, because the whole folder is replaced.
func checkFree(dir string, d Document, replace bool) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the folder of the report cannot be read: %w", err)
	case len(entries) == 0:
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, jsonFile))
	var old Document
	if err == nil {
		err = json.Unmarshal(raw, &old)
	}
	// A folder without a readable report.json may hold a person's files: it is never replaced, whatever replace says.
	if err != nil || old.Version == 0 {
		return fmt.Errorf("%w: %s holds something that is no report; name another folder", ErrOccupied, safePath(dir))
	}
	if old.Version > Version {
		newer := &files.NewerError{What: "the report in " + safePath(dir), Version: old.Version, Reads: Version}
		return fmt.Errorf("%w: %w; name another folder", ErrOccupied, newer)
	}
	if !replace && (old.Scenario != d.Scenario || old.Seed != d.Seed || old.Tier != d.Tier) {
		return fmt.Errorf("%w: %s holds the report of %s, seed %d; name another folder, or remove that one", ErrOccupied,
			safePath(dir), messages.Line(old.Scenario, 60), old.Seed)
	}
	for _, e := range entries {
		if !isReportFile(e.Name()) {
			return fmt.Errorf("%w: %s holds a report, and %q beside it, which nobody would find again; name another folder",
				ErrOccupied, safePath(dir), messages.Line(e.Name(), 60))
		}
	}
	return nil
}

// isReportFile reports whether Write may remove a file together with an older report.
func isReportFile(name string) bool {
	switch name {
	case htmlFile, jsonFile, junitFile, historyFile, scenarioFile, seedFile, foundFile:
		return true
	}
	// Desktops and editors leave such files behind.
	return strings.HasPrefix(name, ".")
}

// safePath returns a path for an error text: a folder's name may hold control characters.
func safePath(dir string) string { return messages.Line(dir, 0) }

// swapFolders moves a finished folder into its place, and removes the folder that was there. If the move fails it puts
// the older one back.
func swapFolders(next, dir string) error {
	old := next + "-old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the older report cannot be moved out of the way: %w", err)
	}
	// Between the two renames the place is empty for a moment. A crash there leaves both folders beside it, and nothing
	// half-written.
	if err := os.Rename(next, dir); err != nil {
		_ = os.Rename(old, dir)
		return fmt.Errorf("the finished report cannot be put into its place: %w", err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("the report is written; the one that it replaces cannot be removed: %w", err)
	}
	return nil
}
