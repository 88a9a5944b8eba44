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
	"github.com/mcpvisor/mcpvisor/test/chaos/faults"
)

// newChaosFaults returns the command "chaos faults", which only prints the catalogue of test/chaos/faults.
func newChaosFaults(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "faults [NAME]",
		Short: "List everything that can break, or explain one fault with its parameters",
		Long: `Lists every fault with the row of the field reports that it comes from and what it does. With a name it tells the
fault's parameters with their defaults, and which servers it can befall. A scenario names faults so:

  faults:
    - fault: throttle
      with: { after: 30s }
      on: api
      at: 10s
      for: 1m`,
		Example: `  mcpvisor chaos faults
  mcpvisor chaos faults throttle`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, k := range faults.All() {
				names = append(names, cobra.CompletionWithDesc(k.Name, k.Description))
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
				for _, k := range faults.All() {
					list = append(list, faultOf(k))
				}
				return terminal.PrintJSON(o.Out, list)
			}
			t := terminal.NewTable(o.Out, "fault", "from", "tiers", "does")
			for _, k := range faults.All() {
				t.AppendRow([]any{k.Name, k.ID, strings.Join(k.Tiers, " "), k.Description})
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
	// Kinds, Eras and Tiers say which servers the fault can befall, and where it can be played: sim, real or both.
	Kinds []messages.TransportKind `json:"kinds"`
	Eras  []messages.Era           `json:"eras"`
	Tiers []string                 `json:"tiers"`
	// Instant says that the fault happens once and ignores the duration "for".
	Instant bool        `json:"instant,omitempty"`
	With    []parameter `json:"with,omitempty"`
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
		Name: k.Name, From: append([]string{k.ID}, k.Also...), Does: k.Description, Kinds: k.Kinds, Eras: k.Eras, Tiers: k.Tiers,
		Instant: k.Instant,
	}
	for _, p := range k.Params {
		f.With = append(f.With, parameter{p.Name, string(p.Type), p.Choices, p.Default, p.Description})
	}
	return f
}

// explainFault prints one fault with its parameters, and an error with the nearest name if there is no such fault.
func explainFault(o *cli.Options, name string, asJSON bool) error {
	k, ok := faults.Find(name)
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
	fmt.Fprintf(o.Out, "%s: %s\n\n", k.Name, k.Description)
	fmt.Fprintf(o.Out, "  from     %s\n", strings.Join(append([]string{k.ID}, k.Also...), ", "))
	fmt.Fprintf(o.Out, "  servers  %s; %s\n", joinWords(k.Kinds), joinWords(k.Eras))
	fmt.Fprintf(o.Out, "  tiers    %s\n", strings.Join(k.Tiers, ", "))
	switch {
	case k.Instant:
		fmt.Fprintln(o.Out, "  lasts    an instant: it ignores for:")
	// Such a fault befalls every process at once, and a scenario cannot aim it at one server.
	case k.WholeMachine && slices.Contains(k.Kinds, messages.Stdio):
		fmt.Fprintln(o.Out, "  lasts    for: so long; it is about the whole machine and takes no on:")
	default:
		fmt.Fprintln(o.Out, "  lasts    for: so long, or to the end")
	}
	if len(k.Params) == 0 {
		return nil
	}
	fmt.Fprintln(o.Out)
	t := terminal.NewTable(o.Out, "with", "is", "default", "means")
	for _, p := range k.Params {
		typeText := string(p.Type)
		// A choice is shown by its words; the empty word means "not set" and is left out.
		if p.Type == faults.Choice {
			typeText = strings.Join(slices.DeleteFunc(slices.Clone(p.Choices), func(w string) bool { return w == "" }), " | ")
		}
		t.AppendRow([]any{p.Name, typeText, p.Default, p.Description})
	}
	terminal.PrintTable(o.Out, t)
	return nil
}

// joinWords joins words of any string type with commas.
func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
