package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

const (
	// chaosFolder is the folder for reports without --out.
	chaosFolder = ".chaos"
	// maxReports bounds how many failing runs are made smaller and reported: one for each invariant, because further runs that
	// violate the same one rarely say more.
	maxReports = 3
	// maxFailedShown bounds how many failing runs are listed on the terminal.
	maxFailedShown = 6
	// shrinkTime bounds the search for one smaller scenario, or the time of shrinkRuns runs of the day if the machine is so busy that these take
	// longer, but no longer than shrinkLongest.
	shrinkTime    = 30 * time.Second
	shrinkRuns    = 15
	shrinkLongest = time.Minute
	// maxReruns bounds how often a failing seed is run again for its report until it fails once more.
	maxReruns = 4
)

// chaosFindings is the JSON object that chaos sim prints.
type chaosFindings struct {
	// Result is set for a single run, Summary for many.
	Result  *campaign.Result  `json:"result,omitempty"`
	Summary *campaign.Summary `json:"summary,omitempty"`
	Answer  invariant.Answer  `json:"answer,omitempty"`
	Report  string            `json:"report,omitempty"`
	Reports []failedRun       `json:"reports,omitempty"`
	Replay  string            `json:"replay,omitempty"`
}

// failedRun is one failing run with its report.
type failedRun struct {
	Seed uint64 `json:"seed"`
	// ID is that of the violated invariant.
	ID     string `json:"id"`
	Folder string `json:"folder"`
	// File is the file of the folder that a person reads first.
	File   string `json:"file"`
	Replay string `json:"replay"`
	// Verdict is that of the run in the report, which may be a smaller one than the run that failed first; or that of the run that
	// failed if NotShown is set.
	Verdict invariant.Verdict `json:"verdict"`
	// Smaller describes the day of the report if it was made smaller; empty if it is the one of the seed.
	Smaller string `json:"smaller,omitempty"`
	// NotShown says that the invariant held in each further run of the seed, the last of which is in the report.
	NotShown bool `json:"notShown,omitempty"`
}

// runCampaign runs all seeds in the pool, shows a progress bar, and reports what failed.
func (s *simulation) runCampaign(ctx context.Context) error {
	bar := newProgressLine(s.options)
	done, failed := 0, 0
	sum := campaign.Run(ctx, s.pool, campaign.Seeds(s.task, s.flags.seed, s.flags.seeds), func(r campaign.Result) {
		done++
		if v, bad := r.Violated(); bad {
			failed++
			s.printAtOnce(bar, r, v, failed)
		}
		bar.draw(fmt.Sprintf("%s %d of %d seeds, %d violated", progressBar(done, s.flags.seeds, 30), done, s.flags.seeds, failed))
	})
	bar.clear()
	if stop := exit.InterruptedError(ctx); stop != nil {
		return stop
	}
	return s.reportCampaign(ctx, sum.Failed, sum)
}

// printAtOnce prints a failing run when it ends: the reports come after the last seed, and an interrupted campaign has none.
func (s *simulation) printAtOnce(bar *progressLine, r campaign.Result, v invariant.Verdict, failed int) {
	if s.flags.seeds == 1 && !r.Hangs() || failed > maxFailedShown {
		return
	}
	bar.clear()
	if r.Hangs() {
		fmt.Fprintf(s.options.Err, "mcpvisor: seed %d hangs: %s\n", r.Seed, messages.Line(v.Why, 400))
		return
	}
	fmt.Fprintf(s.options.Err, "mcpvisor: %s\n", failureText(r.Seed, v, 160))
}

// failureText describes a violation of one seed in one line; width bounds its explanation.
func failureText(seed uint64, v invariant.Verdict, width int) string {
	where := ""
	if v.Server != "" {
		where = " on " + messages.Line(v.Server, 30)
	}
	return fmt.Sprintf("seed %d: %s%s at %s: %s", seed, v.ID, where, v.At.Round(time.Millisecond), messages.Line(v.Why, width))
}

// progressBar returns a bar of size characters.
func progressBar(done, all, size int) string {
	full := size * done / max(all, 1)
	return strings.Repeat("█", full) + strings.Repeat("░", size-full)
}

