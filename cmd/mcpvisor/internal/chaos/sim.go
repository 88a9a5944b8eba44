package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// chaosWorkerFlag makes chaos sim a worker process of another chaos sim. It is hidden, because only campaign.Pool gives it.
const chaosWorkerFlag = "worker"

// defaultSeeds is the number of random days that are run if --seeds is not given.
const defaultSeeds = 200

// chaosSimFlags holds the flags of chaos sim.
type chaosSimFlags struct {
	seed uint64
	// seeds and seed are 0 until prepareTask has chosen their defaults.
	seeds    int
	servers  int
	duration time.Duration
	// out is the folder of reports; empty writes one of a failed day only.
	out string
	// jobs is the number of worker processes; 0 until prepareTask has made it the number of processors.
	jobs     int
	noShrink bool
	json     bool
	// worker makes this process a worker, which gets its tasks on standard input; all other flags have no meaning then.
	worker bool
}

// newChaosSim returns the command "chaos sim", which runs chaosSim: one scenario or many random days, in virtual time.
func newChaosSim(o *cli.Options) *cobra.Command {
	var f chaosSimFlags
	cmd := &cobra.Command{
		Use:   "sim [SCENARIO]",
		Short: "Run bad days in virtual time, hundreds in a minute",
		Long: `Runs the manager as it is (its actors, restart policy, registry and sessions) over servers in memory, in virtual time: a
day takes a second. Without SCENARIO each seed is another random bad day; with one, a file or a name of mcpvisor chaos
scenarios, that day is run once, or with --seeds several times with other dice.

Everything comes from the seed: the same seed gives the same history, byte for byte. (Where other programs keep the processors
busy, two events of one instant may change places, in about one day of ten.) A run that violates an invariant is made as small
as it can be, and the report into --out (.chaos if not given) tells of the small one, with its scenario; the day in which it
was found lies beside it.

Runs are judged in processes of their own, one for each processor. What was not tried in any of them (a fault that never
fired, a park that never happened) is inconclusive.

A run that hangs is given up within seconds (a mutex that is never unlocked, a loop without an end, memory that is taken
without an end) and says who waits for what; the other seeds go on. One that takes more than 10 s says so, with the command that repeats it.

Exit codes: 0 every check holds · 1 one is violated, or a run hangs · 2 usage, or the harness itself failed · 3 inconclusive`,
		Example: `  mcpvisor chaos sim
  mcpvisor chaos sim --seeds 10000 --out .chaos
  mcpvisor chaos sim --seed 4711 -n 1
  mcpvisor chaos sim stampede
  mcpvisor chaos sim my-day.yaml --seed 7 --out .chaos/my-day`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.UsageError(cmd, "one scenario at most, and %q is a second one", messages.Line(args[1], 60))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return chaosSim(o, cmd, args, f) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, s := range scenario.Library() {
				names = append(names, s.Name+"\t"+s.About)
			}
			return names, cobra.ShellCompDirectiveDefault
		},
	}
	fl := cmd.Flags()
	fl.Uint64Var(&f.seed, "seed", 0, "the first seed; 1, or that of the scenario, if not given")
	fl.IntVarP(&f.seeds, "seeds", "n", 0, fmt.Sprintf("how many seeds; %d, or 1 with a scenario, if not given", defaultSeeds))
	fl.IntVar(&f.servers, "servers", 0, "a random day has at most so many servers; every group of a scenario is made larger or smaller")
	fl.DurationVar(&f.duration, "duration", 0, "how long things may break, in virtual time")
	fl.StringVar(&f.out, "out", "", "write reports into this `folder`")
	fl.IntVar(&f.jobs, "jobs", 0, "how many processes run at a time; one for each processor if not given")
	fl.BoolVar(&f.noShrink, "no-shrink", false, "do not look for a smaller scenario that fails as well")
	fl.BoolVarP(&f.json, "json", "j", false, "print what was found as JSON")
	fl.BoolVar(&f.worker, chaosWorkerFlag, false, "")
	_ = fl.MarkHidden(chaosWorkerFlag) // this flag exists
	return cmd
}

