package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Problem is one fault of a configuration, with its place and the way to repair it. It implements error.
type Problem struct {
	// File is the path as the caller gave it to Parse, or the flag. It may be empty.
	File string `json:"file,omitempty"`
	// Line and Col count from 1, Col in characters. Both are 0 if the problem concerns the file as a whole.
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
	// Server and Key say which part is concerned, as far as known: "github", "env.GITHUB_TOKEN".
	Server string `json:"server,omitempty"`
	Key    string `json:"key,omitempty"`
	// Text says what is wrong, Fix what to do; each is a clause without a final full stop. Fix may be empty.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Warning means that the configuration works all the same. A problem without it makes its server invalid.
	Warning bool `json:"warning,omitempty"`
	// Variable is set if the problem concerns text of another program that is read as this environment variable. Merge joins
	// the problem with the one of the variable that is not set, and drops it if the variable is set.
	Variable string `json:"-"`
}

// Error returns the whole problem in one sentence: `file:line:col: server "x": key: what is wrong; fix`. A warning says so
// after the place. Control characters of names are escaped.
func (p Problem) Error() string {
	var b strings.Builder
	if place := p.positionText(); place != "" {
		b.WriteString(place)
		b.WriteString(": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Server != "" {
		b.WriteString("server ")
		b.WriteString(quoteShort(p.Server))
		b.WriteString(": ")
	}
	b.WriteString(p.bareText())
	return b.String()
}

// positionText returns file:line:col as far as known; empty if neither is.
func (p Problem) positionText() string {
	file := messages.Line(p.File, 0)
	switch {
	case p.Line == 0:
		return file
	// A value of a flag has a place inside its text only.
	case file == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Col)
	}
	return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Col)
}

// bareText returns the problem without its place and server.
func (p Problem) bareText() string {
	s := p.Text
	if p.Key != "" {
		s = messages.Line(p.Key, 80) + ": " + s
	}
	if p.Fix != "" {
		s += "; " + p.Fix
	}
	return s
}

// sortProblems orders by file, line and column, and keeps the order in which problems of one place were found.
func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// invalidText returns the text of Spec.Invalid for these problems: the first error in full with its place, and the number of
// the others. It is empty if all of them are warnings.
func invalidText(ps []Problem) string {
	var first *Problem
	errors := 0
	for i := range ps {
		if ps[i].Warning {
			continue
		}
		if errors++; first == nil {
			first = &ps[i]
		}
	}
	if first == nil {
		return ""
	}
	// The server and the word "warning" are left out, because the status shows the text beside the server's name.
	s := first.bareText()
	if place := first.positionText(); place != "" {
		s += " (" + place + ")"
	}
	switch {
	case errors == 2:
		s += ", and one more problem"
	case errors > 2:
		s += fmt.Sprintf(", and %d more problems", errors-1)
	}
	return s
}

// quoteWhole quotes text that a person copies, up to 4000 characters.
func quoteWhole(s string) string { return strconv.Quote(messages.Line(s, 4000)) }

// quoteShort quotes a name for the middle of a sentence, up to 80 characters.
func quoteShort(s string) string { return strconv.Quote(messages.Line(s, 80)) }