// reportCampaign writes reports of the first failing runs, one for each invariant, prints the summary, and returns the exit
// code. A violation weighs more than seeds that could not be run.
func (s *simulation) reportCampaign(ctx context.Context, failed []campaign.Result, sum campaign.Summary) error {
	var reports []failedRun
	// One report for each invariant: further failures of the same invariant are only listed.
	known := map[string]bool{}
	for _, r := range failed {
		if v, _ := r.Violated(); len(reports) < maxReports && !known[v.ID] {
			known[v.ID] = true
			one, err := s.reportFailure(ctx, r, v)
			if err != nil {
				return err
			}
			reports = append(reports, one)
		}
	}
	if stop := exit.InterruptedError(ctx); stop != nil {
		return stop
	}
	answer := sum.Answer()
	replay := s.replayCommand(campaign.Task{Seed: s.flags.seed})
	// Without a failure the replay is that of the whole campaign.
	if s.flags.seeds != 1 {
		replay = strings.Replace(replay, " -n 1", "", 1) + fmt.Sprintf(" -n %d", s.flags.seeds)
	}
	if len(reports) > 0 {
		replay = reports[0].Replay
	}
	if s.flags.json {
		if err := terminal.PrintJSON(s.options.Out, chaosFindings{Summary: &sum, Answer: answer, Reports: reports, Replay: replay}); err != nil {
			return err
		}
	} else {
		s.printSummary(sum, answer, reports, replay)
	}
	if answer != invariant.Violated && len(sum.Errors) > 0 {
		return exit.With(exit.Usage, fmt.Sprintf("%d of %d seeds could not be run: seed %d: %s", len(sum.Errors),
			len(sum.Errors)+sum.Runs, sum.Errors[0].Seed, messages.Line(sum.Errors[0].Error, 300)))
	}
	return chaosExit(answer)
}

// reportFailure writes the report of a failing run: of the smallest scenario that fails like it, or if none was found of the
// run itself, which is run again because the campaign keeps no histories.
func (s *simulation) reportFailure(ctx context.Context, r campaign.Result, v invariant.Verdict) (failedRun, error) {
	t := s.task
	t.Seed = r.Seed
	one := failedRun{Seed: r.Seed, ID: v.ID, Replay: s.replayCommand(t), File: reportPage, Verdict: v}
	if r.Hangs() && r.Events == 0 && r.Stack == "" {
		// Its scenario is not made again here, because that may be what does not come to its end.
		one.Folder = s.reportFolder(scenario.Plan{Seed: t.Seed, Scenario: scenario.Scenario{Name: s.dayName(t)}})
		return one, s.writeWithoutHistory(&one, map[string][]byte{}, "")
	}
	small, err := s.shrinkRun(ctx, t, r, v)
	if err != nil {
		return one, err
	}
	run := report.Run{Command: one.Replay}
	if small != nil {
		run = *small
	} else {
		// The order of goroutines can differ between two runs of a seed, so that not each of them fails.
		for n := range maxReruns {
			began := time.Now()
			rerun, h, err := s.runRecorded(ctx, t)
			if err != nil {
				return one, err
			}
			if h == nil {
				return one, s.writeCrash(&one, t, r, s.smallerScenario(ctx, t, r, v))
			}
			if run.History, run.Verdicts, run.Started, run.Took = h, rerun.Verdicts, began, rerun.Took; n+1 == maxReruns || rerun.Violates(v.ID) {
				break
			}
		}
	}
	one.Folder = s.reportFolder(run.History.Plan)
	run.Dir, run.Replace, run.Lead = one.Folder, true, v.ID
	if small != nil {
		one.Replay = "mcpvisor chaos sim " + terminal.ShellWord(filepath.Join(one.Folder, "scenario.yaml"))
		run.Command, one.Smaller = one.Replay, smallerText(run.History.Plan)
	}
	one.Verdict, one.NotShown = reportedVerdict(v, run.Verdicts)
	if err := report.Write(one.Folder, run); err != nil {
		return one, exit.With(exit.Usage, messages.Line(err.Error(), 300))
	}
	return one, nil
}

// smallerText describes the day of a report that was made smaller, so that its reader knows which day the words and the times are about.
func smallerText(p scenario.Plan) string {
	return fmt.Sprintf("%s, %s, %s, %s", terminal.CountOf(len(p.Servers), "server"), terminal.CountOf(len(p.Faults), "fault"),
		terminal.CountOf(len(p.Commands), "command"), p.Heal.Round(100*time.Millisecond))
}

// reportedVerdict returns the verdict that stands beside a report: that of the run in the report, whose time and server may differ from
// the first run's. If the invariant holds there, the words of the first run stay, and notShown is true.
func reportedVerdict(first invariant.Verdict, inReport []invariant.Verdict) (v invariant.Verdict, notShown bool) {
	for _, found := range inReport {
		if found.ID == first.ID && found.Answer == invariant.Violated {
			return found, false
		}
	}
	return first, true
}