// chaosSim runs one day or many in worker processes. Each worker is this program started again, because a run that hangs or
// crashes can then be given up without losing the others.
func chaosSim(o *cli.Options, cmd *cobra.Command, args []string, f chaosSimFlags) error {
	if f.worker {
		if err := campaign.Serve(cmd.Context(), o.In, o.Out); err != nil {
			return exit.With(exit.Usage, messages.Line(err.Error(), 300))
		}
		return nil
	}
	s := simulation{options: o, flags: f}
	if err := s.prepareTask(cmd, args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return exit.With(exit.Usage, "this program does not know its own path: "+messages.Line(err.Error(), 200))
	}
	// Workers are processes, since a run in virtual time that hangs cannot be stopped from within its process.
	s.pool = campaign.NewPool(func() *exec.Cmd { return exec.Command(self, "chaos", "sim", "--"+chaosWorkerFlag) }, s.flags.jobs)
	defer s.pool.Close()
	// Workers report slow runs concurrently.
	var slowMu sync.Mutex
	s.pool.Slow = func(t campaign.Task, text string) {
		slowMu.Lock()
		defer slowMu.Unlock()
		fmt.Fprintf(s.options.Err, "mcpvisor: seed %d takes more than 10 s: %s\n  repeat: %s\n", t.Seed, messages.Printable(text), s.replayCommand(t))
	}
	if s.task.Scenario != nil && s.flags.seeds == 1 {
		return s.runOnce(cmd.Context())
	}
	return s.runCampaign(cmd.Context())
}

// simulation holds what one chaos sim works with.
type simulation struct {
	options *cli.Options
	flags   chaosSimFlags
	name    string        // name or file of the scenario as the person gave it; empty for random days
	task    campaign.Task // the task of every seed, without the seed
	pool    *campaign.Pool
}

// prepareTask checks the flags and fills the task. Without a scenario it takes the defaults of random days; with one it reads
// the scenario, plans it once to find errors, and runs it once unless --seeds says otherwise.
func (s *simulation) prepareTask(cmd *cobra.Command, args []string) error {
	f := &s.flags
	switch {
	case f.servers < 0 || f.servers > 10_000:
		return exit.UsageError(cmd, "--servers: between 1 and 10000, not %d", f.servers)
	case f.duration < 0:
		return exit.UsageError(cmd, "--duration: %s is no time in which things can break", f.duration)
	case f.seeds < 0:
		return exit.UsageError(cmd, "--seeds: at least 1, not %d", f.seeds)
	case f.jobs < 0 || f.jobs > 1024:
		return exit.UsageError(cmd, "--jobs: between 1 and 1024, not %d", f.jobs)
	}
	if f.jobs == 0 {
		f.jobs = runtime.GOMAXPROCS(0)
	}
	s.task = campaign.Task{Servers: f.servers, Duration: f.duration}
	if len(args) == 0 {
		f.seeds, f.seed = max(f.seeds, 0), max(f.seed, 1)
		if f.seeds == 0 {
			f.seeds = defaultSeeds
		}
		return nil
	}
	s.name = args[0]
	day, err := scenarioWithFlags(s.name, scenario.Sim, f.duration, f.servers)
	if err != nil {
		return err
	}
	// The plan also holds the seed that counts: the person's, or else the scenario's.
	plan, err := day.Plan(f.seed, scenario.Sim)
	if err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 500))
	}
	if f.seeds <= 1 && f.out != "" && isFileIn(s.name, f.out) {
		return exit.UsageError(cmd, "--out: the scenario itself lies in that folder, and the report would replace it; give another folder")
	}
	s.task.Scenario = &day
	f.seed, f.seeds = plan.Seed, max(f.seeds, 1)
	f.jobs = min(f.jobs, max(f.seeds, 2)) // the search for a smaller scenario uses two processes also for one seed
	return nil
}

