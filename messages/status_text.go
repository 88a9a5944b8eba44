package messages

import (
	"fmt"
	"strings"
	"time"
)

// longestPart is how many characters of each text of a server String shows.
const longestPart = 300

// String is the status in one line for a person: the name, the phase, its reason and the error. It is no format to parse.
func (s Status) String() string { return Line(s.Name, longestPart) + " " + s.phaseText() }

// phaseText is String without the name.
func (s *Status) phaseText() string {
	text := string(s.Status)
	if s.Reason != "" {
		text += " (" + Line(s.Reason, longestPart) + ")"
	}
	if s.Error != "" {
		text += ": " + Line(s.Error, longestPart)
	}
	return text
}

// String is the event in one line for a person: its kind, and the members that are set. It has no time and is no format to parse.
func (e Event) String() string {
	var parts []string
	add := func(what, text string) {
		if text != "" {
			parts = append(parts, strings.TrimSpace(what+" "+Line(text, longestPart)))
		}
	}
	count := func(what string, n uint64) {
		if n > 0 {
			parts = append(parts, fmt.Sprint(what, " ", n))
		}
	}
	add("", string(e.Kind))
	add("", e.Server)
	add("", e.Tool)
	add("", e.URI)
	count("call", e.CallID)
	if e.Status != nil {
		add("", e.Status.phaseText())
	}
	add("", string(e.Outcome))
	if e.Took > 0 {
		add("after", time.Duration(e.Took).String())
	}
	count("generation", e.Generation)
	count("missed", e.Missed)
	for _, t := range e.Changed {
		add("", t.Name)
	}
	if e.Log != nil {
		add("", e.Log.Level+" "+string(e.Log.Data))
	}
	return strings.Join(parts, " ")
}