// shrinkRun returns the run of the smallest scenario that violates the same invariant, together with the scenario in which the
// violation was found. It returns nil if no scenario is smaller, --no-shrink is given, or the smaller one does not fail again.
func (s *simulation) shrinkRun(ctx context.Context, t campaign.Task, r campaign.Result, v invariant.Verdict) (*report.Run, error) {
	// A run that crashes leaves no history, and where the harness itself hangs the day is not the reason.
	if r.Violates(campaign.Crash) || r.Beside {
		return nil, nil
	}
	small := s.smallerScenario(ctx, t, r, v)
	if small == nil {
		return nil, nil
	}
	found := t.EffectiveScenario()
	found.Seed = t.Seed
	began := time.Now()
	rerun, h, err := s.runRecorded(ctx, campaign.Task{Seed: t.Seed, Scenario: small})
	if err != nil || h == nil || !rerun.Violates(v.ID) {
		return nil, err
	}
	return &report.Run{History: h, Verdicts: rerun.Verdicts, Started: began, Took: rerun.Took,
		Found: &report.Found{Scenario: found, Command: s.replayCommand(t)}}, nil
}

// writeCrash writes the scenario and the stack of a run whose process died. There is no history to make a page of. It sets the
// folder and the replay command in one.
func (s *simulation) writeCrash(one *failedRun, t campaign.Task, r campaign.Result, small *scenario.Scenario) error {
	bad := t.EffectiveScenario()
	bad.Seed = t.Seed
	plan, err := bad.Plan(t.Seed, scenario.Sim)
	if err != nil {
		return exit.With(exit.Usage, messages.Line(err.Error(), 500))
	}
	one.Folder = s.reportFolder(plan)
	files := map[string][]byte{"scenario.yaml": bad.YAML()}
	if small != nil {
		files["scenario.yaml"], files["found.yaml"] = small.YAML(), bad.YAML()
	}
	one.Replay = "mcpvisor chaos sim " + terminal.ShellWord(filepath.Join(one.Folder, "scenario.yaml"))
	return s.writeWithoutHistory(one, files, r.Stack)
}

const (
	// reportPage is the page of a report that has a history, crashText what stands in its place where there is none.
	reportPage, crashText = "report.html", "crash.txt"
)

// writeWithoutHistory writes the folder of a run that left no history: the files, and a text with the verdict and the stack.
func (s *simulation) writeWithoutHistory(one *failedRun, files map[string][]byte, stack string) error {
	one.File = crashText
	files[crashText] = []byte(messages.Printable(strings.TrimSpace(one.Verdict.Why+"\n\n"+stack) + "\n"))
	if err := os.MkdirAll(one.Folder, 0o755); err != nil {
		return exit.With(exit.Usage, "the folder of the report cannot be made: "+messages.Line(err.Error(), 200))
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(one.Folder, name), content, 0o644); err != nil {
			return exit.With(exit.Usage, "the report cannot be written: "+messages.Line(err.Error(), 200))
		}
	}
	return nil
}

// dayName returns the name of a task's scenario without making a random one.
func (s *simulation) dayName(t campaign.Task) string {
	if t.Scenario != nil {
		return t.Scenario.Name
	}
	return fmt.Sprintf("seed-%d", t.Seed)
}

// reportFolder returns the folder for the report of a run. It is never the folder in which the scenario of this run lies,
// because writing a report replaces the folder, and the person would lose the scenario.
func (s *simulation) reportFolder(p scenario.Plan) string {
	dir := filepath.Join(cmp.Or(s.flags.out, chaosFolder), folderName(p))
	if isFileIn(s.name, dir) {
		return dir + "-again"
	}
	return dir
}

// isFileIn reports whether a scenario is a file of this folder. It compares the folders by identity, so that links and relative
// paths do not deceive it.
func isFileIn(name, dir string) bool {
	if _, comes := scenario.Named(name); comes || name == "" {
		return false
	}
	holds, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return false
	}
	target, err := os.Stat(dir)
	return err == nil && os.SameFile(holds, target)
}

// folderName returns a name for the folder of a run: letters, digits and "-" of the scenario's name, and the seed.
func folderName(p scenario.Plan) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, messages.Line(p.Scenario.Name, 60))
	if seed := fmt.Sprintf("seed-%d", p.Seed); name != seed {
		return strings.TrimPrefix(name+"-"+seed, "-")
	}
	return name
}

// shrinkBound returns the bound of the search for a scenario that is smaller than one whose run took so long.
func shrinkBound(took time.Duration) time.Duration {
	return min(max(shrinkTime, shrinkRuns*took), shrinkLongest)
}

