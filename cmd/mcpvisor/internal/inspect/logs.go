package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// logsFlags holds the flags of logs.
type logsFlags struct {
	follow, json bool
	// level is the least severe level that is printed; empty for all.
	level string
	wait  time.Duration
}

// NewLogs returns the command "logs", which runs printLogs.
func NewLogs(o *cli.Options) *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs SERVER",
		Short: "Print what a server writes to standard error, and its log messages",
		Long: `Prints the end of what a server wrote to standard error, and the log messages that it sent over MCP, as far as a
running "mcpvisor up" keeps them: 64 KiB and 1,000 messages. Without one the server is connected for it, and asked for
messages from --level on; with --follow it stays connected, and what it says is printed as it comes, until Ctrl-C.

--level leaves out messages that are less severe: debug, info, notice, warning, error, critical, alert or emergency. A
running mcpvisor up has asked the server for those from its configured logLevel on; no others come.`,
		Example: `  mcpvisor logs files
  mcpvisor logs files --follow --level warning`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return printLogs(o, cmd, args[0], f) },
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on until Ctrl-C")
	fl.StringVar(&f.level, "level", "", "only messages from this `level` on")
	fl.BoolVarP(&f.json, "json", "j", false, "print a JSON object; with --follow one a line")
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long the server may take to connect")
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions( // this flag exists
		slices.Clone(messages.LogLevels), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	return cmd
}

// logsReport is the JSON object that logs --json prints without --follow.
type logsReport struct {
	Server string `json:"server"`
	// Stderr is the end of what the server wrote to standard error, escaped.
	Stderr   string               `json:"stderr"`
	Messages []supervisor.LogLine `json:"messages"`
}

// stderrInterval is the time between two looks at standard error. The command has to look, because no event is published when a
// server writes to it.
const stderrInterval = 500 * time.Millisecond

// logSettleTime is the time that a server which was connected for its logs gets to log before they are printed.
const logSettleTime = 500 * time.Millisecond

// printLogs prints the logs of a server: those that a running up keeps, or of a server that is connected for it. A server that
// does not connect has logs as well, and they are the answer.
func printLogs(o *cli.Options, cmd *cobra.Command, server string, f logsFlags) error {
	if f.level != "" && !slices.Contains(messages.LogLevels, f.level) {
		return exit.UsageError(cmd, "--level: %q is no level; levels are %s", messages.Line(f.level, 40),
			strings.Join(messages.LogLevels, ", "))
	}
	if f.follow {
		o.ReportAtOnce()
	}
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	err = p.StartServers(ctx, []string{server}, func(cfg *supervisor.Config) {
		// The manager of this command asks the server for messages from this level on; a running up has asked already.
		if spec := cfg.Servers[server]; f.level != "" {
			spec.LogLevel = f.level
			cfg.Servers[server] = spec
		}
	})
	if err != nil {
		return err
	}
	if p.Up == nil {
		all, err := p.AwaitStatus(ctx, f.wait, server)
		if err != nil {
			return err
		}
		if !status.IsCallable(all[0]) { // what it wrote before it failed is printed all the same
			e := status.NotConnectedError(all[0])
			e.Outcome = ""
			o.WarnFailure(e)
		} else if !f.follow && !sleepContext(ctx, logSettleTime) {
			return exit.InterruptedError(ctx)
		}
	}
	t := &logPrinter{options: o, p: p, server: server, flags: f}
	if !f.follow {
		return t.printOnce(ctx)
	}
	return t.followLogs(ctx)
}

// logPrinter prints the logs of one server. One goroutine uses it.
type logPrinter struct {
	options *cli.Options
	p       *project.Project
	server  string
	flags   logsFlags

	// stderr is the end of standard error when it was last printed, last the newest message that was printed; nil before the
	// first.
	stderr string
	last   *supervisor.LogLine
}

// readLogs returns what there is now: the end of standard error and all messages that are kept.
func (t *logPrinter) readLogs(ctx context.Context) (stderr string, lines []supervisor.LogLine, err error) {
	all, err := t.p.AwaitStatus(ctx, 0, t.server)
	if err != nil {
		return "", nil, err
	}
	lines, err = t.p.Logs(ctx, t.server)
	return all[0].StderrTail, lines, err
}

