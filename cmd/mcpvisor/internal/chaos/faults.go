package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// newChaosFaults returns the command "chaos faults", which only prints the catalogue of transports/fault.
func newChaosFaults(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "faults [NAME]",
		Short: "List everything that can break, or explain one fault with its parameters",
		Long: `Lists every fault with the row of the field reports that it comes from, the tiers of scenarios in which it can be played,
the places at which a rule can do it, and what it does. With a name it tells the fault's parameters with their defaults, and which
servers it can befall. A scenario names faults so:

  faults:
    - fault: throttle
      with: { after: 30s }
      on: api
      at: 10s
      for: 1m

A rule of mcpvisor chaos proxy, and of a program that embeds the library, names the same ones: throttle after=30s on=tools/call
For a single message there are drop, latency, cut, close and duplicate-response: drop on=tools/call nth=3 times=1 loses the third
answer. In a Go test they are words: fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1)).`,
		Example: `  mcpvisor chaos faults
  mcpvisor chaos faults throttle`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, k := range faults.Kinds() {
				names = append(names, cobra.CompletionWithDesc(k.Name, k.Does))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			// The argument check is here and not in Args, so that the error can count the names.
			case len(args) > 1:
				return exit.UsageError(cmd, "one fault at a time is explained, and %d are named", len(args))
			case len(args) == 1:
				return explainFault(o, args[0], asJSON)
			case asJSON:
				var list []fault
				for _, k := range faults.Kinds() {
					list = append(list, faultOf(k))
				}
				return terminal.PrintJSON(o.Out, list)
			}
			t := terminal.NewTable(o.Out, "fault", "from", "tiers", "rules", "does")
			for _, k := range faults.Kinds() {
				t.AppendRow([]any{k.Name, k.Reports[0], strings.Join(tiersOf(k), " "), strings.Join(placesOf(k), " "), k.DoesAt(faults.Sim)})
			}
			terminal.PrintTable(o.Out, t)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	return cmd
}

// fault is one fault as chaos faults --json prints it.
type fault struct {
	Name string `json:"name"`
	// From holds the ids of the field reports that the fault comes from, the most important one first.
	From []string `json:"from"`
	Does string   `json:"does"`
	// Kinds, Eras and Tiers say which servers the fault can befall, and where a scenario can play it: sim, real or both.
	Kinds []messages.TransportKind `json:"kinds"`
	Eras  []messages.Era           `json:"eras"`
	Tiers []string                 `json:"tiers"`
	// Instant says that the fault happens once and ignores the duration "for".
	Instant bool        `json:"instant,omitempty"`
	With    []parameter `json:"with,omitempty"`
	// Rules are the places at which a rule can do it: program, stdio, http. InRule says what it does there, if that is something
	// else, and RuleWith are its parameters there.
	Rules    []string    `json:"rules,omitempty"`
	InRule   string      `json:"inRule,omitempty"`
	RuleWith []parameter `json:"ruleWith,omitempty"`
	// Score are the cases of mcpvisor chaos score whose servers have the fault, by their numbers.
	Score []int `json:"score,omitempty"`
}

// parameter is one key of the fault's "with", with its default as text.
type parameter struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Words   []string `json:"words,omitempty"`
	Default string   `json:"default"`
	// Words are the values to choose from; empty for any value of the type.
	Means string `json:"means"`
}

// faultOf converts a fault of the catalogue to its JSON form.
func faultOf(k faults.Kind) fault {
	f := fault{
		Name: k.Name, From: k.Reports, Does: k.Does, Kinds: terminal.OrEmpty(k.Servers), Eras: terminal.OrEmpty(k.Eras),
		Tiers: terminal.OrEmpty(tiersOf(k)), Instant: k.Instant.Has(faults.Sim), Rules: placesOf(k), InRule: k.InRule,
		Score: casesOf(k),
	}
	if len(f.Tiers) > 0 {
		f.With = parametersOf(k, faults.Sim)
	}
	if len(f.Rules) > 0 {
		f.RuleWith = parametersOf(k, 0)
	}
	return f
}