// smallerScenario searches, for at most shrinkBound, the smallest scenario that violates what the run r violates. It returns nil
// if none is smaller or --no-shrink is given.
func (s *simulation) smallerScenario(ctx context.Context, t campaign.Task, r campaign.Result, v invariant.Verdict) *scenario.Scenario {
	if s.flags.noShrink {
		return nil
	}
	bar := newProgressLine(s.options)
	defer bar.clear()
	ctx, cancel := context.WithTimeout(ctx, shrinkBound(r.Took))
	defer cancel()
	small, stats := campaign.ShrinkTask(ctx, s.pool, t, v, shrink.Options{Progress: func(tries int, smallest shrink.Size) {
		bar.draw(fmt.Sprintf("making seed %d smaller: try %d; %d servers, %d faults and commands, %s", t.Seed, tries, smallest.Servers,
			smallest.Happenings, smallest.Duration.Round(time.Second/10)))
	}})
	if !stats.Failed || stats.Kept == 0 {
		return nil
	}
	return &small
}

// printSummary prints the result of a campaign in at most 25 lines, the last of which is the command that replays it.
func (s *simulation) printSummary(sum campaign.Summary, answer invariant.Answer, reports []failedRun, replay string) {
	words := map[invariant.Answer]string{
		invariant.Holds: "PASSED", invariant.Violated: "VIOLATED", invariant.Inconclusive: "INCONCLUSIVE",
	}
	word := words[answer]
	if slices.ContainsFunc(sum.Failed, campaign.Result.Hangs) {
		word = "HUNG"
	}
	what := "random bad day"
	if s.name != "" {
		what = "run"
	}
	if sum.Runs != 1 {
		what += "s"
	}
	if s.name != "" {
		what += " of " + messages.Line(s.name, 40)
	}
	mean := time.Duration(0)
	if sum.Runs > 0 {
		// Workers run in parallel, so that the time of one run is longer than the quotient of total time and runs.
		mean = sum.Took * time.Duration(s.pool.Size()) / time.Duration(sum.Runs)
	}
	seeds := fmt.Sprintf("seeds %d to %d", s.flags.seed, s.flags.seed+uint64(s.flags.seeds)-1)
	if s.flags.seeds == 1 {
		seeds = fmt.Sprintf("seed %d", s.flags.seed)
	}
	fmt.Fprintf(s.options.Out, "%s  %d %s, %s\n", word, sum.Runs, what, seeds)
	processes := "1 process"
	if n := s.pool.Size(); n != 1 {
		processes = fmt.Sprintf("%d processes", n)
	}
	fmt.Fprintf(s.options.Out, "%d events in %s of virtual time; %s, %s a run in %s\n", sum.Events,
		sum.Virtual.Round(time.Minute), sum.Took.Round(100*time.Millisecond), mean.Round(time.Millisecond), processes)
	// Where something is violated, the rest says nothing of it.
	listed := []invariant.Answer{invariant.Holds, invariant.Inconclusive}
	if answer == invariant.Violated {
		listed = []invariant.Answer{invariant.Violated}
	}
	for _, a := range listed {
		var ids []string
		for _, t := range sum.Checks {
			if t.Answer() == a {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(s.options.Out, "%-13s %s\n", string(a)+":", messages.Line(strings.Join(ids, ", "), 220))
		}
	}
	if answer == invariant.Inconclusive {
		fmt.Fprintln(s.options.Out, "Nothing is violated. Inconclusive is what did not come up in any of these runs; more seeds (-n) try more.")
	}
	if len(sum.Errors) > 0 {
		fmt.Fprintf(s.options.Out, "not run:      %d seeds, first %d: %s\n", len(sum.Errors), sum.Errors[0].Seed, messages.Line(sum.Errors[0].Error, 160))
	}
	for i, r := range sum.Failed {
		if i == maxFailedShown {
			fmt.Fprintf(s.options.Out, "  and %d more\n", len(sum.Failed)-maxFailedShown)
			break
		}
		v, _ := r.Violated()
		width := 160
		if at := slices.IndexFunc(reports, func(one failedRun) bool { return one.Seed == r.Seed }); at >= 0 && reports[at].Verdict.ID != "" {
			v, width = reports[at].Verdict, 400 // the words and times must be those of the report
		}
		fmt.Fprintln(s.options.Out, "  "+failureText(r.Seed, v, width))
	}
	for _, r := range reports {
		remark := ""
		if r.NotShown {
			remark = fmt.Sprintf(" (the seed was run %d more times, and %s held)", maxReruns, r.ID)
		}
		if r.Smaller != "" {
			fmt.Fprintf(s.options.Out, "  seed %d, made smaller (the words above are about this day): %s\n", r.Seed, r.Smaller)
		}
		fmt.Fprintf(s.options.Out, "report: %s%s\n", messages.Line(filepath.Join(r.Folder, r.File), 0), remark)
	}
	fmt.Fprintln(s.options.Out, map[bool]string{true: "replay:", false: "again:"}[answer == invariant.Violated])
	fmt.Fprintln(s.options.Out, replay)
}
