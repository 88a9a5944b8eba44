package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	harness "github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/mcpgo"
	ours "github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/mcpvisor"
)

// knownAdapters names the clients whose adapters are part of this program.
var knownAdapters = []string{"mcp-go", "go-sdk", "mcpvisor"}

// chaosScoreFlags holds the flags of chaos score.
type chaosScoreFlags struct {
	// only is a regular expression for the names, numbers and faults of cases; empty plays all.
	only     string
	parallel int
	json     bool
	// cases prints the cases and plays none. markdown is the file for the table with the reasons; empty writes none.
	cases    bool
	markdown string
	// seed plays the cases in another order and together; 0 does not. out is the folder for every form of the result; empty writes none.
	seed uint64
	out  string
}

// newChaosScore returns the command "chaos score", which runs chaosScore. Its help is the specification of adapters.
func newChaosScore(o *cli.Options) *cobra.Command {
	var f chaosScoreFlags
	cmd := &cobra.Command{
		Use:   "score [CLIENT…] [-- ADAPTER COMMAND [-- ANOTHER ADAPTER COMMAND]…]",
		Short: "Score any MCP client on the same misbehaving servers",
		Long: `Plays the same bad days to MCP clients, over stdio and HTTP and in both eras, and counts what must be seen. A client is
driven through its adapter: a program that reads commands and writes answers as lines of JSON, in any language. The
adapters of mcp-go, go-sdk and mcpvisor are part of this program and are called by these names.

An adapter answers each command by its id, in any order, while others are under way; the end of its input means quit:

  {"id":1,"do":"connect","name":"a","command":"/bin/server","args":["x"],"timeoutMs":5000}    or "url" and "headers"
  {"id":1,"ok":true}                                          or {"id":1,"ok":false,"error":"why"} once it has failed
  {"id":2,"do":"list","name":"a","timeoutMs":5000}            {"id":2,"ok":true,"tools":["echo"]}
  {"id":3,"do":"call","name":"a","tool":"echo","args":{"text":"x"},"timeoutMs":2000}
  {"id":3,"ok":true,"result":{"content":[{"type":"text","text":"x"}]}}
  {"id":4,"do":"status"}                                      {"id":4,"ok":true,"status":{"a":"connected"}}
  {"id":5,"do":"about"}                                       {"id":5,"ok":true,"about":"some-client 1.2"}
  {"id":6,"do":"close","name":"a"}, {"id":7,"do":"quit"}      {"id":6,"ok":true}, {"id":7,"ok":true}

What the commands mean:

  connect  connect and wait until that has succeeded or failed, at most timeoutMs. To connect anew later, by itself or at the
           next command about the server, is allowed and is what is scored.
  list     the names of the tools that the client would offer now
  call     call a tool by the name that the server gave it, and give up after timeoutMs as the client gives up. "ok" is false if
           there is no result, also where it is only unknown; a result with isError is a result, and "ok" is true.
  status   a word for each server as the client sees it. Only "connected" counts; every other word means that it is not.
  close    disconnect from one server, and answer when that is done
  about    the client with its version, and the options that were set
  quit     disconnect from all, answer, and exit

An answer has the id of its command. "tookMs" may be added; what else is added is left alone. Standard error is for people.

Adapters to begin with are in test/chaos/score/adapters: starter (Go), typescript (version 1 and 2 of the official SDK), python.

The judge is what the servers saw, not what the client says, wherever that is possible. A case takes some seconds, all
of them a few minutes for each client. Whatever a case has started is ended with it.

Exit codes: 0 every point was got · 1 points were lost · 2 usage, or an adapter does not work (the others are scored)`,
		Example: `  mcpvisor chaos score -- node my-adapter.js
  mcpvisor chaos score mcpvisor -- npx tsx v1.ts -- npx tsx v2.ts
  mcpvisor chaos score mcp-go go-sdk mcpvisor --markdown test/chaos/score/README.md
  mcpvisor chaos score mcpvisor --only 'session|crash' --seed 7 --out score`,
		ValidArgs: knownAdapters,
		RunE:      func(cmd *cobra.Command, args []string) error { return chaosScore(o, cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.only, "only", "", "play only the cases whose name, number or fault matches this `regexp`")
	fl.IntVar(&f.parallel, "parallel", 2, "how many cases are played at once")
	fl.BoolVarP(&f.json, "json", "j", false, "print the results as JSON")
	fl.BoolVar(&f.cases, "cases", false, "print the cases and play none")
	fl.StringVar(&f.markdown, "markdown", "", "write the table with the reasons into this `file`")
	fl.Uint64Var(&f.seed, "seed", 0, "play the cases in an order, and up to three at once in one client, by this `number`")
	fl.StringVar(&f.out, "out", "", "write score.html, score.json, score.md and junit.xml into this `folder`")
	cmd.AddCommand(newChaosAdapter(o))
	return cmd
}

// newChaosAdapter returns the hidden command by which this program becomes one of its own adapters. The harness starts it as it
// starts an adapter of another project, so that all clients are scored by the same rules.
func newChaosAdapter(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "__adapter NAME", Hidden: true, Args: cli.OneServer,
		RunE: func(_ *cobra.Command, args []string) error {
			var client adapter.Client
			switch args[0] {
			case "mcp-go":
				client = mcpgo.New()
			case "go-sdk":
				client = gosdk.New()
			case "mcpvisor":
				// Only the manager's adapter starts servers under a guardian, as the command does.
				guard, err := guardian.Start()
				if err != nil {
					return exit.With(exit.Usage, "no guardian could be started: "+messages.Line(err.Error(), 200))
				}
				if client, err = ours.New(guard); err != nil {
					return exit.With(exit.Usage, messages.Line(err.Error(), 200))
				}
			default:
				return exit.With(exit.Usage, "there is no adapter "+messages.Line(args[0], 60))
			}
			return adapter.Serve(o.In, o.Out, client)
		},
	}
}

// chaosScore plays the cases to each client in turn and prints the scores. An adapter that does not work is reported and the
// others are scored all the same; the exit code is then that of a wrong usage.
func chaosScore(o *cli.Options, cmd *cobra.Command, args []string, f chaosScoreFlags) error {
	if f.cases {
		return printCases(o, f)
	}
	var only *regexp.Regexp
	if f.only != "" {
		var err error
		if only, err = regexp.Compile(f.only); err != nil {
			return exit.UsageError(cmd, "--only: %s", messages.Line(err.Error(), 200))
		}
		if _, err = score.Choose(only); err != nil {
			return exit.UsageError(cmd, "--only: %s; mcpvisor chaos score --cases prints them", messages.Line(err.Error(), 300))
		}
	}
	clients, err := scoreClients(cmd, args)
	if err != nil {
		return err
	}
	var results []score.Result
	failed := 0
	for _, c := range clients {
		// The clients are played one after another, because clients that run at the same time would slow each other.
		c.Only, c.Parallel, c.Seed = only, f.parallel, f.seed
		done := 0
		c.Progress = func(p score.CaseResult) {
			done++
			if terminal.UsesColours(o.Err) && !o.Quiet { // standard error is a terminal, where a line can be drawn over
				fmt.Fprintf(o.Err, "\r\x1b[K%s: %d of %d cases, last: %s %d/%d", c.Name, done, len(score.Cases()), p.Name, p.Got(), p.MaxPoints())
			}
		}
		r, err := score.Run(cmd.Context(), c)
		if terminal.UsesColours(o.Err) && !o.Quiet {
			fmt.Fprint(o.Err, "\r\x1b[K")
		}
		if stop := exit.InterruptedError(cmd.Context()); stop != nil {
			return stop
		}
		if err != nil && !errors.Is(err, score.ErrNoAdapter) {
			return exit.With(exit.Usage, messages.Line(err.Error(), 300))
		}
		if err != nil {
			failed++
			o.WarnFailure(exit.With(exit.Usage, messages.Line(r.Name+": "+err.Error(), 400)))
		}
		results = append(results, r)
	}
	score.NameApart(results)
	lost := false
	if failed < len(results) { // otherwise no client was scored, and a table of an earlier run in --markdown is worth more
		if lost, err = printScores(o, results, f, scoreCommand(args, f.seed)); err != nil {
			return err
		}
	}
	switch {
	// An adapter that did not work weighs more than lost points: its row in the table is missing.
	case failed > 0:
		return &exit.Error{Code: exit.Usage}
	case lost:
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// scoreClients returns the clients that the command line names: known adapters before the first "--", and after it commands of
// adapters, each ended by a further "--".
func scoreClients(cmd *cobra.Command, args []string) ([]score.Options, error) {
	known, own := args, []string(nil)
	// Words before the first "--" are names, words after it are commands of adapters.
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		known, own = args[:at], args[at:]
	}
	self, err := os.Executable()
	if err != nil {
		return nil, exit.With(exit.Usage, "this program does not know its own path: "+messages.Line(err.Error(), 200))
	}
	var all []score.Options
	for _, name := range known {
		if !slices.Contains(knownAdapters, name) {
			return nil, exit.UsageError(cmd, "there is no adapter %q; there are %s, and your own after --", messages.Line(name, 60),
				strings.Join(knownAdapters, ", "))
		}
		all = append(all, score.Options{Name: name, Adapter: []string{self, "chaos", "score", "__adapter", name}})
	}
	for len(own) > 0 {
		end := slices.Index(own, "--")
		if end < 0 {
			end = len(own)
		}
		if end > 0 {
			all = append(all, score.Options{Adapter: own[:end]})
		}
		own = own[min(end+1, len(own)):]
	}
	if len(all) == 0 {
		return nil, exit.UsageError(cmd, "which client? One of %s, or the command of your adapter after --", strings.Join(knownAdapters, ", "))
	}
	return all, nil
}

// scoreCommand returns the command line for the head of the table, as another person would type it. cobra has removed the first
// "--", which is put back before the first word that is no known adapter.
func scoreCommand(args []string, seed uint64) string {
	words := []string{"mcpvisor", "chaos", "score"}
	if seed != 0 {
		words = append(words, fmt.Sprintf("--seed=%d", seed))
	}
	for i, a := range args {
		if i == 0 && !slices.Contains(knownAdapters, a) || i > 0 && !slices.Contains(knownAdapters, a) &&
			slices.Contains(knownAdapters, args[i-1]) {
			words = append(words, "--")
		}
		words = append(words, terminal.ShellWord(a))
	}
	return strings.Join(words, " ")
}

// printScores writes the table with the reasons, prints the scores, and reports whether any client lost a point.
func printScores(o *cli.Options, results []score.Result, f chaosScoreFlags, command string) (lost bool, err error) {
	if f.markdown != "" {
		if err := os.WriteFile(f.markdown, []byte(score.Markdown(results, command)), 0o644); err != nil {
			return false, exit.With(exit.Usage, "the table cannot be written: "+messages.Line(err.Error(), 200))
		}
	}
	for _, r := range results {
		lost = lost || r.Got() < r.MaxPoints()
	}
	if f.out != "" {
		if err := writeScores(f.out, results, command); err != nil {
			return false, exit.With(exit.Usage, "the scores cannot be written: "+messages.Line(err.Error(), 200))
		}
	}
	if f.json {
		return lost, terminal.PrintJSON(o.Out, results)
	}
	printScoreTable(o, results)
	return lost, nil
}

// writeScores writes every form of the results into a folder, which it makes: a page for a browser, JSON, the table with the reasons,
// and a file for systems that collect tests.
func writeScores(dir string, results []score.Result, command string) error {
	page, err := score.Page(results, command)
	if err != nil {
		return err
	}
	var cases []report.JUnitCase
	for _, r := range results {
		cases = append(cases, harness.ScoreCases(r)...)
	}
	junit, err := report.JUnit("mcpvisor chaos score", cases, [2]string{"command", command})
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	if err := terminal.PrintJSON(&plain, results); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"score.html": page, "score.json": plain.Bytes(), "score.md": []byte(score.Markdown(results, command)), "junit.xml": junit,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// printScoreTable prints a line for each case with the points and the reasons for lost ones, and the sums. A client that was
// not played has dashes and its reason in the last line.
func printScoreTable(o *cli.Options, results []score.Result) {
	header := []any{"#", "case"}
	for _, r := range results {
		header = append(header, messages.Line(r.Name, 20))
	}
	t := terminal.NewTable(o.Out, append(header, "lost")...)
	room := 0
	if columns := terminal.ColumnsOf(o.Out); columns > 0 {
		room = max(columns-50-12*len(results), 40)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3 + len(results), WidthMax: room, WidthMaxEnforcer: text.WrapSoft}})
	// All clients that were played have the same cases in the same order. One was played: chaosScore checked that.
	played := results[slices.IndexFunc(results, func(r score.Result) bool { return r.Failed == "" })]
	for i, c := range played.Cases {
		row := table.Row{c.Number, c.Name}
		var lost []string
		for _, r := range results {
			if r.Failed != "" {
				row = append(row, "–")
				continue
			}
			p := r.Cases[i]
			row = append(row, fmt.Sprintf("%d/%d", p.Got(), p.MaxPoints()))
			for _, l := range p.Lost() {
				lost = append(lost, messages.Line(r.Name+": "+l, 0))
			}
		}
		t.AppendRow(append(row, strings.Join(lost, "\n")))
	}
	sum := table.Row{"", "all"}
	var failed []string
	for _, r := range results {
		sum = append(sum, r.Sum())
		if r.Failed != "" {
			failed = append(failed, messages.Line(r.Name+" was not played: "+r.Failed, 0))
		}
	}
	t.AppendRow(append(sum, strings.Join(failed, "\n")))
	terminal.PrintTable(o.Out, t)
}

// printCases prints the cases and plays none. --only does not filter them.
func printCases(o *cli.Options, f chaosScoreFlags) error {
	if f.json {
		return terminal.PrintJSON(o.Out, score.Cases())
	}
	t := terminal.NewTable(o.Out, "#", "case", "over", "story")
	for _, c := range score.Cases() {
		t.AppendRow(table.Row{c.Number, c.Name, c.Over, c.Story})
	}
	terminal.PrintTable(o.Out, t)
	return nil
}
