package approve

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// OfferApprovals asks the person at the terminal about the servers that wait for an approval, one by one, before any server
// starts. Without a terminal, and after any answer but a yes, a server stays failed, and its error names the command that
// approves it. Only an interrupt and a store that cannot be written end the command.
func OfferApprovals(ctx context.Context, o *cli.Options, s *project.Setup) error {
	// An entry that is invalid cannot start, so that no question is asked about it; its fault is reported as a problem of the file.
	reportStale(o, s)
	held := slices.DeleteFunc(discover.AwaitingApproval(s.Set), func(name string) bool { return s.Waiting[name].Spec.Invalid != "" })
	if len(held) == 0 || !o.Prompter.HasTerminal() {
		return nil
	}
	fmt.Fprintln(o.Err, "The project configures servers that you have not approved as they are. They would run with your rights.")
	yes, err := askEach(ctx, o, s, held, "start")
	if err != nil {
		return err
	}
	if len(yes) > 0 {
		if err := s.Approvals.Approve(s.Set, yes...); err != nil {
			return err
		}
		RecordApprovals(s, o, yes)
		// The set now counts the approved entries, in place of what held their places.
		s.Set = s.Approvals.Apply(s.Set)
	}
	if len(yes) < len(held) {
		o.PrintRemark("going on without the others; approve with: mcpvisor approve NAME")
	}
	return nil
}

// askEach shows servers one by one, asks about each, and returns those that the person agreed to. Every server that was shown
// is marked so, also after a no, because approve NAME then knows that the person has seen it.
func askEach(ctx context.Context, o *cli.Options, s *project.Setup, names []string, what string) (yes []string, err error) {
	for i, name := range names {
		v, ok := ScreenOf(s, name)
		if !ok {
			continue
		}
		word, err := AskScreen(ctx, o, v, what, len(names)-i-1)
		if err != nil {
			return nil, err
		}
		s.Approvals.MarkShown(s.Set, name)
		if word == "yes" {
			yes = append(yes, name)
		}
		// "rest" declines this one and all that follow, which are not marked: the person has not seen them.
		if word == "rest" {
			break
		}
	}
	return yes, nil
}

// AskScreen shows a screen and asks one question about it. more is the number of screens to come, for the answer "rest". What
// was typed while the screen was printed is dropped, because the person cannot have read it.
func AskScreen(ctx context.Context, o *cli.Options, v Screen, what string, more int) (word string, err error) {
	err = o.Prompter.PromptForCommand(ctx, v.Title, func(t *ask.Conversation) error {
		fmt.Fprintln(t.Out)
		v.PrintTo(t.Out)
		words, prompt := []string{"yes", "no"}, "[y]es or [n]o"
		if more > 0 {
			words, prompt = append(words, "rest"), fmt.Sprintf("[y]es, [n]o, or no to the [r]est (%d more)", more)
		}
		t.Lines.DropTyped()
		var err error
		word, err = t.ChooseWord("Approve and "+what+" "+messages.Line(v.Title, 60)+"? "+prompt, words...)
		return err
	})
	switch {
	case err == nil:
		return word, nil
	case exit.InterruptedError(ctx) != nil:
		return "", exit.InterruptedError(ctx)
	}
	return "", exit.With(exit.Interrupted, "nothing was approved")
}

// reportStale reports approved servers of which something has changed that their entry does not show, such as a script in the
// project.
func reportStale(o *cli.Options, s *project.Setup) {
	for _, name := range discover.Stale(s.Set) {
		for _, clause := range s.Stale[name] {
			o.PrintRemark("server %q: %s; see: mcpvisor approve %s", messages.Line(name, 60), clause, terminal.ShellWord(name))
		}
	}
}
