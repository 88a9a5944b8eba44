package approve

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/call"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// NewPermissions returns the command "permissions" with its subcommands. Its RunE checks the arguments itself, because a word
// there is most likely a subcommand that was misspelt.
func NewPermissions(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "Show and change the rules about which tools may be called",
		Long: `Shows the rules that are in force, the one that wins first, each with the file and line where it stands: those of the
running "mcpvisor up", if there is one, else those of the files.

A rule names a server (mcp__github), some tools (mcp__github__delete_*, github:delete_*) or a tool with certain
arguments (mcp__fs__write(path:docs/*)), and says deny, ask or allow. Deny beats ask beats allow, however specific a
rule is; rules of the organisation's managed file win over all others; a file of a project can restrict and not allow.
What no rule is about is allowed, unless "default" says ask or deny; of servers with "trusted": true, tools that are
marked destructive are asked about, and those that only read are allowed.

  "permissions": {"deny": ["mcp__github__delete_*"], "ask": ["mcp__fs__write"], "allow": [], "default": "allow"}

A denied call is not sent. What is asked about is asked at the terminal; call --allow RULE answers for scripts.`,
		Example: `  mcpvisor permissions
  mcpvisor permissions test fs:write path=/etc/passwd
  mcpvisor permissions deny 'mcp__github__delete_*'
  mcpvisor permissions remove 'mcp__github__delete_*'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return showPermissions(cmd.Context(), o, asJSON)
		},
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON object")
	cmd.AddCommand(newPermissionsTest(o))
	for _, verdict := range []access.Verdict{access.Allow, access.Ask, access.Deny} {
		// allow, ask and deny are three commands with one implementation.
		cmd.AddCommand(newPermissionsAdd(o, verdict))
	}
	cmd.AddCommand(newPermissionsRemove(o))
	return cmd
}

// rulesReport is the JSON object that permissions --json prints.
type rulesReport struct {
	// Rules are in the order in which they win, the organisation's first.
	Rules   []ruleReport   `json:"rules"`
	Default access.Verdict `json:"default"`
	// Source says where Default stands; nil if no file says so.
	Source  *access.Source  `json:"defaultSource,omitempty"`
	Managed *managedDefault `json:"managedDefault,omitempty"`
}

// managedDefault is the least strict verdict that the organisation allows where no rule of its own decides.
type managedDefault struct {
	Default access.Verdict `json:"default"`
	Source  access.Source  `json:"source"`
}

// ruleReport is one rule with the place where it stands.
type ruleReport struct {
	Verdict access.Verdict `json:"verdict"`
	Rule    string         `json:"rule"`
	Source  access.Source  `json:"source"`
}

// rulesInForce returns the rules of the running mcpvisor up, or those of the files if none runs. If the two differ it says so,
// because a person who has just changed a file expects the new rules.
func rulesInForce(ctx context.Context, p *project.Project) (access.Rules, error) {
	files := p.Setup.Permissions
	if p.Up == nil {
		return files, nil
	}
	current, err := p.Permissions(ctx)
	if err != nil {
		return files, err
	}
	// Hints of servers are not a rule of the files, and must not count as a difference.
	files.Hints = files.Hints || current.Hints
	if !reflect.DeepEqual(current, access.Compile(files).Rules()) {
		p.Options.PrintRemark("the files have other rules than those that are in force in %s; mcpvisor reload says why, and --no-control shows those of the files",
			p.KeeperName())
	}
	return current, nil
}

// showPermissions prints the rules in force and the default.
func showPermissions(ctx context.Context, o *cli.Options, asJSON bool) error {
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	p.Setup.PrintProblems(o)
	rules, err := rulesInForce(ctx, p)
	if err != nil {
		return err
	}
	// Compile sorts the rules in the order in which they win, so that the first line of the table that fits a call decides it.
	r := access.Compile(rules).Rules()
	out := rulesReport{Rules: []ruleReport{}, Default: access.Stricter(access.Allow, r.Own.Default)}
	for _, rule := range slices.Concat(r.Managed.Rules, r.Own.Rules) {
		out.Rules = append(out.Rules, ruleReport{rule.Verdict, rule.Text, rule.Source})
	}
	if r.Own.Default != "" {
		out.Source = &r.Own.DefaultSource
	}
	if r.Managed.Default != "" {
		out.Managed = &managedDefault{r.Managed.Default, r.Managed.DefaultSource}
	}
	if asJSON {
		return terminal.PrintJSON(o.Out, out)
	}
	if len(out.Rules) > 0 {
		t := terminal.NewTable(o.Out, "verdict", "rule", "from")
		for _, rule := range out.Rules {
			t.AppendRow([]any{string(rule.Verdict), messages.Line(rule.Rule, 120), rule.Source.String()})
		}
		terminal.PrintTable(o.Out, t)
		fmt.Fprintln(o.Out)
	}
	text := "Everything else: " + string(out.Default)
	if out.Source != nil {
		text += " (" + out.Source.String() + ")"
	}
	fmt.Fprintln(o.Out, text+"; of trusted servers, what reads only: allow, what is destructive: "+
		string(access.Stricter(access.Ask, denyOnly(out.Default))))
	if m := out.Managed; m != nil {
		fmt.Fprintf(o.Out, "Where no managed rule says otherwise, at least: %s (%s)\n", m.Default, m.Source)
	}
	return nil
}

// denyOnly returns v if it denies and "" otherwise, to say what a strict default makes of destructive tools.
func denyOnly(v access.Verdict) access.Verdict {
	if v == access.Deny {
		return v
	}
	return ""
}

// newPermissionsTest returns the command "permissions test", which runs testPermissions and makes no call.
func newPermissionsTest(o *cli.Options) *cobra.Command {
	var asJSON bool
	var whole string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "test SERVER:TOOL [KEY=VALUE] [KEY:=JSON]",
		Short: "Say what would happen to a call, and by which rule",
		Long: `Says what would happen to a call, and by which rule, without making it. A server is connected only if what it
says of its tool decides: it is trusted, and no rule is about the tool.

Exit codes: 0 it would be allowed · 1 it would be asked about, or denied · 2 usage or configuration.`,
		Example: `  mcpvisor permissions test github:delete_repo
  mcpvisor permissions test mcp__fs__write path=/etc/passwd`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError(cmd, "which tool? Write mcpvisor permissions test SERVER:TOOL KEY=VALUE…")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return testPermissions(o, cmd, args, whole, asJSON, wait)
		},
	}
	cmd.Flags().StringVar(&whole, "args", "", "the arguments as a `JSON` object; - reads it from standard input")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect, if it must be asked")
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON object")
	return cmd
}

// testPermissions decides about a call without making it, with the rules in force. It connects a server only if the decision
// depends on what the server says of its tool. Exit code 1 means that the call would be asked about or denied.
func testPermissions(o *cli.Options, cmd *cobra.Command, words []string, whole string, asJSON bool, wait time.Duration) error {
	p, err := project.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer p.Close()
	// A server of the files that the running up does not have can be tested, too.
	for _, name := range p.Setup.ServerNames() {
		if !slices.Contains(p.Names, name) {
			p.Names = append(p.Names, name)
		}
	}
	target, words, err := call.ParseTarget(p, words, call.ToolFor("permissions test"))
	if err != nil {
		return err
	}
	typed, err := schema.SplitArgs(words)
	if err != nil {
		return exit.UsageError(cmd, "%s", err)
	}
	// The arguments are read without the tool's schema, which would need a connection.
	args, err := schema.BuildArgs(whole, typed, schema.ReadInput(nil), o.In)
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	rules, err := rulesInForce(cmd.Context(), p)
	if err != nil {
		return err
	}
	// The test always looks at hints: the answer must be that of a call, which a trusted server's claims decide where no rule does.
	rules.Hints = true
	q := access.Request{Server: target.Server, Tool: target.Tool, Qualified: target.Qualified, Args: args}
	// A qualified name with a hash can only be resolved by asking the servers.
	if q.Server == "" {
		tool, err := call.FindTool(cmd.Context(), p, target, call.Flags{Wait: wait})
		if err != nil {
			return err
		}
		q.Server, q.Tool, q.Annotations = tool.Server, tool.Name, tool.Annotations
	}
	// Trust comes from the files: the server cannot claim it.
	q.Trusted = p.Setup.Specs[q.Server].Trusted
	d := access.Decide(rules, q)
	// The annotations decide only about trusted servers, where no rule is about the tool.
	if q.Trusted && !d.ByRule && q.Annotations == nil {
		tool, err := call.FindTool(cmd.Context(), p, target, call.Flags{Wait: wait})
		if err != nil {
			return err
		}
		q.Annotations = tool.Annotations
		d = access.Decide(rules, q)
	}
	if asJSON {
		err = terminal.PrintJSON(o.Out, struct {
			Server    string          `json:"server"`
			Tool      string          `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
			access.Decision
		}{q.Server, q.Tool, args, d})
	} else {
		fmt.Fprintf(o.Out, "%s: %s\n", d.Verdict, messages.Printable(d.Why))
	}
	if err == nil && d.Verdict != access.Allow {
		return &exit.Error{Code: exit.Failed}
	}
	return err
}

