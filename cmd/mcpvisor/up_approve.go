package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// offerApprovals asks the person at the terminal about the servers that wait for an approval, one by one, before any server
// starts. Without a terminal, and after any answer but a yes, a server stays failed, and its error names the command that
// approves it. Only an interrupt and a store that cannot be written end the command.
func offerApprovals(ctx context.Context, o *options, s *setup) error {
	reportStale(o, s)
	held := slices.DeleteFunc(discover.AwaitingApproval(s.Set), func(name string) bool { return s.Waiting[name].Spec.Invalid != "" })
	if len(held) == 0 || !o.prompter.hasTerminal() {
		return nil
	}
	fmt.Fprintln(o.err, "The project configures servers that you have not approved as they are. They would run with your rights.")
	yes, err := askEach(ctx, o, s, held, "start")
	if err != nil {
		return err
	}
	if len(yes) > 0 {
		if err := s.Approvals.Approve(s.Set, yes...); err != nil {
			return err
		}
		recordApprovals(s, o, yes)
		// The set now counts the approved entries, in place of what held their places.
		s.Set = s.Approvals.Apply(s.Set)
	}
	if len(yes) < len(held) {
		o.printRemark("going on without the others; approve with: mcpvisor approve NAME")
	}
	return nil
}

// askEach shows servers one by one, asks about each, and returns those that the person agreed to. Every server that was shown
// is marked so, also after a no, because approve NAME then knows that the person has seen it.
func askEach(ctx context.Context, o *options, s *setup, names []string, what string) (yes []string, err error) {
	for i, name := range names {
		v, ok := screenOf(s, name)
		if !ok {
			continue
		}
		word, err := askScreen(ctx, o, v, what, len(names)-i-1)
		if err != nil {
			return nil, err
		}
		s.Approvals.MarkShown(s.Set, name)
		if word == "yes" {
			yes = append(yes, name)
		}
		if word == "rest" {
			break
		}
	}
	return yes, nil
}

// askScreen shows a screen and asks one question about it. more is the number of screens to come, for the answer "rest". What
// was typed while the screen was printed is dropped, because the person cannot have read it.
func askScreen(ctx context.Context, o *options, v approvalScreen, what string, more int) (word string, err error) {
	err = o.prompter.promptForCommand(ctx, v.title, func(t *conversation) error {
		fmt.Fprintln(t.out)
		v.printTo(t.out)
		words, prompt := []string{"yes", "no"}, "[y]es or [n]o"
		if more > 0 {
			words, prompt = append(words, "rest"), fmt.Sprintf("[y]es, [n]o, or no to the [r]est (%d more)", more)
		}
		t.lines.dropTyped()
		var err error
		word, err = t.chooseWord("Approve and "+what+" "+messages.Line(v.title, 60)+"? "+prompt, words...)
		return err
	})
	switch {
	case err == nil:
		return word, nil
	case interruptedError(ctx) != nil:
		return "", interruptedError(ctx)
	}
	return "", exitWith(exitInterrupted, "nothing was approved")
}

// reportStale reports approved servers of which something has changed that their entry does not show, such as a script in the
// project.
func reportStale(o *options, s *setup) {
	for _, name := range discover.Stale(s.Set) {
		for _, clause := range s.Stale[name] {
			o.printRemark("server %q: %s; see: mcpvisor approve %s", messages.Line(name, 60), clause, shellWord(name))
		}
	}
}
