package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// goldenJournal puts a golden journal in the place of one.
func goldenJournal(t *testing.T, name string) (path, text string) {
	t.Helper()
	golden, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path = newLocation(t).Journal
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, golden, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, string(golden)
}

// TestTheFormOfAJournal reads the journals of the first programs, without a number, and of version 1, which is what is written now. If
// this test fails, `mcpvisor why` forgets what happened before the upgrade: raise journalVersion, and go on reading these.
func TestTheFormOfAJournal(t *testing.T) {
	for _, name := range []string{"journal0.jsonl", "journal1.jsonl"} {
		t.Run(name, func(t *testing.T) {
			path, text := goldenJournal(t, name)
			records := readJournal(t, path)
			run, ok := control.PastRunOf(records, "files")
			if !ok || len(records) != 4 || run.PID != 7 || run.Started.IsZero() || run.Ended.IsZero() || len(run.Entries) != 1 ||
				run.Entries[0].Text != "the program ended" || run.Entries[0].Stderr != "no such file" || run.Status.Status != messages.Failed ||
				run.Status.Attempts != 3 || len(run.Withheld) != 1 {
				t.Errorf("%+v", run)
			}
			// What is written now is version 1, and the lines before it stay as they are.
			j := openJournal(t, path)
			if err := j.Append(records...); err != nil {
				t.Fatal(err)
			}
			one, err := os.ReadFile(filepath.Join("testdata", "journal1.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != text+string(one) {
				t.Errorf("%s, %v", now, err)
			}
		})
	}
}

// TestANewerJournal: lines of a newer program are left out, which is said, and stay in the file; the others still count.
func TestANewerJournal(t *testing.T) {
	path, text := goldenJournal(t, "journal1.jsonl")
	text += `{"v":2,"time":7,"kind":"status","server":"files","status":"well"}` + "\n" + `{"v":2,"ti`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := control.ReadJournal(path)
	var newer *files.NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "was written by a newer mcpvisor (format 2; this one reads up to 1); upgrade mcpvisor") {
		t.Error(err)
	}
	if run, ok := control.PastRunOf(records, "files"); !ok || run.Status.Attempts != 3 {
		t.Errorf("%+v", run)
	}
	j := openJournal(t, path)
	if err := j.Append(start(9, 9)); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(now), text) {
		t.Errorf("%s, %v", now, err)
	}
}
