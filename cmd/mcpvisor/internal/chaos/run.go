package chaos

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	chaoslive "github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// chaosRunFlags holds the flags of chaos run.
type chaosRunFlags struct {
	seed     uint64
	duration time.Duration
	// servers is the number of servers to scale the scenario to; 0 leaves it as it is.
	servers int
	out     string
	keep    bool
	json    bool
}

// newChaosRun returns the command "chaos run", which runs chaosRun: one scenario, on real processes and sockets of this
// machine.
func newChaosRun(o *cli.Options) *cobra.Command {
	var f chaosRunFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a bad day on real processes and sockets of this machine",
		Long: `Starts this program again and again as misbehaving servers (processes, and HTTP, SSE and WebSocket on 127.0.0.1), connects
them with the manager as it is, breaks what the scenario says, heals everything, and demands that all is well again and
that nothing is left: no process, no descriptor, no goroutine. SCENARIO is a file, or the name of one that comes with
mcpvisor (mcpvisor chaos scenarios).

It takes as long as the scenario says, and then until every server is connected again. A server costs about 7 MB of
memory while it is a process; 500 of them on two processors are connected in 10 s.

The report lies in --out. Without it, it is written into a temporary folder, which is removed again if all went well and
--keep is not given. Ctrl-C ends everything that was started.

Exit codes: 0 every check holds · 1 one is violated · 2 usage, or the harness itself failed · 3 inconclusive: what was to
be tried did not happen`,
		Example: `  mcpvisor chaos run flapping
  mcpvisor chaos run five-hundred --out .chaos/five-hundred
  mcpvisor chaos run my-day.yaml --seed 7 --servers 100 --duration 1m`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.UsageError(cmd, "one scenario: a file, or a name of mcpvisor chaos scenarios")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return chaosRun(o, cmd, args[0], f) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, s := range scenario.Library() {
				names = append(names, s.Name+"\t"+s.About)
			}
			return names, cobra.ShellCompDirectiveDefault
		},
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.seed, "seed", 0, "what is left to chance; the scenario's own if not given")
	fl.DurationVar(&f.duration, "duration", 0, "how long things may break; the scenario's own if not given")
	fl.IntVar(&f.servers, "servers", 0, "run about so many servers: every group is made larger or smaller")
	fl.StringVar(&f.out, "out", "", "write the report into this `folder`")
	fl.BoolVar(&f.keep, "keep", false, "keep the report also if all went well")
	fl.BoolVarP(&f.json, "json", "j", false, "print the report as JSON")
	return cmd
}

// scenarioWithFlags returns the scenario of a file or name, with the duration and the number of servers that the person gave.
func scenarioWithFlags(name string, tier scenario.Tier, duration time.Duration, servers int) (scenario.Scenario, error) {
	s, err := scenarioByName(name, tier)
	if err != nil {
		return s, err
	}
	if duration > 0 {
		s.Duration = messages.Duration(duration)
	}
	if servers > 0 {
		s = scaleServers(s, servers)
	}
	return s, nil
}

// chaosRun plays a scenario on real processes of this machine, and judges it. An interrupt ends the run without a verdict.
func chaosRun(o *cli.Options, cmd *cobra.Command, name string, f chaosRunFlags) error {
	if f.servers < 0 || f.servers > 2000 {
		return exit.UsageError(cmd, "--servers: between 1 and 2000, not %d", f.servers)
	}
	if f.duration < 0 {
		return exit.UsageError(cmd, "--duration: %s is no time in which things can break", f.duration)
	}
	s, err := scenarioWithFlags(name, scenario.Real, f.duration, f.servers)
	if err != nil {
		return err
	}
	// report.Write replaces the whole folder, and with it the scenario.
	if f.out != "" && isFileIn(name, f.out) {
		return exit.UsageError(cmd, "--out: the scenario itself lies in that folder, and the report would replace it; give another folder")
	}
	// Planning finds what cannot be run in this tier before any process is started.
	plan, err := s.Plan(f.seed, scenario.Real)
	if err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 500))
	}
	opts := chaoslive.Options{}
	if g, err := guardian.Start(); err == nil { // peers end without a guardian too; what they have started ends sooner with it
		opts.Guard = g
		defer g.Close()
	}
	// A run takes minutes, in which the person should see that something happens.
	line := newProgressLine(o)
	opts.Progress = func(p chaoslive.Progress) { line.draw(chaosProgress(p)) }
	began := time.Now()
	h, err := chaoslive.Run(cmd.Context(), plan, opts)
	line.clear()
	if err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 300))
	}
	if stop := exit.InterruptedError(cmd.Context()); stop != nil {
		return stop
	}
	return chaosJudge(o, h, report.Run{
		History: h, Started: began, Took: time.Since(began), Command: f.replayCommand(name, plan.Seed), Replace: true,
	}, f)
}

