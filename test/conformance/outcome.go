package conformance

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Check is one thing that the suite looked at in a run.
type Check struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	Status       string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	ErrorMessage string `json:"errorMessage"`
}

// An Outcome is the result of a run.
type Outcome struct {
	Run
	Checks []Check
	// Problem names a failure that is no check: the client's exit, a time-out, a suite that did not work. Empty if there
	// was none.
	Problem string
	Took    time.Duration
	// Folder holds what the suite and the client wrote.
	Folder string
}

// Passed says that nothing failed and something succeeded.
func (o Outcome) Passed() bool {
	return o.Problem == "" && len(o.Failed()) == 0 && o.countStatus("SUCCESS") > 0
}

// Failed are the checks that failed or warn. The suite itself counts a warning as a failure of its scenario.
func (o Outcome) Failed() (failed []Check) {
	for _, c := range o.Checks {
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			failed = append(failed, c)
		}
	}
	return failed
}

// countStatus counts the checks of a run with a status of the suite.
func (o Outcome) countStatus(status string) (n int) {
	for _, c := range o.Checks {
		if c.Status == status {
			n++
		}
	}
	return n
}

// Reasons says why the run did not pass, a line each.
func (o Outcome) Reasons() (lines []string) {
	for _, c := range o.Failed() {
		text := c.ErrorMessage
		if text == "" {
			text = c.Description
		}
		lines = append(lines, strings.ToLower(c.Status)+" "+c.Name+": "+oneLine(text))
	}
	if o.Problem != "" {
		lines = append(lines, oneLine(o.Problem))
	}
	if len(lines) == 0 && !o.Passed() {
		lines = append(lines, "no check succeeded: nothing was looked at")
	}
	return lines
}

// oneLine cuts a text to what fits a line of a report.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 300
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

// readChecks reads the checks.json that the suite wrote somewhere below a folder.
func readChecks(folder string) ([]Check, error) {
	b, err := findFile(folder, "checks.json")
	if err != nil {
		return nil, err
	}
	var checks []Check
	if err := json.Unmarshal(b, &checks); err != nil {
		return nil, fmt.Errorf("checks.json: %w", err)
	}
	return checks, nil
}

// findFile is a file that the suite wrote below a folder: it makes folders with the time in their names.
func findFile(folder, name string) ([]byte, error) {
	var found string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == name {
			found = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if found == "" {
		return nil, fmt.Errorf("the suite wrote no %s", name)
	}
	return os.ReadFile(found)
}

// lastLine is the last line of a text that is not empty.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
