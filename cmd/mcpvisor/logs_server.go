package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

type logsFlags struct {
	follow, json bool
	level        string
	wait         time.Duration
}

func newLogs(o *options) *cobra.Command {
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
		Args:              oneServer,
		ValidArgsFunction: o.completeServer,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.logs(cmd, args[0], f) },
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.follow, "follow", "f", false, "go on until Ctrl-C")
	fl.StringVar(&f.level, "level", "", "only messages from this `level` on")
	fl.BoolVarP(&f.json, "json", "j", false, "print a JSON object; with --follow one a line")
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long the server may take to connect")
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions( // the flag exists
		slices.Clone(messages.LogLevels), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	return cmd
}

// logged is what `logs --json` prints without --follow.
type logged struct {
	Server string `json:"server"`
	// Stderr is the end of what the server wrote to standard error, neutralised.
	Stderr   string               `json:"stderr"`
	Messages []supervisor.LogLine `json:"messages"`
}

// followEvery is how often standard error is looked at: nobody tells when there is more of it.
const followEvery = 500 * time.Millisecond

// settleLogs is how long a server that was connected for its logs may go on talking.
const settleLogs = 500 * time.Millisecond

func (o *options) logs(cmd *cobra.Command, server string, f logsFlags) error {
	if f.level != "" && !slices.Contains(messages.LogLevels, f.level) {
		return usage(cmd, "--level: %q is no level; levels are %s", messages.Line(f.level, 40),
			strings.Join(messages.LogLevels, ", "))
	}
	if f.follow {
		o.faults = nil
	}
	ctx := cmd.Context()
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	err = p.start(ctx, []string{server}, func(cfg *supervisor.Config) {
		if spec := cfg.Servers[server]; f.level != "" {
			spec.LogLevel = f.level
			cfg.Servers[server] = spec
		}
	})
	if err != nil {
		return err
	}
	if p.up == nil {
		all, err := p.status(ctx, f.wait, server)
		if err != nil {
			return err
		}
		if !callable(all[0]) { // its last words are the answer all the same
			e := notConnected(all[0])
			e.Outcome = ""
			o.fault(e)
		} else if !f.follow && !pause(ctx, settleLogs) {
			return interrupted(ctx)
		}
	}
	t := &teller{options: o, p: p, server: server, flags: f}
	if !f.follow {
		return t.once(ctx)
	}
	return t.follow(ctx)
}

// teller prints a server's logs.
type teller struct {
	*options
	p      *project
	server string
	flags  logsFlags

	stderr string
	last   *supervisor.LogLine
}

// read is what there is now: the end of standard error, and the messages that are severe enough.
func (t *teller) read(ctx context.Context) (stderr string, lines []supervisor.LogLine, err error) {
	all, err := t.p.status(ctx, 0, t.server)
	if err != nil {
		return "", nil, err
	}
	lines, err = t.p.Logs(ctx, t.server)
	return all[0].StderrTail, lines, err
}

func (t *teller) wanted(l supervisor.LogLine) bool {
	at := slices.Index(messages.LogLevels, l.Level)
	return at < 0 || at >= slices.Index(messages.LogLevels, t.flags.level) // an unknown level may be the worst one
}

func (t *teller) once(ctx context.Context) error {
	stderr, lines, err := t.read(ctx)
	if err != nil {
		return err
	}
	lines = slices.DeleteFunc(lines, func(l supervisor.LogLine) bool { return !t.wanted(l) })
	if t.flags.json {
		return printJSON(t.out, logged{t.server, stderr, orEmpty(lines)})
	}
	t.printErr(stderr)
	for _, l := range lines {
		t.printLog(l)
	}
	if stderr == "" && len(lines) == 0 {
		t.remark("server %q has said nothing", messages.Line(t.server, 60))
	}
	return nil
}

func (t *teller) follow(ctx context.Context) error {
	poke, over := make(chan struct{}, 1), make(chan error, 1)
	go func() { // it ends with ctx
		over <- t.p.Follow(ctx, t.server, func(e messages.Event) error {
			if e.Kind == messages.EventLog || e.Kind == messages.EventPhase || e.Kind == messages.EventGap {
				select {
				case poke <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		stderr, lines, err := t.read(ctx)
		switch {
		case ctx.Err() != nil: // Ctrl-C is how it ends
			return nil
		case err != nil:
			return err
		}
		t.printErr(added(t.stderr, stderr))
		t.stderr = stderr
		for _, l := range t.fresh(lines) {
			if t.wanted(l) {
				t.printLog(l)
			}
		}
		select {
		case <-poke:
		case <-tick.C:
		case err := <-over:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// fresh are the lines after the one that was printed last.
func (t *teller) fresh(lines []supervisor.LogLine) []supervisor.LogLine {
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
	return lines // so much came that the last one was forgotten
}

// added is what a tail that is kept to a bound has more than it had before.
func added(before, now string) string {
	for from := 0; from < len(before); from++ {
		if from == 0 || before[from-1] == '\n' {
			if strings.HasPrefix(now, before[from:]) {
				return now[len(before)-from:]
			}
		}
	}
	return now
}

func (t *teller) printErr(text string) {
	if text == "" {
		return
	}
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		l = strings.TrimRight(l, "\n")
		if t.flags.json {
			t.line(map[string]string{"stderr": l})
			continue
		}
		fmt.Fprintf(t.out, "stderr        | %s\n", l)
	}
}

func (t *teller) printLog(l supervisor.LogLine) {
	if t.flags.json {
		t.line(l)
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
	fmt.Fprintf(t.out, "%s  %-9s  %s\n", l.Time.Local().Format("15:04:05.000"), messages.Line(l.Level, 20),
		messages.Line(text, 0))
}

// line prints a JSON object on a line of its own.
func (t *teller) line(v any) {
	_ = printJSONLine(t.out, v) // the outlet keeps what went wrong
}
