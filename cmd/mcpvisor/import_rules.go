package main

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// readNamedFiles are the files of --config. One that cannot be read is the end of the command.
func (o *options) readNamedFiles(from foreign.Format, dir string) ([]discover.ForeignFile, error) {
	found := discover.ReadNamed(o.configs, o.in, from, dir)
	for _, other := range found {
		if other.Broken && len(other.Problems) > 0 {
			return nil, &exitError{exitUsage, other.Problems[0].Error()}
		}
	}
	return found, nil
}

// rulesOf are the rules that say what the programs say of the servers that are copied, and the default that they need:
// where something is approved, the rest is asked about.
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

// importRules writes the rules into the person's own file, where alone they may allow, after a yes. Nothing is allowed
// without one.
func (o *options) importRules(ctx context.Context, f importFlags, plan []importItem) error {
	rules, fallback := rulesOf(plan)
	file := discover.DefaultPaths().User
	switch {
	case len(rules) == 0:
		return nil
	case f.permissions:
	case f.yes || !o.prompter.hasTerminal():
		o.printSentence(f, "What these programs call without asking is not taken over; with rules for it: mcpvisor import --with-permissions")
		return nil
	default:
		yes, err := o.askRules(ctx, rules, fallback, messages.Line(file, 0))
		if err != nil || !yes {
			return err
		}
	}
	fallbackNow, err := discover.AddRules(file, rules, fallback)
	if err != nil {
		return err
	}
	o.recordRuleChange(fmt.Sprintf("import of %s", countOf(len(rules), "rule")), file)
	o.printSentence(f, "%s written to %s; see: mcpvisor permissions", countOf(len(rules), "rule"), messages.Line(file, 0))
	if fallback == access.Ask && fallbackNow == access.Ask {
		o.printSentence(f, "Calls that no rule allows are asked about from now on, of every server")
	} else if fallback == access.Ask {
		o.printSentence(f, "Its default stays %s", messages.Line(string(fallbackNow), 20))
	}
	return nil
}

// askRules asks whether the approvals of the other programs are to count here.
func (o *options) askRules(ctx context.Context, rules []access.Rule, fallback access.Verdict, file string) (bool, error) {
	word := "no"
	err := o.prompter.promptForCommand(ctx, file, func(t *conversation) error {
		for _, rule := range rules {
			t.print("  %s %s\n", rule.Verdict, messages.Line(rule.Text, 120))
		}
		what := "Write these rules to " + file + "?"
		if fallback != "" {
			what = "Write these rules to " + file + ", and be asked before every other call of any server?"
		}
		var err error
		word, err = t.chooseWord(what+" [y]es or [n]o", "yes", "no")
		return err
	})
	if err != nil {
		return false, &exitError{exitInterrupted, "the servers were copied, and no rules"}
	}
	return word == "yes", nil
}
