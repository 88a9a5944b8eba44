package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
)

// reportResult is reportError for the error that cobra returned for a command line. The flags of a wrong one were not taken over,
// so that it looks for --json itself.
func (o *options) reportResult(cmd *cobra.Command, args []string, err error) int {
	if o.misread {
		o.json = wantsJSON(cmd, args)
	}
	return o.reportError(err)
}

// reportError prints the error of a run, as one sentence or with --json as an object, and returns its exit code. With --json it
// prints the collected failures even if err is nil, because failJSON is the only place that shows them.
func (o *options) reportError(err error) int {
	if o.json {
		o.failJSON(err)
	}
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" && !o.json {
		fmt.Fprintln(o.err, "mcpvisor: "+messages.Printable(text))
	}
	return codeOf(err)
}

// newLogger returns a logger to standard error, with lines for people on a terminal and JSON otherwise. The packages that log a
// server's words have escaped them.
func (o *options) newLogger() *zap.Logger {
	level := o.logDefault
	if o.logLevel != "" {
		level, _ = zapcore.ParseLevel(o.logLevel) // applyFlags has checked it
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339TimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if isTerminal(o.err) {
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		cfg.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	// zapcore.Lock keeps lines whole, because the actors of several servers log concurrently.
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(o.err)), level))
}

// printRemark prints on standard error what is neither a result nor an error: how far a command is, what can be done next, what
// was done besides. --quiet suppresses it. Texts are cut to one line of 1000 runes and escaped.
func (o *options) printRemark(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintln(o.err, "mcpvisor: "+messages.Line(fmt.Sprintf(format, args...), 1000))
	}
}

// reportAtOnce makes warnFailure print each failure when it happens, also with --json. A command that may run for days calls it.
func (o *options) reportAtOnce() { o.failures = nil }

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
