// Package failure reads what a program wrote to its standard error before it ended, and explains why it ended: it finds the line
// that names the reason, which is seldom the last one, and for common failures also gives the reason in plain words and what to do.
//
//	cause := failure.Explain(stderr)
//	cause.Line   // "Error: Cannot find module 'zod'", out of a stack of twenty lines
//	cause.Reason // `node does not find the module "zod"`, empty if the failure is not a known one
//	cause.Fix    // "install what it depends on (npm install), …"
//
// A known failure is a row of a table in package known, and each row stands on a file of testdata: the standard error of a
// program that was broken for it. A row claims what the text says, and no more; where the text leaves open which of two things
// is wrong, so does the row.
//
// The text is untrusted. It is searched and never acted on; what is taken from it is neutralised and cut short. Of a long
// text only the end counts, and the time is linear in it. This package does not know the secrets of a server: the transport removes
// them before it hands the text over.
//
// # How it fits
//
// Package actors calls Explain and ExplainSilence when an attempt or a connection of a child process has failed, and adds the
// answer to the cause in the status. The package calls package messages only, and keeps no state but compiled patterns.
//
//	Explain: stderr -> lines.go (which line is the reason?) -> known.Tables (which failure is it?) -> Cause
//
// Guarantees: Explain takes time in proportion to the text, and cuts what it returns so that it fits on a terminal.
//
// Not promised: that Explain finds the reason. Where no pattern knows the failure, Cause.Line holds the line that looks most like
// one, and the caller shows that.
//
// Public for the command: what it exports may change without notice.
package failure

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors/failure/internal/known"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Cause explains why a program ended, as far as its standard error says.
type Cause struct {
	// Line is the line that names the reason, neutralised and at most 200 characters long; empty if there is none.
	Line string
	// Name is that of the known failure: "npm-unknown-package". It is empty if no row of the table applies, and so are
	// Reason and Fix.
	Name string
	// Reason and Fix are clauses without a full stop: what is wrong, and what to do.
	Reason, Fix string
}

// String returns the cause in one line, for the end of a sentence about what happened: the reason and what to do, or else the
// line as the program's own words. It is empty if nothing is known.
func (c Cause) String() string {
	switch {
	case c.Name != "":
		return c.Reason + "; " + c.Fix
	case c.Line != "":
		return "its last words: " + c.Line
	}
	return ""
}

const (
	textSize   = 16 << 10 // bytes of the end of standard error that are read
	lineSize   = 600      // bytes of a line
	shownRunes = 200      // runes of Cause.Line
	partRunes  = 120      // runes of a part of a line that a reason repeats
	tries      = 3        // lines that a row compares with its pattern
	nearby     = 3        // lines before and after the reason that count as next to it
)

// Explain returns why the program that wrote this to its standard error has ended.
func Explain(stderr string) Cause { return explainText(stderr, false) }

// ExplainSilence returns why the program that wrote this runs and does not answer: it may wait for a person, or use another
// protocol or transport.
func ExplainSilence(stderr string) Cause { return explainText(stderr, true) }

// explainText asks the rows in the order of the tables: the first that matches names the failure. Without a match the line that looks
// like a reason is all that is known.
func explainText(stderr string, silent bool) Cause {
	t := readLines(stderr)
	c := Cause{}
	// The line that looks like the reason limits where rows may match, and is the answer if none does.
	reason := t.reasonLine()
	if reason >= 0 {
		c.Line = t.displayLine(reason)
	}
	for _, table := range known.Tables {
		for i := range table.Rows {
			if k := &table.Rows[i]; silent || !k.Silent {
				// The first row that matches wins: the tables go from the exact to the general.
				if line, found := findLine(k, t, reason, table.Near); found != nil {
					c = Cause{Line: t.displayLine(line), Name: k.Name, Reason: fillGroups(k.Reason, found), Fix: fillGroups(k.Fix, found)}
					if k.Reason == "" {
						c.Reason = "its last words: " + c.Line
					}
					return c
				}
			}
		}
	}
	return c
}

// findLine searches for the failure of a row from the last line back: a program survived what stands before a later error.
func findLine(k *known.Failure, t *text, reason int, near bool) (line int, groups []string) {
	// Nearly every row ends here, with one search in the whole text.
	if !strings.Contains(t.whole, k.Sign) {
		return 0, nil
	}
	// Only a few lines are compared with the pattern: a program may repeat the sign thousands of times.
	looked := 0
	for i := len(t.lines) - 1; i >= 0 && looked < tries; i-- {
		if !strings.Contains(t.lines[i], k.Sign) {
			continue
		}
		// A line is skipped if the row demands to be alone, if the program survived it, or if a near row is too far from the reason.
		switch far := i < reason-nearby || i > reason+nearby; {
		case k.Alone && i != reason, !near && t.wasSurvived(i, reason), near && !k.Silent && (far || i != reason && t.lineKind(i) == stackFrame):
			continue
		}
		looked++
		if k.Match != nil {
			groups = k.Match(t.lines[i])
		} else {
			groups = compilePattern(k.Pattern).FindStringSubmatch(t.lines[i])
		}
		// The groups fill the clauses of the row.
		if groups != nil {
			return i, groups
		}
	}
	return 0, nil
}

// patterns holds the compiled patterns, by their text, of the rows whose sign has been seen.
var patterns sync.Map // string to *regexp.Regexp

// compilePattern compiles a pattern once. Two goroutines may do so at the same time, with equal results.
func compilePattern(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	// The patterns are constants, and a test compiles all of them.
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

// fillGroups puts the groups of a match into a clause, neutralised and cut short: they are the program's text.
func fillGroups(clause string, groups []string) string {
	for i := 1; i < len(groups); i++ {
		n, part := strconv.Itoa(i), messages.Line(groups[i], partRunes)
		// {n} is for names and paths, <n> for parts of a sentence.
		clause = strings.ReplaceAll(clause, "{"+n+"}", strconv.Quote(part))
		clause = strings.ReplaceAll(clause, "<"+n+">", part)
	}
	return clause
}
