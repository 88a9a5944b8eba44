package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/markdown"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// helpFiles holds the topics of "mcpvisor help TOPIC": one Markdown file each, named after its topic. The first line of a file
// is its title, which the list of topics shows.
//
//go:embed help/*.md
var helpFiles embed.FS

// topicsOf says which topics belong to a command; the help of that command, and of those below it that have no line of their own,
// ends with them. The key is the command's path without the name of the program.
var topicsOf = map[string][]string{
	"up":               {"configuration", "questions", "security", "guarantees"},
	"serve":            {"gateway", "security"},
	"init":             {"configuration"},
	"add":              {"managing", "security"},
	"add-json":         {"managing", "security"},
	"get":              {"managing"},
	"remove":           {"managing"},
	"enable":           {"managing"},
	"disable":          {"managing"},
	"import":           {"other-programs", "security"},
	"clients":          {"other-programs", "files"},
	"connect":          {"gateway", "other-programs", "security"},
	"down":             {"gateway"},
	"approve":          {"security", "files"},
	"login":            {"authorization", "callers"},
	"logout":           {"authorization", "files"},
	"auth":             {"authorization"},
	"auth status":      {"authorization"},
	"permissions":      {"rules"},
	"permissions test": {"rules"},
	"diff":             {"rules"},
	"audit":            {"record", "files"},
	"reload":           {"configuration"},
	"config":           {"configuration"},
	"config check":     {"configuration"},
	"config isolation": {"isolation"},
	"call":             {"exit-codes", "questions"},
	"read":             {"exit-codes", "json"},
	"resources":        {"json"},
	"why":              {"json"},
	"list":             {"exit-codes", "json", "callers"},
	"tools":            {"json"},
	"ping":             {"protocol"},
	"chaos":            {"breaking", "measured"},
	"version":          {"changes", "files", "json"},
}

// maxHelpColumns bounds the width of a topic's lines, since longer ones are hard to read.
const maxHelpColumns = 120

// newHelp returns the help command: cobra's, with topics beside the commands, and with an error for a word that is neither. A
// command wins over a topic of the same name only if more words follow.
func newHelp() *cobra.Command {
	return &cobra.Command{
		GroupID: commands[len(commands)-1].title,
		Use:     "help [command | topic]",
		Short:   "Help about any command or topic",
		Long:    "Explains a command, or a topic:\n\n" + listTopics(),
		Example: `  mcpvisor help call
  mcpvisor help security`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if text, ok := readTopic(args[0]); ok {
					out := cmd.OutOrStdout()
					columns := min(terminal.ColumnsOf(out), maxHelpColumns)
					_, err := fmt.Fprint(out, markdown.Render(text, markdown.Options{Width: columns, Colours: terminal.UsesColours(out)}))
					return err
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownTopic(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := topicNames()
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// nameTopics adds the names of its topics to the end of each command's help, and all topics to the help of the program.
func nameTopics(root *cobra.Command) {
	usage := root.UsageTemplate()
	for words, topics := range topicsOf {
		if c, _, err := root.Find(strings.Fields(words)); err == nil {
			c.SetUsageTemplate(usage + "More: mcpvisor help " + strings.Join(topics, ", mcpvisor help ") + "\n")
		}
	}
	root.SetUsageTemplate(usage + "{{if not .HasParent}}\nTopics (mcpvisor help TOPIC):\n" + listTopics() + "{{end}}")
}

// topicNames returns the names of all topics, sorted.
func topicNames() (names []string) {
	entries, err := helpFiles.ReadDir("help")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".md"))
	}
	slices.Sort(names)
	return names
}

// readTopic returns the text of a topic, and whether there is one of that name.
func readTopic(name string) (string, bool) {
	if !slices.Contains(topicNames(), name) {
		return "", false
	}
	text, err := helpFiles.ReadFile(path.Join("help", name+".md"))
	return string(text), err == nil
}

// listTopics returns a line for each topic, with its name and title. Every command asks for it, most of them to print nothing of it.
var listTopics = sync.OnceValue(func() string {
	var b strings.Builder
	for _, name := range topicNames() {
		text, err := fs.ReadFile(helpFiles, path.Join("help", name+".md"))
		if err != nil {
			panic(err) // the folder is embedded
		}
		title, _, _ := bytes.Cut(text, []byte("\n"))
		fmt.Fprintf(&b, "  %-14s %s\n", name, bytes.TrimPrefix(title, []byte("# ")))
	}
	return b.String()
})

// unknownTopic returns the error for a word that is no topic and no command, with the nearest of both.
func unknownTopic(cmd *cobra.Command, name string) error {
	if near := messages.Nearest(name, topicNames()); near != "" && !cmd.HasParent() {
		return exit.With(exit.Usage, fmt.Sprintf("no command or topic is named %q; did you mean %q?", messages.Line(name, 60), near))
	}
	return cli.UnknownCommand(cmd, name)
}
