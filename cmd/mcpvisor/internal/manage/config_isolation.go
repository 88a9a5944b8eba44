package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// newConfigIsolation returns the command "config isolation", which runs printIsolation. It starts no server.
func newConfigIsolation(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "isolation",
		Short: "Print what this machine can keep a server from",
		Long: `Prints for each key of a server's "isolation" whether this machine can enforce it, what it takes from a server, and if it
cannot, why. A server that asks for
more is not started, unless its isolation says "bestEffort": true. No server is started; one process is, which tries to be in a
network of its own and ends. Exit code 0, whatever the answers are.`,
		Example: `  mcpvisor config isolation`,
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return printIsolation(cmd.Context(), o, asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON object")
	return cmd
}

// printIsolation prints what this machine can enforce. Capabilities starts one short process to try a network namespace.
func printIsolation(ctx context.Context, o *cli.Options, asJSON bool) error {
	// This starts a short-lived process, which ctx bounds.
	can := stdio.Capabilities(ctx)
	offers := isolation.Offers(can)
	if asJSON {
		return terminal.PrintJSON(o.Out, struct {
			System   string            `json:"system"`
			Landlock int               `json:"landlock"`
			Keys     []isolation.Offer `json:"keys"`
			Parts    []isolation.Offer `json:"parts"`
		}{can.Kernel, can.Landlock, offers, isolation.Parts(can)})
	}
	text := can.Kernel
	if can.Landlock > 0 {
		text += fmt.Sprintf(", Landlock %d", can.Landlock)
	}
	fmt.Fprintln(o.Out, messages.Line(text, 200))
	printOffers(o, "key", "and takes", offers)
	fmt.Fprintln(o.Out, "The first of these comes with noNewPrivileges, all of them with write, read and network:")
	printOffers(o, "part", "", isolation.Parts(can))
	return nil
}

// printOffers prints a table of what the machine can enforce, with the reason where it cannot.
func printOffers(o *cli.Options, what, takes string, offers []isolation.Offer) {
	t := terminal.NewTable(o.Out, what, "", takes, "why not")
	for _, offer := range offers {
		word := "yes"
		if !offer.Given {
			word = "no"
		}
		t.AppendRow(table.Row{offer.Key, word, offer.Takes, messages.Line(offer.Reason, 300)})
	}
	terminal.PrintTable(o.Out, t)
}

// plannedIsolation says what a server is kept from if it runs, or would be kept from if this machine started it now.
func plannedIsolation(o *cli.Options, out serverEntry) string {
	if out.Up != nil && out.Up.Isolation != nil {
		return status.IsolationText(*out.Up)
	}
	want := out.Config.Isolation
	if !want.Asks() {
		return ""
	}
	steps, err := isolation.Plan(want, stdio.CapabilitiesFor(context.Background(), *want))
	// What this machine cannot enforce keeps the server from starting, and get says so before it is tried.
	var no *isolation.UnsupportedError
	if errors.As(err, &no) {
		return "isolated: not possible: " + messages.Line(no.Error(), 300)
	}
	return "isolated: " + messages.Line(steps.Enforced.String(), 600)
}
