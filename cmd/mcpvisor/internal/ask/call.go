package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// PermitCall decides a call about which the access rules say "ask": by --allow, or at the terminal. The manager calls it
// concurrently. An error says why no person could answer, and how to allow the call without one.
func (d *Prompter) PermitCall(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
	allowed := access.Decide(access.Rules{Own: access.Set{Rules: d.Allowed, Default: access.Ask}},
		access.Request{Server: r.Server, Tool: r.Tool, Args: r.Arguments})
	switch {
	case allowed.Verdict == access.Allow:
		return supervisor.AskAll, nil // the flag is meant for every call that it matches
	case !d.HasTerminal():
		return supervisor.AskNo, noPersonError("there is no terminal to ask at", r)
	}
	answer := supervisor.AskNo
	err := d.promptPerson(ctx, r.Server, callPrompt, func(t *Conversation) (err error) {
		answer, err = t.askPermission(r, d.OutlivesCall)
		return err
	})
	var e *messages.Error
	switch {
	case errors.Is(err, messages.ErrNotShown) && errors.As(err, &e):
		return supervisor.AskNo, noPersonError(e.Text, r)
	case err != nil:
		return supervisor.AskNo, noPersonError("the question was cancelled", r)
	}
	// "Always" also writes a rule into the person's own file. If that fails the answer shrinks to this session, and says so.
	if answer == supervisor.AskAlways {
		path := discover.DefaultPaths().User
		if err := discover.AddRule(path, access.Allow, r.Rule); err != nil {
			fmt.Fprintf(d.Err, "mcpvisor: it is allowed until mcpvisor ends, and not for ever: %s\n", messages.Printable(err.Error()))
			return supervisor.AskSession, nil
		}
		fmt.Fprintf(d.Err, "mcpvisor: the rule allow %s stands in %s now\n", messages.Line(r.Rule, 200), messages.Line(path, 0))
	}
	return answer, nil
}

// noPersonError returns the refusal of a call that no person could allow, with the flag and the command that would allow it.
func noPersonError(text string, r supervisor.AskRequest) error {
	rule := r.Rule
	if rule == "" {
		rule = access.Exact(r.Server, r.Tool)
	}
	fix := "allow it with --allow " + terminal.ShellWord(rule)
	if r.Rule != "" {
		fix += ", or for ever with: mcpvisor permissions allow " + terminal.ShellWord(rule)
	}
	return &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: text, Fix: fix}
}

// askPermission holds the conversation about one call. OutlivesCall offers an answer for the session, which makes sense only if
// the manager goes on after the call.
func (t *Conversation) askPermission(r supervisor.AskRequest, outlivesCall bool) (supervisor.AskAnswer, error) {
	t.Print("\nMay the tool %q of the server %q be called?\n", messages.Line(r.Tool, 80), messages.Line(r.Server, 60))
	if args := strings.TrimSpace(string(r.Arguments)); args != "" && args != "{}" {
		t.printExcerpt(args, 2000)
	} else {
		t.Print("  without arguments\n")
	}
	// Annotations are claims of the server itself, and the person must know whether that server is trusted.
	if marks := MarksOf(r.Annotations); marks != "" {
		said := "its server says, and is not trusted: "
		if r.Trusted {
			said = "its trusted server says: "
		}
		t.Print("  %s%s\n", said, marks)
	}
	t.Print("  asked because %s\n", messages.Line(r.Why, 300))
	for {
		// Equal counts the calls with the same arguments that wait. If more arrive while the person thinks, "every" would cover
		// calls that the question did not count, and the question is asked again.
		equal := r.Equal()
		words, prompt, no := []string{"once"}, "[o]nce", " or [n]o?"
		if equal > 1 {
			t.Print("  %d calls with these arguments wait: once is one of them\n", equal)
			words, prompt = append(words, "every"), fmt.Sprintf("[o]nce, [e]very one of the %d", equal)
			no = fmt.Sprintf(" or [n]o to all %d?", equal)
		}
		if outlivesCall {
			words, prompt = append(words, "session"), prompt+", for this [s]ession"
		}
		if r.Rule != "" {
			words, prompt = append(words, "always"), prompt+", [a]lways (a rule in your own file)"
		}
		word, err := t.ChooseWord(prompt+no, slices.Concat(words, []string{"no"})...)
		switch {
		case err != nil:
			return supervisor.AskNo, err
		case word != "every":
			return supervisor.AskAnswer(word), nil
		case r.Equal() <= equal:
			return supervisor.AskAll, nil
		}
		t.Print("  More calls have come meanwhile.\n")
	}
}

// MarksOf returns the server's own claims about a tool in words. They are hints of a program that may not be trusted.
func MarksOf(a *messages.Annotations) string {
	if a == nil {
		return ""
	}
	var words []string
	add := func(claim *bool, yes string) {
		if claim != nil && *claim {
			words = append(words, yes)
		}
	}
	add(a.ReadOnly, "read-only")
	add(a.Destructive, "destructive")
	add(a.Idempotent, "idempotent")
	add(a.OpenWorld, "open-world")
	return strings.Join(words, ", ")
}
