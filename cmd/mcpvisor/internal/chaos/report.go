package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// chaosReportFlags holds the flags of chaos report.
type chaosReportFlags struct {
	out     string
	open    bool
	verdict bool
}

// newChaosReport returns the command "chaos report", which runs chaosReport on one history.
func newChaosReport(o *cli.Options) *cobra.Command {
	var f chaosReportFlags
	cmd := &cobra.Command{
		Use:   "report HISTORY.jsonl|FOLDER",
		Short: "Judge a recorded run again, and write its report",
		Long: `Reads the history of a run, asks today's invariants about it, and writes report.html, report.json and junit.xml. A history
is all that is needed: it can be sent to somebody, or be judged again after a check has become better. FOLDER is one that
a run has written; its report is made anew, in its place.

Without --out the report of a file NAME.jsonl is written into the folder NAME-report beside it. On a terminal the page is
opened in the browser.

Exit codes: 0 every check holds · 1 one is violated · 2 the history cannot be read, or the report not be written · 3
inconclusive`,
		Example: `  mcpvisor chaos report .chaos/flapping
  mcpvisor chaos report history.jsonl --out what-happened
  mcpvisor chaos report history.jsonl --verdict`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.UsageError(cmd, "one history: a file, or the folder of a run")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return chaosReport(o, args[0], f) },
	}
	o.AddJSONFlag(cmd, "print a JSON object")
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "write the report into this `folder`")
	fl.BoolVar(&f.open, "open", true, "open the page in the browser, if this is a terminal")
	fl.BoolVar(&f.verdict, "verdict", false, "write nothing, only say what the checks find")
	return cmd
}

// chaosReport judges a recorded history with today's invariants and, unless --verdict is given, writes the report. The exit
// code follows the verdicts, not those of the old report.
func chaosReport(o *cli.Options, from string, f chaosReportFlags) error {
	recorded, err := openRecorded(from)
	if err != nil {
		return err
	}
	r := recorded.run
	// Only the history counts: the verdicts in an old report were made by older checks.
	r.Verdicts = invariant.Judge(r.History)
	if !f.verdict {
		r.Dir = recorded.dir
		if f.out != "" {
			r.Dir = f.out
		}
		r.Command = recorded.replayCommand(r.Dir)
		if err := report.Write(r.Dir, r); err != nil {
			return exit.With(exit.Usage, messages.Line(err.Error(), 400))
		}
		if f.open && terminal.IsTerminal(o.Out) && !o.JSON {
			showReport(r.Dir)
		}
	} else {
		r.Command = recorded.replayCommand("")
	}
	if o.JSON {
		if err := terminal.PrintJSON(o.Out, judgement{report.Overall(r.Verdicts), r.Dir, r.Command, terminal.OrEmpty(r.Verdicts)}); err != nil {
			return err
		}
	} else {
		report.Terminal(o.Out, r, terminal.UsesColours(o.Out))
	}
	switch report.Overall(r.Verdicts) {
	case invariant.Violated:
		return &exit.Error{Code: exit.Failed}
	case invariant.Inconclusive:
		return &exit.Error{Code: exitInconclusive}
	case invariant.Holds:
	}
	return nil
}

// judgement is the JSON object that chaos report prints.
type judgement struct {
	// Report is the folder that the report was written into; empty with --verdict.
	Answer invariant.Answer `json:"answer"`
	// Report is the folder that the report was written into; empty with --verdict.
	Report   string              `json:"report,omitempty"`
	Replay   string              `json:"replay,omitempty"`
	Verdicts []invariant.Verdict `json:"verdicts"`
}

// recordedRun is a history that was found, with what lies beside it.
type recordedRun struct {
	run report.Run
	// file is the path of the history, dir the folder for its report if --out is not given.
	file, dir string
	// savedCommand is the replay command in the report beside the history; empty if there is no report.
	savedCommand string
}

// openRecorded reads a history from its file or from the folder of a run. Every error is a usage error. A file that lies in the
// folder of a report has its report made anew there; any other file gets a folder beside it.
func openRecorded(from string) (*recordedRun, error) {
	r := &recordedRun{file: from}
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, exit.With(exit.Usage, fmt.Sprintf("there is no file and no folder %q", messages.Line(from, 200)))
	case err != nil:
		return nil, exit.With(exit.Usage, "the history cannot be read: "+messages.Line(err.Error(), 200))
	case info.IsDir():
		r.file, r.dir = report.HistoryFile(from), from
	case from == report.HistoryFile(filepath.Dir(from)) && isReport(filepath.Dir(from)):
		r.dir = filepath.Dir(from)
	default:
		r.dir = strings.TrimSuffix(from, filepath.Ext(from)) + "-report"
	}
	file, err := os.Open(r.file)
	if err != nil {
		text := "the history cannot be read: " + messages.Line(err.Error(), 200)
		if info.IsDir() && errors.Is(err, os.ErrNotExist) {
			text = fmt.Sprintf("the folder %q holds no history.jsonl; name the folder of a run, or the file",
				messages.Line(from, 200))
		}
		return nil, exit.With(exit.Usage, text)
	}
	defer file.Close()
	h, err := history.Read(file)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Sprintf("%s is no history: %s", messages.Line(r.file, 200),
			messages.Line(err.Error(), 300)))
	}
	r.run.History = h
	r.readOldReport(h)
	return r, nil
}

// readOldReport takes from an older report of the same run what a history does not hold: when the run was, how long it took,
// and how to replay it. A report of another seed or tier is not of this run and is ignored.
func (r *recordedRun) readOldReport(h *history.History) {
	dir := filepath.Dir(r.file)
	raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
	var d report.Document
	if err != nil || json.Unmarshal(raw, &d) != nil || d.Version == 0 || d.Seed != h.Plan.Seed || d.Tier != h.Plan.Tier {
		return
	}
	// The seed and tier agree, so that the report is of this run.
	r.savedCommand = d.Replay
	r.run.Took = d.Took
	if d.Started != nil {
		r.run.Started = *d.Started
	}
	if text, err := os.ReadFile(filepath.Join(dir, "found.yaml")); err == nil {
		if s, err := scenario.Parse("found.yaml", text); err == nil {
			r.run.Found = &report.Found{Scenario: s, Command: d.Found}
		}
	}
}

// isReport reports whether the folder holds a report.
func isReport(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "report.json"))
	return err == nil
}

// replayCommand returns the command that replays the run: that of the old report, or one made from the history's plan. A
// scenario of the library is named; any other is the file scenario.yaml that the report writes into dir.
func (r *recordedRun) replayCommand(dir string) string {
	if r.savedCommand != "" {
		return r.savedCommand
	}
	p := r.run.History.Plan
	verb := "sim"
	if p.Tier == scenario.Real {
		verb = "run"
	}
	name := "scenario.yaml"
	// A person may have changed a scenario and kept its name, therefore the texts are compared.
	if known, ok := scenario.Named(p.Scenario.Name); ok && string(known.YAML()) == string(p.Scenario.YAML()) {
		name = p.Scenario.Name
	} else if dir != "" {
		name = filepath.Join(dir, name)
	}
	return fmt.Sprintf("mcpvisor chaos %s %s --seed %d", verb, terminal.ShellWord(name), p.Seed)
}

// showReport opens the page in the browser. Its failure is ignored, because the path of the report is printed anyway.
func showReport(dir string) {
	path, err := filepath.Abs(filepath.Join(dir, "report.html"))
	if err != nil {
		return
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path // Windows: C:/dir becomes /C:/dir in a URL
	}
	_ = ask.OpenBrowser((&url.URL{Scheme: "file", Path: path}).String())
}
