package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// everyCommand calls f for every visible command, with its path after "mcpvisor".
func everyCommand(f func(path string, c *cobra.Command)) *cobra.Command {
	root := newRoot(&cli.Options{Streams: terminal.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}})
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				f(strings.TrimPrefix(sub.CommandPath(), "mcpvisor "), sub)
				walk(sub)
			}
		}
	}
	walk(root)
	return root
}

// withoutJSON lists the commands that have no --json, each with the reason.
var withoutJSON = map[string]string{
	"auth": "has other commands", "config": "has other commands", "chaos": "has other commands", "completion": "has other commands",
	"connect": "its standard output belongs to the agent", "down": "its exit code says it all",
	"chaos proxy":     "its standard output belongs to the server that it stands in front of; --log writes JSON",
	"completion bash": "prints a script", "completion zsh": "prints a script", "completion fish": "prints a script",
	"completion powershell": "prints a script", "help": "prints a text for people",
}

// TestEveryCommandPrintsForPrograms checks that every command has --json or a reason in withoutJSON, and a row in help/json.md.
func TestEveryCommandPrintsForPrograms(t *testing.T) {
	topic, _ := readTopic("json")
	everyCommand(func(path string, c *cobra.Command) {
		f, why := c.Flags().Lookup("json"), withoutJSON[path]
		switch {
		case f == nil && why == "":
			t.Errorf("%s has no --json; add it, or write the reason here", path)
		case f == nil:
		case why != "":
			t.Errorf("%s has --json, and a reason why it has none", path)
		case f.Shorthand != "j":
			t.Errorf("%s: --json has no short form", path)
		default:
			group, last, ok := strings.Cut(path, " ")
			if !strings.Contains(topic, "`"+path+"`") && !(ok && strings.Contains(topic, "| `"+group+" ") && strings.Contains(topic, "`"+last+"`")) {
				t.Errorf("help/json.md does not say what %s prints", path)
			}
		}
	})
}

// longHelps lists the commands whose help may be longer than 40 lines, with the bound of each.
var longHelps = map[string]int{
	"add":         52,                    // three kinds of servers, with their flags
	"chaos":       44,                    // eight commands
	"chaos sim":   44,                    // what is drawn by a seed
	"chaos score": 60,                    // the protocol of adapters
	"chaos proxy": 52,                    // the rules of faults
	"login":       44, "permissions": 44, // the ways to sign in; the form of a rule
}

// TestHelpFitsOnAScreen checks the length of every help, and that it shows the common flags.
func TestHelpFitsOnAScreen(t *testing.T) {
	everyCommand(func(path string, c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		c.InitDefaultHelpFlag()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		most := 40
		if n := longHelps[path]; n > 0 {
			most = n
		}
		if n := strings.Count(out.String(), "\n"); n > most {
			t.Errorf("the help of %s has %d lines, more than %d", path, n, most)
		}
		for _, text := range []string{"-c, --config file ", "-C, --dir directory ", "-q, --quiet ", "mcpvisor help flags"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("the help of %s does not name %q", path, text)
			}
		}
	})
}

// TestTheTopicFlagsExplainsAllOfThem checks that help/flags.md has a row for each persistent flag.
func TestTheTopicFlagsExplainsAllOfThem(t *testing.T) {
	topic, _ := readTopic("flags")
	root := everyCommand(func(string, *cobra.Command) {})
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		want := "| `--" + f.Name + "`"
		if f.Shorthand != "" {
			want += ", `-" + f.Shorthand + "`"
		}
		if !f.Hidden && !strings.Contains(topic, want) {
			t.Errorf("help/flags.md has no line that begins with %s", want)
		}
	})
}

// TestEveryCommandHasExamplesThatParse parses the examples of every command, also those inside of a shell line.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	everyCommand(func(path string, c *cobra.Command) {
		if !c.Runnable() {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no example", path)
			return
		}
		for _, line := range strings.Split(c.Example, "\n") {
			for _, command := range inShell(line) {
				found, err := parseCommand(command)
				if err != nil {
					t.Errorf("%s: %q: %v", path, command, err)
					continue
				}
				if own := strings.TrimPrefix(found.CommandPath(), "mcpvisor "); own != path && !strings.HasPrefix(own, path+" ") &&
					!strings.Contains(c.Example, "mcpvisor "+path) {
					t.Errorf("%s: its examples are of %s", path, own)
				}
			}
		}
	})
}

// parseCommand finds the command of a line, and parses its flags and arguments without running it.
func parseCommand(line string) (*cobra.Command, error) {
	root := newRoot(&cli.Options{Streams: terminal.Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}})
	words, err := config.Words(line)
	if err != nil || len(words) == 0 || words[0] != "mcpvisor" {
		return nil, fmt.Errorf("it is no command line of mcpvisor: %w", err)
	}
	found, rest, err := root.Find(words[1:])
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err == nil {
		err = found.ValidateArgs(found.Flags().Args())
	}
	if err == nil && found.HasAvailableSubCommands() && found.Flags().NArg() > 0 && !strings.HasPrefix(found.Use, "proxy") {
		err = cli.UnknownCommand(found, found.Flags().Arg(0))
	}
	return found, err
}

// within matches command lines inside of $(…) and <(…); another matches the rest of a line after a command: a comment, a pipe,
// a redirection.
var (
	within  = regexp.MustCompile(`(?:\$\(|<\()(mcpvisor [^()]*)\)`)
	another = regexp.MustCompile(`(\s#| \| | > | && ).*`)
)

// inShell returns the command lines of mcpvisor in a line of a shell, those in $(…) and <(…) included.
func inShell(line string) (all []string) {
	line = strings.TrimSpace(line)
	for _, inner := range within.FindAllStringSubmatch(line, -1) {
		all = append(all, another.ReplaceAllString(inner[1], ""))
	}
	line = another.ReplaceAllString(within.ReplaceAllString(line, "x"), "")
	if len(all) == 0 || strings.HasPrefix(line, "mcpvisor ") {
		all = append(all, line)
	}
	slices.Reverse(all)
	return all
}