// newPermissionsAdd returns the command that adds rules with this verdict: allow, ask or deny.
func newPermissionsAdd(o *cli.Options, verdict access.Verdict) *cobra.Command {
	short := map[access.Verdict]string{access.Allow: "Allow calls without a question", access.Ask: "Ask before calls",
		access.Deny: "Deny calls, and show nobody the tools"}
	cmd := &cobra.Command{
		Use:   string(verdict) + " RULE…",
		Short: short[verdict] + ": write a rule into your own file",
		Example: "  mcpvisor permissions " + string(verdict) + " mcp__github__create_issue\n" +
			"  mcpvisor permissions " + string(verdict) + " 'github:delete_*'",
		Args: atLeastOneRule,
		RunE: func(_ *cobra.Command, rules []string) error {
			// Only the person's own file is written: a project's file belongs to all who work on it, the managed one to the
			// organisation.
			path := discover.DefaultPaths().User
			var written []string
			var failed error
			for _, rule := range rules {
				if failed = discover.AddRule(path, verdict, rule); failed != nil {
					break
				}
				written = append(written, rule)
				RecordRuleChange(o, string(verdict)+" "+rule, path)
				if o.JSON {
					continue
				}
				fmt.Fprintf(o.Out, "%s %s: in %s\n", verdict, messages.Line(rule, 200), messages.Line(path, 0))
			}
			// The rules before the one that failed stay in the file, so the object names them.
			if o.JSON && len(written) > 0 {
				if err := terminal.PrintJSON(o.Out, ruleChangeReport{File: path, Verdict: verdict, Rules: written}); err != nil {
					return err
				}
			}
			return failed
		},
	}
	o.AddJSONFlag(cmd, "print a JSON object")
	return cmd
}

