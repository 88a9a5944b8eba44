package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
)

// TestTopicsAndCommandsNameEachOther checks that every topic belongs to a command and none has the name of a command, under
// which it could not be reached.
func TestTopicsAndCommandsNameEachOther(t *testing.T) {
	root := newRoot(&cli.Options{})
	named := map[string]bool{}
	for words, topics := range topicsOf {
		cmd, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 || cmd == root {
			t.Errorf("the table of topics names %q, which is no command", words)
			continue
		}
		for _, topic := range topics {
			if _, ok := readTopic(topic); !ok {
				t.Errorf("%q refers to the topic %q, and there is no help/%s.md", words, topic, topic)
			}
			named[topic] = true
		}
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if want := "\nMore: mcpvisor help " + strings.Join(topics, ", mcpvisor help ") + "\n"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("the help of %q does not end with its topics:\n%s", words, out.String())
		}
	}
	// The topic library is about Go programs, and the topic flags about all commands.
	named["library"], named["flags"] = true, strings.Contains(root.UsageTemplate(), "mcpvisor help flags")
	for _, topic := range topicNames() {
		if !strings.Contains(root.UsageTemplate(), "  "+topic+" ") {
			t.Errorf("the help of the program does not list the topic %q", topic)
		}
	}
	for _, topic := range topicNames() {
		if !named[topic] {
			t.Errorf("no command's help ends with the topic %q", topic)
		}
		for _, c := range root.Commands() {
			if c.Name() == topic || c.HasAlias(topic) {
				t.Errorf("the topic %q has the name of a command", topic)
			}
		}
		text, _ := readTopic(topic)
		if title, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(title, "# ") {
			t.Errorf("help/%s.md does not begin with a title: %q", topic, title)
		}
	}
}

// TestTopicsNameWhatExists checks that the commands and flags in the topics exist.
func TestTopicsNameWhatExists(t *testing.T) {
	root := newRoot(&cli.Options{})
	code := regexp.MustCompile("`(?:mcpvisor )?([a-z][a-z -]*?)? ?(--[a-z][a-z-]*)?`")
	root.InitDefaultHelpCmd()
	flags := map[string]bool{"help": true}
	commands := append(root.Commands(), root)
	for i := 0; i < len(commands); i++ {
		if commands[i] != root {
			commands = append(commands, commands[i].Commands()...)
		}
		for _, name := range cli.FlagNames(commands[i]) {
			flags[name] = true
		}
	}
	for _, topic := range topicNames() {
		text, _ := readTopic(topic)
		named := 0
		for _, found := range code.FindAllStringSubmatch(text, -1) {
			whole, words, flag := found[0], strings.Fields(found[1]), strings.TrimPrefix(found[2], "--")
			if flag != "" && !flags[flag] && (fullBuild || topic != "breaking") {
				t.Errorf("%s: %s names a flag that no command has", topic, whole)
			}
			if strings.HasPrefix(whole, "`mcpvisor ") && len(words) > 0 {
				named++
				if cmd, _, err := root.Find(words[:1]); err != nil || cmd == root {
					t.Errorf("%s: %s names no command", topic, whole)
				}
			}
		}
		if named == 0 {
			t.Errorf("%s names no command of mcpvisor", topic)
		}
	}
}
