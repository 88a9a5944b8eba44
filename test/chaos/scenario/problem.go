package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Problem is one fault of a scenario.
type Problem struct {
	// File, Line and Column are the place; Line and Column count from 1 and are 0 for a scenario that is not from a
	// file.
	File         string
	Line, Column int
	// Path is the place in the scenario, such as faults[2].with.rate; empty stands for the whole.
	Path string
	// What says what is wrong and Do what to do, each as a clause without a full stop. Do may be empty.
	What, Do string
}

// Error returns `file:line:column: what; what to do`. Without a file the path stands in its place.
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(messages.Line(p.File, 0))
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	} else if p.Path != "" {
		b.WriteString(messages.Line(p.Path, 120))
		b.WriteString(": ")
	}
	b.WriteString(p.What)
	if p.Do != "" {
		b.WriteString("; ")
		b.WriteString(p.Do)
	}
	return b.String()
}

// Problems holds all faults of a scenario, in the order of the file. It is the error of Parse, Check and Plan.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// asError returns nil if there are none, because a nil Problems in an error would not be nil.
func (ps Problems) asError() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// inFileOrder sorts the problems by their places and removes repetitions.
func (ps Problems) inFileOrder() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}

// quoteWord quotes a word of the file for a sentence, escaped and cut.
func quoteWord(s string) string { return strconv.Quote(messages.Line(s, 80)) }

// suggestWord returns the fix for an unknown word: the nearest known one, or all known ones if they are few.
func suggestWord(word string, known []string) string {
	if near := messages.Nearest(word, known); near != "" {
		return "did you mean " + quoteWord(near) + "?"
	}
	if len(known) > 12 {
		return ""
	}
	return "known are " + strings.Join(known, ", ")
}

// findings collects problems while a scenario is checked or planned.
type findings struct {
	list Problems
}

func (f *findings) addProblem(path, do, what string, args ...any) {
	f.list = append(f.list, Problem{Path: path, What: fmt.Sprintf(what, args...), Do: do})
}
