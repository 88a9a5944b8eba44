package report

import (
	"bytes"
	"encoding/xml"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// JUnitCase is one case of [JUnit].
type JUnitCase struct {
	// Group and Name say which case it is.
	Group, Name string
	Took        time.Duration
	// Failure says what was wrong, empty if nothing was. Skipped says why it was not tried, empty if it was.
	Failure, Skipped string
}

// JUnit returns a file for systems that collect tests, of cases that have no history: of other people's clients and servers. Every
// text is made printable.
func JUnit(suite string, cases []JUnitCase, properties ...[2]string) ([]byte, error) {
	s := junitSuite{Name: messages.Line(suite, 200), Tests: len(cases)}
	for _, p := range properties {
		s.Properties = append(s.Properties, junitProperty{p[0], messages.Line(p[1], 400)})
	}
	var all time.Duration
	for _, c := range cases {
		all += c.Took
		j := junitCase{Class: messages.Line(c.Group, 200), Name: messages.Line(c.Name, 200), Time: secondsText(c.Took)}
		switch {
		case c.Failure != "":
			s.Failures++
			j.Failure = &junitFailure{Message: messages.Line(c.Failure, 300), Type: "lost", Text: messages.Printable(c.Failure)}
		case c.Skipped != "":
			s.Skipped++
			j.Skipped = &junitSkipped{Message: messages.Line(c.Skipped, 300)}
		}
		s.Cases = append(s.Cases, j)
	}
	s.Time = secondsText(all)
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte(xml.Header), text, []byte("\n")}, nil), nil
}
