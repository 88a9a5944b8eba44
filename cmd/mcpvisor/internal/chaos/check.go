package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
)

// exitInconclusive is the exit code of chaos when what was to be tried did not happen. It shares its number with exit.NotSent.
const exitInconclusive = 3

// chaosCheckFlags holds the flags of chaos check. concurrency and starts are bounded in chaosCheck, since a check must not
// become an attack on a remote server.
type chaosCheckFlags struct {
	servers, calls      []string
	concurrency, starts int
	timeout             time.Duration
	json                bool
	out                 string
}

// newChaosCheck returns the command "chaos check", which runs chaosCheck. The checks themselves are in test/chaos/check; this
// file has the flags and the output.
func newChaosCheck(o *cli.Options) *cobra.Command {
	var f chaosCheckFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Say how resilient the servers of this project are",
		Long: `Starts or dials each configured server several times, does to it what bad days do (kills it, breaks messages, sends
many and big ones, ends its input), and says in plain words what was seen and what to do about it. FILE is a
configuration to read as with --config; without it the project's own is used. Servers that wait for an approval, and
disabled ones, are left out, and say so. A running mcpvisor up is left alone: the check starts servers of its own.

Tools are called only if you list them with --call, or if you marked their server trusted, they say that they are
read-only, and they demand no argument. Everything else that is sent changes nothing.

Exit codes: 0 nothing fails (warnings are allowed) · 1 something fails · 2 usage, or the check itself failed · 3 nothing
could be concluded`,
		Example: `  mcpvisor chaos check
  mcpvisor chaos check .mcp.json --server files --call 'files:list_directory {"path":"."}'
  mcpvisor chaos check --json --out .chaos`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.UsageError(cmd, "one file at most; name servers with --server, and %q is a second argument",
					messages.Line(args[1], 60))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return chaosCheck(o, cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.servers, "server", nil, "check only this `server` (repeatable)")
	fl.StringArrayVar(&f.calls, "call", nil, "this tool may be called: `'SERVER:TOOL {json}'` (repeatable)")
	fl.IntVar(&f.concurrency, "concurrency", 8, "how many requests or calls are sent at once")
	fl.IntVar(&f.starts, "starts", 3, "how often each server is started again to measure it")
	fl.DurationVar(&f.timeout, "timeout", 30*time.Second, "how long one call may take")
	fl.BoolVarP(&f.json, "json", "j", false, "print the report as JSON")
	fl.StringVar(&f.out, "out", "", "write report.json and junit.xml into this `folder`")
	_ = cmd.RegisterFlagCompletionFunc("server", project.CompleteWith(o, project.CompleteServer)) // this flag exists
	return cmd
}

// chaosCheck runs the check on servers of its own, under a guardian, and prints the report. Approvals and policies hold as for
// any command that starts servers.
func chaosCheck(o *cli.Options, cmd *cobra.Command, args []string, f chaosCheckFlags) error {
	if f.concurrency < 1 || f.concurrency > 256 {
		return exit.UsageError(cmd, "--concurrency: between 1 and 256, not %d", f.concurrency)
	}
	if f.starts < 1 || f.starts > 50 {
		return exit.UsageError(cmd, "--starts: between 1 and 50, not %d", f.starts)
	}
	// FILE counts like a value of --config, so that its servers need no approval: the person named the file.
	o.Configs = append(o.Configs, args...)
	set, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	set.PrintProblems(o)
	if len(set.Specs) == 0 {
		return exit.With(exitInconclusive, set.NoServersText())
	}
	opts := check.Options{
		Servers: set.Specs, Concurrency: f.concurrency, Starts: f.starts, CallTimeout: f.timeout, InheritEnv: o.InheritEnv,
		// The organisation's policies hold for the check as well.
		Refusal: func(s messages.Spec) string { return config.Refusal(s, set.Policies...) },
	}
	if len(f.servers) > 0 {
		opts.Servers = map[string]messages.Spec{}
		for _, name := range f.servers {
			spec, ok := set.Specs[name]
			if !ok {
				return project.UnknownServerError("check", name, set.ServerNames(), set)
			}
			opts.Servers[name] = spec
		}
	}
	if opts.Calls, err = chaosCalls(cmd, f.calls, opts.Servers); err != nil {
		return err
	}
	if g, err := guardian.Start(); err != nil {
		o.WarnFailure(fmt.Errorf("no guardian could be started: servers may stay behind if this process is killed: %w", err))
	} else {
		opts.Guard = g
		defer g.Close()
	}
	if terminal.UsesColours(o.Err) && !o.Quiet { // standard error is a terminal, where a line can be drawn over
		opts.Progress = func(server, what string) {
			fmt.Fprintf(o.Err, "\r\x1b[K%s: %s …", messages.Line(server, 30), what)
		}
	}
	// The check starts and kills servers of its own, and never touches those of a running up.
	report, err := check.Run(cmd.Context(), opts)
	if terminal.UsesColours(o.Err) && !o.Quiet {
		fmt.Fprint(o.Err, "\r\x1b[K")
	}
	if stop := exit.InterruptedError(cmd.Context()); stop != nil {
		return stop
	}
	if err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 300))
	}
	return printChaosCheck(o, report, f)
}

