package manage

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// readNamedFiles reads the files of --config for import. One that cannot be read ends the command, because the person named it.
func readNamedFiles(o *cli.Options, from foreign.Format, dir string) ([]discover.ForeignFile, error) {
	found := discover.ReadNamed(o.Configs, o.In, from, dir)
	for _, other := range found {
		if other.Broken && len(other.Problems) > 0 {
			return nil, exit.With(exit.Usage, other.Problems[0].Error())
		}
	}
	return found, nil
}

// rulesOf returns the rules that correspond to what the other programs call without asking, for the servers that are copied.
// fallback is access.Ask as soon as one rule allows: the person was asked about all other calls before, and should be still.
func rulesOf(plan []importItem) (rules []access.Rule, fallback access.Verdict) {
	for _, a := range plan {
		if a.As == "" {
			continue
		}
		for _, approval := range a.approvals {
			for _, text := range approval.Rules(a.As) {
				rules = append(rules, access.Rule{Verdict: approval.Verdict, Text: text})
			}
			if approval.Verdict == access.Allow {
				fallback = access.Ask
			}
		}
	}
	return rules, fallback
}

// importRules writes the rules into the person's own file, the only one whose rules may allow, if a flag or an answer agrees.
// --yes agrees to copying servers, not to allowing calls. Without rules it does nothing.
func importRules(ctx context.Context, o *cli.Options, f importFlags, plan []importItem) error {
	rules, fallback := rulesOf(plan)
	file := discover.DefaultPaths().User
	switch {
	case len(rules) == 0:
		return nil
	// --with-permissions is the agreement.
	case f.permissions:
	case f.yes || !o.Prompter.HasTerminal():
		printSentence(o, f, "What these programs call without asking is not taken over; with rules for it: mcpvisor import --with-permissions")
		return nil
	default:
		yes, err := askRules(ctx, o, rules, fallback, messages.Line(file, 0))
		if err != nil || !yes {
			return err
		}
	}
	// AddRules keeps a default that the file has; fallbackNow is the default that holds after the change.
	fallbackNow, err := discover.AddRules(file, rules, fallback)
	if err != nil {
		return err
	}
	approve.RecordRuleChange(o, fmt.Sprintf("import of %s", terminal.CountOf(len(rules), "rule")), file)
	printSentence(o, f, "%s written to %s; see: mcpvisor permissions", terminal.CountOf(len(rules), "rule"), messages.Line(file, 0))
	if fallback == access.Ask && fallbackNow == access.Ask {
		printSentence(o, f, "Calls that no rule allows are asked about from now on, of every server")
	} else if fallback == access.Ask {
		printSentence(o, f, "Its default stays %s", messages.Line(string(fallbackNow), 20))
	}
	return nil
}

// askRules asks whether the approvals of the other programs shall hold here. An interrupt is an error, although the servers are
// copied already.
func askRules(ctx context.Context, o *cli.Options, rules []access.Rule, fallback access.Verdict, file string) (bool, error) {
	word := "no"
	err := o.Prompter.PromptForCommand(ctx, file, func(t *ask.Conversation) error {
		for _, rule := range rules {
			t.Print("  %s %s\n", rule.Verdict, messages.Line(rule.Text, 120))
		}
		what := "Write these rules to " + file + "?"
		if fallback != "" {
			what = "Write these rules to " + file + ", and be asked before every other call of any server?"
		}
		var err error
		word, err = t.ChooseWord(what+" [y]es or [n]o", "yes", "no")
		return err
	})
	if err != nil {
		return false, exit.With(exit.Interrupted, "the servers were copied, and no rules")
	}
	return word == "yes", nil
}
