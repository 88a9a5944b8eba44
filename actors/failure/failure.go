// Package failure reads what a program wrote to its standard error before it ended, and says why it ended: the line that
// names the reason, which is seldom the last one, and for the failures that people meet every week also the reason in plain
// words and what to do.
//
//	cause := failure.Explain(stderr)
//	cause.Line   // "Error: Cannot find module 'zod'", out of a stack of twenty lines
//	cause.Reason // `node does not find the module "zod"`, empty if the failure is not a known one
//	cause.Fix    // "install what it depends on (npm install), …"
//
// A known failure is a row of the table (known_*.go), and each row stands on a file of testdata: the standard error of a
// program that was broken for it. A row says what the text says, and no more; where the text leaves open which of two things
// is wrong, so does the row.
//
// The text is a stranger's. It is looked at and never acted on; what is taken from it is neutralised and cut short. Of a long
// text only the end counts, and the time is linear in it. This package does not know
// the secrets of a server: the transport takes them out of the text before it hands it over.
package failure

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Cause is why a program ended, as far as its standard error says.
type Cause struct {
	// Line is the line that names the reason, neutralised and at most 200 characters long; empty if there is none.
	Line string
	// Name is that of the known failure: "npm-unknown-package". It is empty if no row of the table applies, and so are
	// Reason and Fix.
	Name string
	// Reason and Fix are clauses without a full stop: what is wrong, and what to do.
	Reason, Fix string
}

// String is the cause in one line, for the end of a sentence about what happened: the reason and what to do, or else the
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
	textSize   = 16 << 10 // of the end of standard error
	lineSize   = 600      // bytes of a line
	shownRunes = 200
	partRunes  = 120 // of a part of a line that a reason repeats
	tries      = 3   // lines that a row looks at closely
)

// Explain says why the program that wrote this to its standard error has ended.
func Explain(stderr string) Cause { return explainText(stderr, false) }

// ExplainSilence says why the program that wrote this lives and does not answer: it may wait for a person, or speak to others.
func ExplainSilence(stderr string) Cause { return explainText(stderr, true) }

func explainText(stderr string, silent bool) Cause {
	t := readLines(stderr)
	c := Cause{}
	reason := t.reasonLine()
	if reason >= 0 {
		c.Line = t.displayLine(reason)
	}
	for _, table := range knownFailures {
		for i := range table.rows {
			if k := &table.rows[i]; silent || !k.silent {
				if line, found := k.findLine(t, reason, table.near); found != nil {
					c = Cause{Line: t.displayLine(line), Name: k.name, Reason: fillGroups(k.reason, found), Fix: fillGroups(k.fix, found)}
					if k.reason == "" {
						c.Reason = "its last words: " + c.Line
					}
					return c
				}
			}
		}
	}
	return c
}

// knownFailure is a known failure.
type knownFailure struct {
	name string
	// sign is in every line that pattern matches, so that almost every line is passed over at little cost. It is compared as
	// it is written.
	sign string
	// pattern recognises the line. It is compiled when a line has the sign: a program that never fails pays nothing.
	pattern string
	// match stands for a pattern where one would be slow.
	match func(line string) (groups []string)
	// reason and fix are clauses. {1} is the first group of the pattern in quotes, <1> without. An empty reason means that the
	// program's own words are the best there are.
	reason, fix string
	// silent rows are about programs that live: what they tell is no reason to end.
	silent bool
	// alone rows apply only if no other line says why.
	alone bool
}

// findLine looks for the row's failure, from the last line on. What stands before a later error was survived.
func (k *knownFailure) findLine(t *text, reason int, near bool) (line int, groups []string) {
	if !strings.Contains(t.whole, k.sign) {
		return 0, nil
	}
	looked := 0
	for i := len(t.lines) - 1; i >= 0 && looked < tries; i-- {
		if !strings.Contains(t.lines[i], k.sign) {
			continue
		}
		switch far := i < reason-nearby || i > reason+nearby; {
		case k.alone && i != reason, !near && t.wasSurvived(i, reason), near && !k.silent && (far || i != reason && t.lineKind(i) == stackFrame):
			continue
		}
		looked++
		if k.match != nil {
			groups = k.match(t.lines[i])
		} else {
			groups = compilePattern(k.pattern).FindStringSubmatch(t.lines[i])
		}
		if groups != nil {
			return i, groups
		}
	}
	return 0, nil
}

// patterns are those that a text has had the sign of.
var patterns sync.Map // string to *regexp.Regexp

func compilePattern(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

// fillGroups puts the groups into a clause.
func fillGroups(clause string, groups []string) string {
	for i := 1; i < len(groups); i++ {
		n, part := strconv.Itoa(i), messages.Line(groups[i], partRunes)
		clause = strings.ReplaceAll(clause, "{"+n+"}", strconv.Quote(part))
		clause = strings.ReplaceAll(clause, "<"+n+">", part)
	}
	return clause
}