// parametersOf converts the parameters that a fault has at a location.
func parametersOf(k faults.Kind, at faults.Location) (all []parameter) {
	for _, p := range k.ParamsAt(at) {
		all = append(all, parameter{p.Name, p.Type, p.Words, p.Default, p.Does})
	}
	return all
}

// tiersOf returns the tiers of scenarios that have a fault.
func tiersOf(k faults.Kind) (tiers []string) {
	for _, t := range scenario.TiersOf(k) {
		tiers = append(tiers, string(t))
	}
	return tiers
}

// casesOf returns the numbers of the cases of score whose servers have a fault.
func casesOf(k faults.Kind) (cases []int) {
	for _, c := range score.Cases() {
		if slices.Contains(c.Plays, k.Name) {
			cases = append(cases, c.Number)
		}
	}
	return cases
}

// placesOf returns the places at which a rule can do a fault.
func placesOf(k faults.Kind) (places []string) {
	for _, p := range []struct {
		at   faults.Location
		name string
	}{{faults.Program, "program"}, {faults.Stdio, "stdio"}, {faults.HTTP, "http"}} {
		if k.Where.Has(p.at) {
			places = append(places, p.name)
		}
	}
	return places
}

// explainFault prints one fault with its parameters, and an error with the nearest name if there is no such fault.
func explainFault(o *cli.Options, name string, asJSON bool) error {
	k, ok := faults.Lookup(name)
	if !ok {
		what := fmt.Sprintf("no fault is called %q", messages.Line(name, 60))
		if near := faults.Nearest(name); near != "" {
			return exit.With(exit.Usage, fmt.Sprintf("%s; did you mean %q?", what, near))
		}
		return exit.With(exit.Usage, what+"; mcpvisor chaos faults lists them")
	}
	if asJSON {
		return terminal.PrintJSON(o.Out, faultOf(k))
	}
	fmt.Fprintf(o.Out, "%s: %s\n\n", k.Name, k.Does)
	fmt.Fprintf(o.Out, "  from     %s\n", joinWords(k.Reports))
	if cases := casesOf(k); len(cases) > 0 {
		fmt.Fprintf(o.Out, "  score    %s\n", strings.Trim(strings.ReplaceAll(fmt.Sprint(cases), " ", ", "), "[]"))
	}
	tiers, places := tiersOf(k), placesOf(k)
	if len(tiers) > 0 {
		fmt.Fprintf(o.Out, "  servers  %s; %s\n", joinWords(k.Servers), joinWords(k.Eras))
		fmt.Fprintf(o.Out, "  tiers    %s\n", joinWords(tiers))
		switch {
		case k.Instant.Has(faults.Sim):
			fmt.Fprintln(o.Out, "  lasts    an instant: it ignores for:")
		// Such a fault befalls every process at once, and a scenario cannot aim it at one server.
		case k.WholeMachine:
			fmt.Fprintln(o.Out, "  lasts    for: so long; it is about the whole machine and takes no on:")
		default:
			fmt.Fprintln(o.Out, "  lasts    for: so long, or to the end")
		}
		printParameters(o, k.ParamsAt(faults.Sim))
	}
	if len(places) > 0 {
		if len(tiers) > 0 {
			fmt.Fprintln(o.Out)
		}
		fmt.Fprintf(o.Out, "  rules    %s\n", joinWords(places))
		if k.InRule != "" {
			fmt.Fprintf(o.Out, "           %s\n", k.InRule)
		}
		printParameters(o, k.ParamsAt(0))
	}
	return nil
}

// printParameters prints parameters as a table, or nothing if there are none.
func printParameters(o *cli.Options, params []faults.Param) {
	if len(params) == 0 {
		return
	}
	fmt.Fprintln(o.Out)
	t := terminal.NewTable(o.Out, "with", "is", "default", "means")
	for _, p := range params {
		typeText := p.Type
		// A word is shown by its choices; the empty word means "not set" and is left out.
		if p.Words != nil {
			typeText = strings.Join(slices.DeleteFunc(slices.Clone(p.Words), func(w string) bool { return w == "" }), " | ")
		}
		t.AppendRow([]any{p.Name, typeText, p.Default, p.Does})
	}
	terminal.PrintTable(o.Out, t)
}

// joinWords joins words of any string type with commas.
func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