// isSevereEnough reports whether a message passes --level.
func (t *logPrinter) isSevereEnough(l supervisor.LogLine) bool {
	at := slices.Index(messages.LogLevels, l.Level)
	return at < 0 || at >= slices.Index(messages.LogLevels, t.flags.level) // a level that is not known may be the worst one
}

// printOnce prints what there is now.
func (t *logPrinter) printOnce(ctx context.Context) error {
	stderr, lines, err := t.readLogs(ctx)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(l supervisor.LogLine) bool { return !t.isSevereEnough(l) })
	if t.flags.json {
		return terminal.PrintJSON(t.options.Out, logsReport{t.server, stderr, terminal.OrEmpty(lines)})
	}
	t.printStderrLines(stderr)
	for _, l := range lines {
		t.printLog(l)
	}
	if stderr == "" && len(lines) == 0 {
		t.options.PrintRemark("server %q has said nothing", messages.Line(t.server, 60))
	}
	return nil
}

// followLogs prints what is there and then what is added, until Ctrl-C, which is its normal end. An event only makes it read
// again, because a message that is printed from an event could be printed a second time from the list.
func (t *logPrinter) followLogs(ctx context.Context) error {
	// poke has room for one signal: several events cause one reading.
	poke, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { // it ends with ctx
		ended <- t.p.Follow(ctx, t.server, func(e messages.Event) error {
			if e.Kind == messages.EventLog || e.Kind == messages.EventPhase || e.Kind == messages.EventGap {
				select {
				case poke <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}()
	tick := time.NewTicker(stderrInterval)
	defer tick.Stop()
	for {
		stderr, lines, err := t.readLogs(ctx)
		switch {
		case ctx.Err() != nil: // Ctrl-C is the normal end
			return nil
		case err != nil:
			return err
		}
		t.printStderrLines(appendedText(t.stderr, stderr))
		t.stderr = stderr
		for _, l := range t.newLines(lines) {
			if t.isSevereEnough(l) {
				t.printLog(l)
			}
		}
		select {
		case <-poke:
		case <-tick.C:
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// newLines returns the messages after the one that was printed last. It compares time, epoch and data, since messages have no
// number.
func (t *logPrinter) newLines(lines []supervisor.LogLine) []supervisor.LogLine {
	if len(lines) == 0 {
		return nil
	}
	last := t.last
	t.last = &lines[len(lines)-1]
	if last == nil {
		return lines
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Time.Equal(last.Time) && lines[i].Epoch == last.Epoch && string(lines[i].Data) == string(last.Data) {
			return lines[i+1:]
		}
	}
	return lines // so many came that the last one was dropped from the list
}

// appendedText returns what a bounded tail of a text has more than before. The tail loses whole lines at its beginning, so that
// it looks for the longest end of before that begins now.
func appendedText(before, now string) string {
	for from := 0; from < len(before); from++ {
		if from == 0 || before[from-1] == '\n' {
			if strings.HasPrefix(now, before[from:]) {
				return now[len(before)-from:]
			}
		}
	}
	return now
}

// printStderrLines prints lines of standard error, marked as such; they have no time of their own.
func (t *logPrinter) printStderrLines(text string) {
	if text == "" {
		return
	}
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		l = strings.TrimRight(l, "\n")
		if t.flags.json {
			t.printObject(map[string]string{"stderr": l})
			continue
		}
		fmt.Fprintf(t.options.Out, "stderr        | %s\n", l)
	}
}

// printLog prints one message. Data that is a string is printed as its text, anything else as JSON.
func (t *logPrinter) printLog(l supervisor.LogLine) {
	if t.flags.json {
		t.printObject(l)
		return
	}
	text := string(l.Data)
	var s string
	if json.Unmarshal(l.Data, &s) == nil {
		text = s
	}
	if l.Logger != "" {
		text = l.Logger + ": " + text
	}
	fmt.Fprintf(t.options.Out, "%s  %-9s  %s\n", l.Time.Local().Format("15:04:05.000"), messages.Line(l.Level, 20),
		messages.Line(text, 0))
}

// printObject prints a JSON object on a line of its own.
func (t *logPrinter) printObject(v any) {
	_ = terminal.PrintJSONLine(t.options.Out, v) // a failed write is remembered by CheckedWriter
}