// chaosJudge judges a history, writes the report, prints it, and turns the verdicts into the exit code. A report of a run that
// went well lies in a temporary folder, which is removed, unless the person asked to keep it.
func chaosJudge(o *cli.Options, h *history.History, r report.Run, f chaosRunFlags) error {
	r.Verdicts = invariant.Judge(h)
	answer := report.Overall(r.Verdicts)
	r.Dir = f.out
	if r.Dir == "" {
		dir, err := os.MkdirTemp("", "mcpvisor-chaos-")
		if err != nil {
			return exit.With(exit.Usage, "no folder can be made for the report: "+messages.Line(err.Error(), 200))
		}
		r.Dir = filepath.Join(dir, "report")
		// A run that went well leaves nothing; a violated one keeps its folder, whose path is printed.
		if answer == invariant.Holds && !f.keep {
			defer os.RemoveAll(dir)
		}
	}
	if err := report.Write(r.Dir, r); err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 300))
	}
	if f.json {
		b, err := os.ReadFile(filepath.Join(r.Dir, "report.json"))
		if err != nil {
			return exit.With(exit.Usage, "the report cannot be read: "+messages.Line(err.Error(), 200))
		}
		_, _ = o.Out.Write(terminal.WithSchema(b)) // a failed write is remembered by CheckedWriter
	} else {
		if f.out == "" && answer == invariant.Holds && !f.keep {
			r.Dir = "" // the folder is removed, so that it must not be named
		}
		report.Terminal(o.Out, r, terminal.UsesColours(o.Out))
	}
	switch answer {
	case invariant.Violated:
		return &exit.Error{Code: exit.Failed}
	case invariant.Inconclusive:
		return &exit.Error{Code: exitInconclusive}
	default:
		return nil
	}
}

// scenarioByName returns the scenario of the library with that name, else reads the file. A file is vetted for the tier in
// which it is to run; the error lists everything that is wrong with it.
func scenarioByName(name string, tier scenario.Tier) (scenario.Scenario, error) {
	// A name of the library wins over a file of the same name; "./name" reads the file.
	if s, ok := scenario.Named(name); ok {
		return s, nil
	}
	b, err := os.ReadFile(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		text := fmt.Sprintf("there is no file %q, and no scenario of that name", messages.Line(name, 100))
		if near := scenario.Nearest(name); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return scenario.Scenario{}, exit.With(exit.Usage, text+"; see: mcpvisor chaos scenarios")
	case err != nil:
		return scenario.Scenario{}, exit.With(exit.Usage, "the scenario cannot be read: "+messages.Line(err.Error(), 200))
	}
	s, err := scenario.Vet(name, b, tier)
	if err != nil {
		return s, exit.With(exit.Usage, messages.Printable(err.Error()))
	}
	return s, nil
}

// replayCommand returns the command that repeats the run.
func (f chaosRunFlags) replayCommand(name string, seed uint64) string {
	words := []string{"mcpvisor chaos run", terminal.ShellWord(name), fmt.Sprintf("--seed %d", seed)}
	if f.servers > 0 {
		words = append(words, fmt.Sprintf("--servers %d", f.servers))
	}
	if f.duration > 0 {
		words = append(words, "--duration "+f.duration.String())
	}
	return strings.Join(words, " ")
}

// chaosProgress describes the state of a run in one line.
func chaosProgress(p chaoslive.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.At.Round(time.Second), p.Stage)
	if p.Stage == "breaking" {
		fmt.Fprintf(&b, " until %s, %d faults", p.Heal.Round(time.Second), p.Faults)
	}
	fmt.Fprintf(&b, " · %d of %d connected", p.Connected, p.Servers)
	if p.Failed+p.NeedsAuth > 0 {
		fmt.Fprintf(&b, ", %d failed", p.Failed+p.NeedsAuth)
	}
	if p.Calls > 0 {
		fmt.Fprintf(&b, " · %d calls, %d lost", p.Calls, p.Lost)
	}
	return b.String()
}

// scaleServers returns the scenario with about so many servers. Its groups keep their proportions, rounded, and each keeps at
// least one server, so that no fault loses its target.
func scaleServers(s scenario.Scenario, servers int) scenario.Scenario {
	s = s.Clone()
	was := 0
	for _, g := range s.Servers {
		was += max(g.Count, 1)
	}
	for i, g := range s.Servers {
		s.Servers[i].Count = max((max(g.Count, 1)*servers+was/2)/was, 1)
	}
	return s
}

// progressLine shows how far a command is: on a terminal one line that is drawn over, elsewhere a new line every lineInterval.
// It is used by one goroutine.
type progressLine struct {
	out      io.Writer
	terminal bool
	shown    bool
	last     time.Time
}

// lineInterval is the time between two lines where nothing can be drawn over.
const lineInterval = 10 * time.Second

// draw shows the text as the new state. On a terminal it is cut to one line, because a wrapped line could not be drawn over.
func (l *progressLine) draw(text string) {
	if !l.terminal {
		if l.last.IsZero() {
			// The first line comes only after the interval, so that a short run prints none.
			l.last = time.Now()
		}
		if time.Since(l.last) >= lineInterval {
			l.last = time.Now()
			fmt.Fprintln(l.out, "mcpvisor: "+text)
		}
		return
	}
	if columns := terminal.ColumnsOf(l.out); columns > 4 {
		text = messages.Line(text, columns-1)
	}
	fmt.Fprint(l.out, "\r\x1b[2K"+text)
	l.shown = true
}

// clear removes the line from the terminal, so that what is printed next begins on an empty line.
func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[2K")
		l.shown = false
	}
}

// newProgressLine returns a line that shows on standard error how far a command is; with --quiet it shows nothing.
func newProgressLine(o *cli.Options) *progressLine {
	if o.Quiet {
		return &progressLine{out: io.Discard}
	}
	return &progressLine{out: o.Err, terminal: terminal.IsTerminal(o.Err)}
}
