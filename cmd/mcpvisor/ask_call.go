package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// permitCall answers whether a call may be made that the rules ask about: by --allow, or at the terminal. It is called
// concurrently.
func (d *prompter) permitCall(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
	allowed := access.Decide(access.Rules{Own: access.Set{Rules: d.allowed, Default: access.Ask}},
		access.Request{Server: r.Server, Tool: r.Tool, Args: r.Arguments})
	switch {
	case allowed.Verdict == access.Allow:
		return supervisor.AskAll, nil // the flag is about every call that it matches
	case !d.hasTerminal():
		return supervisor.AskNo, noPersonError("there is no terminal to ask at", r)
	}
	answer := supervisor.AskNo
	err := d.promptPerson(ctx, r.Server, callPrompt, func(t *conversation) (err error) {
		answer, err = t.askPermission(r, d.outlivesCall)
		return err
	})
	var e *messages.Error
	switch {
	case errors.Is(err, messages.ErrNotShown) && errors.As(err, &e):
		return supervisor.AskNo, noPersonError(e.Text, r)
	case err != nil:
		return supervisor.AskNo, noPersonError("the question was cancelled", r)
	}
	if answer == supervisor.AskAlways {
		path := discover.DefaultPaths().User
		if err := discover.AddRule(path, access.Allow, r.Rule); err != nil {
			fmt.Fprintf(d.err, "mcpvisor: it is allowed until mcpvisor ends, and not for ever: %s\n", messages.Printable(err.Error()))
			return supervisor.AskSession, nil
		}
		fmt.Fprintf(d.err, "mcpvisor: the rule allow %s stands in %s now\n", messages.Line(r.Rule, 200), messages.Line(path, 0))
	}
	return answer, nil
}

// noPersonError says how a call is allowed without a person.
func noPersonError(text string, r supervisor.AskRequest) error {
	rule := r.Rule
	if rule == "" {
		rule = access.Exact(r.Server, r.Tool)
	}
	fix := "allow it with --allow " + shellWord(rule)
	if r.Rule != "" {
		fix += ", or for ever with: mcpvisor permissions allow " + shellWord(rule)
	}
	return &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: text, Fix: fix}
}

// askPermission holds the conversation about one call. lasting says that the manager goes on after it.
func (t *conversation) askPermission(r supervisor.AskRequest, outlivesCall bool) (supervisor.AskAnswer, error) {
	t.print("\nMay the tool %q of the server %q be called?\n", messages.Line(r.Tool, 80), messages.Line(r.Server, 60))
	if args := strings.TrimSpace(string(r.Arguments)); args != "" && args != "{}" {
		t.printExcerpt(args, 2000)
	} else {
		t.print("  without arguments\n")
	}
	if marks := marksOf(r.Annotations); marks != "" {
		said := "its server says, and is not trusted: "
		if r.Trusted {
			said = "its trusted server says: "
		}
		t.print("  %s%s\n", said, marks)
	}
	t.print("  asked because %s\n", messages.Line(r.Why, 300))
	for {
		equal := r.Equal()
		words, prompt, no := []string{"once"}, "[o]nce", " or [n]o?"
		if equal > 1 {
			t.print("  %d calls with these arguments wait: once is one of them\n", equal)
			words, prompt = append(words, "every"), fmt.Sprintf("[o]nce, [e]very one of the %d", equal)
			no = fmt.Sprintf(" or [n]o to all %d?", equal)
		}
		if outlivesCall {
			words, prompt = append(words, "session"), prompt+", for this [s]ession"
		}
		if r.Rule != "" {
			words, prompt = append(words, "always"), prompt+", [a]lways (a rule in your own file)"
		}
		word, err := t.chooseWord(prompt+no, slices.Concat(words, []string{"no"})...)
		switch {
		case err != nil:
			return supervisor.AskNo, err
		case word != "every":
			return supervisor.AskAnswer(word), nil
		case r.Equal() <= equal:
			return supervisor.AskAll, nil
		}
		t.print("  More calls have come meanwhile.\n")
	}
}
