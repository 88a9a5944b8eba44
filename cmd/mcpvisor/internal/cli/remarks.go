package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// ReportResult is ReportError for the error that cobra returned for a command line. The flags of a wrong one were not taken over,
// so that it looks for --json itself.
func (o *Options) ReportResult(cmd *cobra.Command, args []string, err error) int {
	if o.misread {
		o.JSON = wantsJSON(cmd, args)
	}
	return o.ReportError(err)
}

// ReportError prints the error of a run, as one sentence or with --json as an object, and returns its exit code. With --json it
// prints the collected failures even if err is nil, because failJSON is the only place that shows them.
func (o *Options) ReportError(err error) int {
	if o.JSON {
		o.failJSON(err)
	}
	if err == nil {
		return exit.OK
	}
	if text := err.Error(); text != "" && !o.JSON {
		fmt.Fprintln(o.Err, "mcpvisor: "+messages.Printable(text))
	}
	return exit.CodeOf(err)
}

// NewLogger returns a logger to standard error, with lines for people on a terminal and JSON otherwise. The packages that log a
// server's words have escaped them.
func (o *Options) NewLogger() *zap.Logger {
	level := o.logDefault
	if o.logLevel != "" {
		level, _ = zapcore.ParseLevel(o.logLevel) // ApplyFlags has checked it
	}
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339TimeEncoder
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if terminal.IsTerminal(o.Err) {
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		cfg.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	// zapcore.Lock keeps lines whole, because the actors of several servers log concurrently.
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(o.Err)), level))
}

// PrintRemark prints on standard error what is neither a result nor an error: how far a command is, what can be done next, what
// was done besides. --quiet suppresses it. Texts are cut to one line of 1000 runes and escaped.
func (o *Options) PrintRemark(format string, args ...any) {
	if !o.Quiet {
		fmt.Fprintln(o.Err, "mcpvisor: "+messages.Line(fmt.Sprintf(format, args...), 1000))
	}
}

// ReportAtOnce makes WarnFailure print each failure when it happens, also with --json. A command that may run for days calls it.
func (o *Options) ReportAtOnce() { o.failures = nil }

// WarnFailure reports a failure that does not end the command, which goes on with what works. With --json it is collected for
// the one object that ReportError prints at the end; a command that follows something (failures is nil) prints a line at once.
func (o *Options) WarnFailure(err error) {
	switch {
	case o.JSON && o.failures != nil:
		o.failures.add(err)
		return
	case o.JSON:
		_ = terminal.PrintJSONLine(o.Err, struct {
			Error failureEntry `json:"error"`
		}{failureOf(err)}) // standard error is the only place where a failed write could be reported
		return
	}
	fmt.Fprintln(o.Err, "mcpvisor: "+messages.Printable(err.Error()))
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
