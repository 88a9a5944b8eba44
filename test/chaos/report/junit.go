package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// The elements of JUnit's XML that collectors of tests have in common.
type (
	junitSuite struct {
		XMLName    xml.Name        `xml:"testsuite"`
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
		Skipped *junitSkipped `xml:"skipped"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// junitXML returns a test case for each check: violated is a failure, inconclusive is skipped, and both have their
// reason.
func (d Document) junitXML() ([]byte, error) {
	s := junitSuite{
		Name: "mcpvisor chaos: " + d.Scenario, Tests: len(d.Verdicts), Time: secondsText(d.Took),
		Properties: []junitProperty{
			{"seed", strconv.FormatUint(d.Seed, 10)}, {"tier", string(d.Tier)}, {"replay", d.Replay}, {"version", d.Tool},
		},
	}
	if d.Started != nil {
		s.Timestamp = d.Started.Format("2006-01-02T15:04:05")
	}
	for _, v := range d.Verdicts {
		// All checks read one run, so that none has a time of its own.
		c := junitCase{Class: "mcpvisor.chaos." + d.Scenario, Name: v.ID, Time: "0"}
		if v.Title != "" && v.Title != v.ID {
			c.Name += " " + v.Title
		}
		switch v.Answer {
		case invariant.Holds:
			c.Out = fmt.Sprintf("looked at %d", v.Looked)
		case invariant.Violated:
			s.Failures++
			c.Failure = &junitFailure{Message: v.Why, Type: "violated", Text: v.violationText() + "replay: " + d.Replay + "\n"}
		// An inconclusive check is no success: collectors count skipped cases apart.
		case invariant.Inconclusive:
			s.Skipped++
			c.Skipped = &junitSkipped{Message: "inconclusive: " + v.Why}
		}
		s.Cases = append(s.Cases, c)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// violationText returns a violation as text: the reason, the place, and each event that shows it.
func (j VerdictReport) violationText() string {
	var b strings.Builder
	fmt.Fprintln(&b, j.Why)
	if j.Before != "" {
		fmt.Fprintln(&b, j.Before)
	}
	if j.Server != "" || j.At != 0 {
		fmt.Fprintf(&b, "violated%s\n", locationText(invariant.Verdict{Server: j.Server, At: j.At}))
	}
	for _, e := range j.Evidence {
		fmt.Fprintf(&b, "history.jsonl:%d  %s  %s  %s: %s\n", e.Line, clockText(e.T), e.Server, e.Side, e.Text)
	}
	return b.String()
}

// secondsText writes a duration as JUnit wants it: seconds with three decimals.
func secondsText(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
