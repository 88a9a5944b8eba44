package check

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Write writes a report into a folder, which it makes if needed: report.json, and junit.xml for a CI system, in which every
// server is a suite, a Fail is a failure, a NotTried is skipped, and a Warn is text of a test that passed.
func Write(dir string, r Report) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	// A report holds only strings and numbers, so this fails only for an infinite number.
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	text, err = xml.MarshalIndent(junitReport(r), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "junit.xml"), append([]byte(xml.Header), append(text, '\n')...), 0o644)
}

// The junit types are the part of the JUnit format that CI systems read.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitReport converts a report to suites.
func junitReport(r Report) junitSuites {
	all := junitSuites{Name: "mcpvisor chaos check"}
	for _, s := range r.Servers {
		suite := junitSuite{Name: s.Name, Tests: len(s.Findings), Failures: s.Count(Fail), Skipped: s.Count(NotTried),
			Time: secondsText(s.Took)}
		for _, f := range s.Findings {
			c := junitCase{Class: s.Name, Name: f.Title}
			switch f.Verdict {
			case Fail:
				c.Failure = &junitText{f.Text, f.Fix}
			// JUnit has no warning: a Warn passes, and its text stands in the test's output.
			case NotTried:
				c.Skipped = &junitText{Message: f.Text}
			case Warn:
				c.Out = "warning: " + f.Text + "; " + f.Fix
			case Pass:
				c.Out = f.Text
			}
			suite.Cases = append(suite.Cases, c)
		}
		all.Suites = append(all.Suites, suite)
	}
	return all
}

// secondsText writes a duration in seconds, as JUnit wants it.
func secondsText(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
