package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// printRemark says on standard error what is neither a result nor an error: how far something is, what can be done next, what was
// done besides. --quiet leaves it out.
func (o *options) printRemark(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintln(o.err, "mcpvisor: "+messages.Line(fmt.Sprintf(format, args...), 1000))
	}
}

// warnFailure tells of a failure that does not end the command: it goes on with what works. With --json it is kept for the one object
// that report writes at the end; of a command that goes on for long it is a line at once.
func (o *options) warnFailure(err error) {
	switch {
	case o.json && o.failures != nil:
		o.failures.add(err)
		return
	case o.json:
		_ = printJSONLine(o.err, struct {
			Error failureEntry `json:"error"`
		}{failureOf(err)}) // whoever does not read it cannot be told
		return
	}
	fmt.Fprintln(o.err, "mcpvisor: "+messages.Printable(err.Error()))
}

// maxFaults bounds what is kept for the end: a command that follows something may meet failures for days.
const maxFaults = 100

// failures are those of a run that did not end it. Safe for concurrent use.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) < maxFaults {
		f.all = append(f.all, err)
	}
}

func (f *failures) list() []error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

// newProgressLine shows on standard error how far a command is; with --quiet nowhere.
func (o *options) newProgressLine() *progressLine {
	if o.quiet {
		return &progressLine{out: io.Discard}
	}
	return &progressLine{out: o.err, terminal: isTerminal(o.err)}
}
