package registry

import (
	"context"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// askToAdd shows the whole entry and asks whether it may be written and started, since the registry's publisher wrote it.
// Without a person at the terminal only --yes agrees; the entry is then printed to standard error and refused.
func askToAdd(ctx context.Context, o *cli.Options, f Flags, v approve.Screen) error {
	switch {
	case f.yes:
		return nil
	case f.Silent || !o.Prompter.HasTerminal():
		v.PrintTo(o.Err)
		return exit.With(exit.Usage, "nobody can be asked whether this may run, so nothing was added; add --yes")
	}
	word, err := approve.AskScreen(ctx, o, v, "add", 0)
	switch {
	case err != nil:
		return exit.With(exit.Interrupted, "nothing was added")
	case word != "yes":
		return exit.With(exit.Failed, "nothing was added")
	}
	return nil
}

// askInput returns the function that gets the values of an input that a server needs. It asks at the terminal; without one it
// takes defaults, and an input without a default is an error.
func askInput(ctx context.Context, o *cli.Options, server string, silent bool) func(plan.Input) ([]string, error) {
	if silent || !o.Prompter.HasTerminal() {
		return plan.Defaults
	}
	return func(in plan.Input) ([]string, error) {
		var values []string
		err := o.Prompter.PromptForCommand(ctx, server, func(t *ask.Conversation) error {
			var err error
			values, err = askValues(t, server, in)
			return err
		})
		if err != nil {
			return nil, exit.With(exit.Interrupted, "nothing was added: the "+in.Label()+" was not given")
		}
		return values, nil
	}
}

// askValues asks for one input, on as many lines as it takes values; an empty line ends a repeated input.
func askValues(t *ask.Conversation, server string, in plan.Input) ([]string, error) {
	t.Print("\n%s needs the %s%s\n", messages.Line(server, 120), in.Label(), hintOf(in))
	if in.Description != "" {
		t.PrintQuoted(messages.Line(in.Description, 400))
	}
	for i, c := range in.Choices {
		t.Print("  %3d  %s\n", i+1, messages.Line(c, 80))
	}
	var out []string
	for {
		v, err := askValue(t, in, len(out) > 0)
		if err != nil {
			return nil, err
		}
		if v == "" {
			return out, nil
		}
		if out = append(out, v); !in.Repeated {
			return out, nil
		}
	}
}

// hintOf says what an input takes, as the end of a question; "" if there is nothing to say.
func hintOf(in plan.Input) string {
	var words []string
	switch {
	case len(in.Choices) > 0:
		words = append(words, "one of these")
	case in.Format == "filepath":
		words = append(words, "a path")
	case in.Format == "boolean":
		words = append(words, "true or false")
	case in.Format == "number":
		words = append(words, "a number")
	}
	if in.Placeholder != "" {
		words = append(words, "such as "+messages.Line(in.Placeholder, 100))
	}
	if in.Secret {
		words = append(words, "not shown while you type; ${NAME} takes it from your environment at each start")
	}
	if in.Repeated {
		words = append(words, "one in each line, an empty line at the end")
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ", ")
}

// askValue asks for one value until it fits. It returns "" only to end a list that has begun. The default of a secret is not
// shown.
func askValue(t *ask.Conversation, in plan.Input, inList bool) (string, error) {
	prompt := "> "
	if in.HasDefault && !inList {
		prompt = "[" + messages.Line(in.Default, 100) + "] > "
		if in.Secret {
			prompt = "[as the publisher says] > "
		}
	}
	for {
		v, err := t.ReadAnswer(prompt, in.Secret)
		if err != nil {
			return "", err
		}
		// A number chooses from the list; a choice that is a number itself can still be typed if it is not in that range.
		if n, err := strconv.Atoi(v); err == nil && n >= 1 && n <= len(in.Choices) {
			v = in.Choices[n-1]
		}
		switch {
		case v == "" && inList:
			return "", nil
		case v == "" && in.HasDefault:
			return in.Default, nil
		case v == "":
			t.Print("  An answer is required.\n")
			continue
		}
		if err := in.Check(v); err != nil {
			t.Print("  %s.\n", messages.Printable(strings.ToUpper(err.Error()[:1])+err.Error()[1:]))
			continue
		}
		return v, nil
	}
}
