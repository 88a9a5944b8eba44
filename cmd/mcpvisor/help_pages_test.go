package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// pages returns the texts whose links and commands are checked, by path: the README, the page for contributors, and all topics.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"../../README.md": "", "../../test/README.md": ""}
	for _, topic := range topicNames() {
		all["help/"+topic+".md"] = ""
	}
	for name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}

// TestTheReadmeIsADoor checks that README stays short and links every topic.
func TestTheReadmeIsADoor(t *testing.T) {
	text := pages(t)["../../README.md"]
	if n := strings.Count(text, "\n"); n > 140 {
		t.Errorf("README.md has %d lines: what is more than 140 belongs into a topic", n)
	}
	for _, topic := range topicNames() {
		if !strings.Contains(text, "cmd/mcpvisor/help/"+topic+".md") {
			t.Errorf("README.md does not lead to the topic %q", topic)
		}
	}
}

// TestLinksOfPagesLeadSomewhere checks that the target of every link exists, and its heading if the link names one.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]+)?\)`)
	code := regexp.MustCompile("(?ms)^```.*?^```") // an index of a generic function looks like a link
	for name, text := range pages(t) {
		text = code.ReplaceAllString(text, "")
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], ":") {
				continue
			}
			file := filepath.Join(filepath.Dir(name), found[1])
			if found[1] == "" {
				file = name
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, found[1])
				continue
			}
			if part := strings.TrimPrefix(found[2], "#"); part != "" && !hasHeading(t, file, part) {
				t.Errorf("%s: %s has no heading %q", name, found[1], part)
			}
		}
	}
}

// hasHeading reports whether a page has a heading whose anchor is part.
func hasHeading(t *testing.T, file, part string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	drop := regexp.MustCompile(`[^a-z0-9 -]`)
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			if strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-") == part {
				return true
			}
		}
	}
	return false
}

// TestCommandsOfPagesParse parses the command lines that the pages show between fences.
func TestCommandsOfPagesParse(t *testing.T) {
	fenced := regexp.MustCompile("(?s)```\\w*\n(.*?)```")
	shown := 0
	for name, text := range pages(t) {
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				if !strings.HasPrefix(line, "mcpvisor ") || strings.Contains(line, "…") {
					continue
				}
				for _, command := range inShell(line) {
					shown++
					if _, err := parseCommand(command); err != nil {
						t.Errorf("%s: %q: %v", name, command, err)
					}
				}
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d commands are shown in all pages", shown)
	}
}

// TestEveryInvariantIsNamed checks that the topic about the harness has a row for each invariant.
func TestEveryInvariantIsNamed(t *testing.T) {
	text, _ := readTopic("breaking")
	for _, id := range scenario.Invariants {
		if !strings.Contains(text, "\n| "+id+" | ") {
			t.Errorf("help/breaking.md has no row for %s", id)
		}
	}
}