// runOnce runs a scenario once and prints the whole report. If the run violates an invariant, it searches a smaller scenario
// that violates the same, and the report is about that one.
func (s *simulation) runOnce(ctx context.Context) error {
	t := s.task
	t.Seed = s.flags.seed
	began := time.Now()
	line := newProgressLine(s.options)
	line.draw("simulating …")
	r, h, err := s.runRecorded(ctx, t)
	line.clear()
	if err != nil {
		return err
	}
	if h == nil { // the process of the run died, so that there is no history to report
		return s.reportCampaign(ctx, []campaign.Result{r}, campaign.Summary{Runs: 1, Failed: []campaign.Result{r}})
	}
	full := report.Run{History: h, Verdicts: r.Verdicts, Started: began, Took: r.Took, Command: s.replayCommand(t), Dir: s.flags.out,
		Replace: true}
	// The exit code is that of the run which was asked for, also if a smaller one is reported.
	answer := report.Overall(r.Verdicts)
	if answer == invariant.Violated {
		if full.Dir == "" {
			full.Dir = s.reportFolder(h.Plan)
		}
		v, _ := r.Violated()
		switch small, err := s.shrinkRun(ctx, t, r, v); {
		case err != nil:
			return err
		case small != nil:
			r.Verdicts = small.Verdicts
			small.Dir, small.Replace, small.Lead = full.Dir, true, v.ID
			small.Command = "mcpvisor chaos sim " + terminal.ShellWord(filepath.Join(full.Dir, "scenario.yaml"))
			full = *small
		}
	}
	if stop := exit.InterruptedError(ctx); stop != nil {
		return stop
	}
	if full.Dir != "" {
		if err := report.Write(full.Dir, full); err != nil {
			return exit.With(exit.Usage, messages.Line(err.Error(), 300))
		}
	}
	if s.flags.json {
		if err := terminal.PrintJSON(s.options.Out, chaosFindings{Result: &r, Report: full.Dir, Replay: full.Command}); err != nil {
			return err
		}
	} else {
		report.Terminal(s.options.Out, full, terminal.UsesColours(s.options.Out))
	}
	return chaosExit(answer)
}

// runRecorded runs a task in a worker and reads the history that the worker wrote. The history is nil, without an error, if the
// worker has written none: its process died, or it hung before the run or after it.
func (s *simulation) runRecorded(ctx context.Context, t campaign.Task) (campaign.Result, *history.History, error) {
	f, err := os.CreateTemp("", "mcpvisor-chaos-*.jsonl")
	if err != nil {
		return campaign.Result{}, nil, exit.With(exit.Usage, "no file can be made for the history: "+messages.Line(err.Error(), 200))
	}
	defer func() {
		_ = f.Close() // it is only read
		_ = os.Remove(f.Name())
	}()
	// The worker writes the history into this file, because its answer holds only the verdicts.
	t.History = f.Name()
	r := s.pool.Do(ctx, t)
	if stop := exit.InterruptedError(ctx); stop != nil {
		return r, nil, stop
	}
	if r.Error != "" {
		return r, nil, exit.With(exit.Usage, "the simulation failed: "+messages.Line(r.Error, 500))
	}
	if r.Events == 0 {
		return r, nil, nil
	}
	h, err := history.Read(f)
	if err != nil {
		return r, nil, exit.With(exit.Usage, "the history cannot be read: "+messages.Line(err.Error(), 300))
	}
	return r, h, nil
}

// replayCommand returns the command that runs a task again.
func (s *simulation) replayCommand(t campaign.Task) string {
	words := "mcpvisor chaos sim"
	if s.name != "" {
		words += " " + terminal.ShellWord(s.name)
	}
	words += fmt.Sprintf(" --seed %d", t.Seed)
	if s.name == "" {
		words += " -n 1"
	}
	if s.flags.servers > 0 {
		words += fmt.Sprintf(" --servers %d", s.flags.servers)
	}
	if s.flags.duration > 0 {
		words += " --duration " + s.flags.duration.String()
	}
	return words
}

// chaosExit maps the answer of the invariants to the exit code.
func chaosExit(a invariant.Answer) error {
	switch a {
	case invariant.Violated:
		return &exit.Error{Code: exit.Failed}
	case invariant.Inconclusive:
		return &exit.Error{Code: exitInconclusive}
	default:
		return nil
	}
}
