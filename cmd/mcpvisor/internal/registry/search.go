package registry

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// searchFlags holds the flags of search.
type searchFlags struct {
	registry, cursor string
	limit            int
	json             bool
}

// NewSearch returns the command "search", which runs searchRegistry. It sends the word, and $MCPVISOR_REGISTRY_TOKEN if that is
// set, but nothing of the configuration.
func NewSearch(o *cli.Options) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search WORD",
		Short: "Find servers in an MCP registry by a part of their names",
		Long: `Asks an MCP registry (API v0.1) for the servers that have WORD in their names, and shows the latest version of
each. The official registry wants at least three characters. Names and descriptions are their publishers' own words:
nobody has looked at them.

$MCPVISOR_REGISTRY, or "registry" beside mcpServers in a file of your own, names another registry than the official one;
$MCPVISOR_REGISTRY_TOKEN is sent to it, and to nobody else.`,
		Example: `  mcpvisor search github
  mcpvisor search weather --limit 100 --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || strings.TrimSpace(args[0]) == "":
				return exit.UsageError(cmd, "which word? Write %s WORD", cmd.CommandPath())
			case len(args) > 1:
				return exit.UsageError(cmd, "search is about one word, and %q is a second one", messages.Line(args[1], 60))
			case f.limit < 1 || f.limit > 100:
				return exit.UsageError(cmd, "--limit: %d is not between 1 and 100", f.limit)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return searchRegistry(o, cmd, strings.TrimSpace(args[0]), f)
		},
	}
	addRegistryFlag(cmd.Flags(), &f.registry)
	cmd.Flags().IntVar(&f.limit, "limit", 30, "show at most so many, 1 to 100")
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "show the page after this `cursor`")
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON object")
	return cmd
}

// searchHit is one server as search --json prints it.
type searchHit struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	Version     string         `json:"version"`
	Status      install.Status `json:"status"`
	Message     string         `json:"statusMessage,omitempty"`
	// Local is the name that add would give it here.
	Local string `json:"localName"`
	// Ways lists the kinds of its packages and remotes, as --package takes them.
	Ways      []string   `json:"ways"`
	Published *time.Time `json:"publishedAt,omitempty"`
}

// searchResult is the JSON object that search --json prints.
type searchResult struct {
	Registry string      `json:"registry"`
	Servers  []searchHit `json:"servers"`
	// Next is the value of --cursor for the next page; empty on the last one.
	Next string `json:"nextCursor,omitempty"`
	// Skipped counts the entries of the registry that could not be read.
	Skipped int `json:"skipped,omitempty"`
}

// searchRegistry asks the registry for one page and prints it.
func searchRegistry(o *cli.Options, cmd *cobra.Command, word string, f searchFlags) error {
	r, err := openRegistry(o, f.registry)
	if err != nil {
		return err
	}
	p, err := r.Search(cmd.Context(), install.Query{Word: word, Cursor: f.cursor, Limit: f.limit})
	if err != nil {
		return err
	}
	all := searchResult{Registry: r.Host(), Servers: []searchHit{}, Next: p.Next, Skipped: p.Skipped}
	for _, e := range p.Entries {
		all.Servers = append(all.Servers, searchHitOf(e))
	}
	if f.json {
		return terminal.PrintJSON(o.Out, all)
	}
	printHits(o, all, word, f)
	return nil
}

// searchHitOf converts an entry of the registry to its JSON form.
func searchHitOf(e install.Entry) searchHit {
	h := searchHit{Name: e.Name, Title: e.Title, Description: e.Description, Version: e.Version, Status: e.Status,
		Message: e.StatusMessage, Local: plan.LocalName(e.Name), Ways: []string{}}
	if !e.Published.IsZero() {
		h.Published = &e.Published
	}
	seen := map[string]bool{}
	// A server may have several packages of one kind; each kind is listed once.
	for _, w := range e.Ways() {
		if !seen[w.Kind] {
			seen[w.Kind], h.Ways = true, append(h.Ways, w.Kind)
		}
	}
	return h
}

// printHits prints the page as a table, and the command for the next page. All texts are the publishers' words and are bounded.
func printHits(o *cli.Options, all searchResult, word string, f searchFlags) {
	if len(all.Servers) == 0 {
		o.PrintRemark("no server at %s has %q in its name", all.Registry, messages.Line(word, 60))
	} else {
		t := terminal.NewTable(o.Out, "name", "version", "as", "description")
		room := 0
		if columns := terminal.ColumnsOf(o.Out); columns > 0 {
			room = max(columns-70, 30)
		}
		t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, WidthMax: 60}, {Number: 2, WidthMax: 20}, {Number: 4, WidthMax: room}})
		for _, h := range all.Servers {
			text := messages.Line(h.Description, 200)
			// A deprecated or deleted entry is marked in front of its description.
			if h.Status != install.Active {
				text = strings.TrimSpace(messages.Line(string(h.Status), 20) + ": " + messages.Line(h.Message, 120) + " · " + text)
			}
			t.AppendRow(table.Row{messages.Line(h.Name, 200), messages.Line(h.Version, 40),
				messages.Line(strings.Join(h.Ways, " "), 60), text})
		}
		terminal.PrintTable(o.Out, t)
	}
	if all.Skipped > 0 {
		o.PrintRemark("%s of %s cannot be read, and left out", terminal.CountOf(all.Skipped, "entry"), all.Registry)
	}
	if all.Next != "" {
		nextPage := "mcpvisor search " + terminal.ShellWord(word)
		if f.limit != 30 {
			nextPage += fmt.Sprintf(" --limit %d", f.limit)
		}
		if f.registry != "" {
			nextPage += " --registry " + terminal.ShellWord(f.registry)
		}
		o.PrintRemark("more: %s --cursor %s", nextPage, terminal.ShellWord(all.Next))
	}
}