// chaosCalls reads the values of --call and returns the calls by server. The name of the server may be left out if only one is
// checked.
func chaosCalls(cmd *cobra.Command, texts []string, specs map[string]messages.Spec) (map[string][]check.Call, error) {
	calls := map[string][]check.Call{}
	for _, t := range texts {
		call, err := check.ParseCall(t)
		if err != nil {
			return nil, exit.UsageError(cmd, "--call: %s", err)
		}
		server, tool, named := strings.Cut(call.Tool, ":")
		// The part before the colon is a server only if one has this name, because names of tools may hold colons.
		if _, ok := specs[server]; named && ok {
			call.Tool = tool
		} else if len(specs) == 1 {
			for server = range specs { // there is only one
			}
		} else {
			return nil, exit.UsageError(cmd, "--call: whose tool is %q? Write 'SERVER:TOOL {json}' with one of %s",
				messages.Line(call.Tool, 60), terminal.JoinNames(slices.Sorted(maps.Keys(specs))))
		}
		calls[server] = append(calls[server], call)
	}
	return calls, nil
}

// printChaosCheck writes the report files, prints the report, and turns the verdict into the exit code.
func printChaosCheck(o *cli.Options, r check.Report, f chaosCheckFlags) error {
	if f.out != "" {
		if err := check.Write(f.out, r); err != nil {
			return exit.With(exit.Usage, "the report cannot be written: "+messages.Line(err.Error(), 200))
		}
	}
	if f.json {
		if err := terminal.PrintJSON(o.Out, r); err != nil {
			return err
		}
	} else {
		for i, s := range r.Servers {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			printChecked(o, s)
		}
	}
	if f.out != "" {
		o.PrintRemark("report.json and junit.xml are in %s", messages.Line(f.out, 0))
	}
	// The worst verdict of all servers decides; warnings do not fail a script.
	switch r.Verdict() {
	case check.Fail:
		return &exit.Error{Code: exit.Failed}
	case check.NotTried:
		return exit.With(exitInconclusive, "nothing could be concluded about any server")
	case check.Pass, check.Warn:
	}
	return nil
}

// printChecked prints the findings about one server as a table, with what to do below each warning and failure.
func printChecked(o *cli.Options, s check.Server) {
	about := []string{messages.Line(s.Name, 60), string(s.Transport)}
	if s.Says != "" {
		about = append(about, messages.Line(s.Says, 80))
	}
	counts := fmt.Sprintf("%d pass, %d warn, %d fail", s.Count(check.Pass), s.Count(check.Warn), s.Count(check.Fail))
	if n := s.Count(check.NotTried); n > 0 {
		counts += fmt.Sprintf(", %d not tried", n)
	}
	fmt.Fprintf(o.Out, "%s: %s (%s)\n", strings.Join(about, " · "), counts, s.Took.Round(100*time.Millisecond))
	t := terminal.NewTable(o.Out, "check", "verdict", "seen")
	// The column of texts wraps at the width that the others leave, and not at all in a pipe.
	room := 0
	if columns := terminal.ColumnsOf(o.Out); columns > 0 {
		room = max(columns-60, 40)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: room, WidthMaxEnforcer: text.WrapSoft}})
	for _, f := range s.Findings {
		seen := messages.Line(f.Text, 0)
		// A passed check needs no advice.
		if f.Fix != "" && f.Verdict != check.Pass {
			seen += "\n→ " + messages.Line(f.Fix, 0)
		}
		t.AppendRow(table.Row{f.Title, terminal.PaintText(o.Out, colourOfVerdict(f.Verdict), string(f.Verdict)), seen})
	}
	terminal.PrintTable(o.Out, t)
}

// colourOfVerdict uses the colours of the phases, which a person of this program knows already.
func colourOfVerdict(v check.Verdict) text.Colors {
	switch v {
	case check.Pass:
		return status.ColourOf(messages.Connected)
	case check.Warn:
		return status.ColourOf(messages.Pending)
	case check.Fail:
		return status.ColourOf(messages.Failed)
	case check.NotTried:
		return status.ColourOf(messages.Disabled)
	}
	return nil
}