// ruleChangeReport is the JSON object of the commands that change rules: Rules were written now, Removed were taken out.
type ruleChangeReport struct {
	File    string         `json:"file"`
	Verdict access.Verdict `json:"verdict,omitempty"`
	Rules   []string       `json:"rules,omitempty"`
	Removed []string       `json:"removed,omitempty"`
}

// RecordRuleChange adds a changed rule to the record. If the files cannot be read, nothing is recorded and the change stands.
func RecordRuleChange(o *cli.Options, what, path string) {
	if s, _ := project.LoadSetup(o); s != nil {
		s.WriteRecords(o, []audit.Record{{Change: "permissions", Detail: what + " in " + path}})
	}
}

// newPermissionsRemove returns the command "permissions remove". Rules that are not there are an error after the others are
// removed.
func newPermissionsRemove(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove RULE…",
		Short:   "Take a rule out of your own file",
		Example: "  mcpvisor permissions remove 'github:delete_*'",
		Args:    atLeastOneRule,
		RunE: func(_ *cobra.Command, rules []string) error {
			path := discover.DefaultPaths().User
			// One edit removes all of them, so that a failure never leaves some removed that no output names.
			removed, err := discover.RemoveRules(path, rules)
			if err != nil {
				return err
			}
			for _, rule := range removed {
				RecordRuleChange(o, "remove "+rule, path)
				if !o.JSON {
					fmt.Fprintf(o.Out, "removed %s from %s\n", messages.Line(rule, 200), messages.Line(path, 0))
				}
			}
			if o.JSON && len(removed) > 0 {
				if err := terminal.PrintJSON(o.Out, ruleChangeReport{File: path, Removed: removed}); err != nil {
					return err
				}
			}
			// A rule of another file cannot be removed here, and the table of permissions shows where it stands.
			var missing []string
			for _, rule := range rules {
				if !slices.Contains(removed, rule) {
					missing = append(missing, messages.Line(rule, 200))
				}
			}
			if len(missing) > 0 {
				return exit.With(exit.Usage, fmt.Sprintf("%s holds no rule %s; see: mcpvisor permissions",
					messages.Line(path, 0), strings.Join(missing, ", ")))
			}
			return nil
		},
	}
	o.AddJSONFlag(cmd, "print a JSON object")
	return cmd
}

// atLeastOneRule demands an argument; the commands that change rules use it for Args.
func atLeastOneRule(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.UsageError(cmd, "which rule? Write %s 'mcp__SERVER__TOOL'", cmd.CommandPath())
	}
	return nil
}
