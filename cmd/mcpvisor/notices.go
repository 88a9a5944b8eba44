package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// printRemark prints on standard error what is neither a result nor an error: how far a command is, what can be done next, what
// was done besides. --quiet suppresses it. Texts are cut to one line of 1000 runes and escaped.
func (o *options) printRemark(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintln(o.err, "mcpvisor: "+messages.Line(fmt.Sprintf(format, args...), 1000))
	}
}

// warnFailure reports a failure that does not end the command, which goes on with what works. With --json it is collected for
// the one object that reportError prints at the end; a command that follows something (failures is nil) prints a line at once.
func (o *options) warnFailure(err error) {
	switch {
	case o.json && o.failures != nil:
		o.failures.add(err)
		return
	case o.json:
		_ = printJSONLine(o.err, struct {
			Error failureEntry `json:"error"`
		}{failureOf(err)}) // standard error is the only place where a failed write could be reported
		return
	}
	fmt.Fprintln(o.err, "mcpvisor: "+messages.Printable(err.Error()))
}

// maxFaults bounds how many failures are collected for the end; further ones are dropped, because the first ones show the
// cause.
const maxFaults = 100

// failures collects the failures that did not end a run. It is safe for concurrent use, and a nil list is empty.
type failures struct {
	mu  sync.Mutex
	all []error
}

// add collects a failure, unless maxFaults are there.
func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) < maxFaults {
		f.all = append(f.all, err)
	}
}

// list returns the collected failures in their order.
func (f *failures) list() []error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

// newProgressLine returns a line that shows on standard error how far a command is; with --quiet it shows nothing.
func newProgressLine(o *options) *progressLine {
	if o.quiet {
		return &progressLine{out: io.Discard}
	}
	return &progressLine{out: o.err, terminal: isTerminal(o.err)}
}
