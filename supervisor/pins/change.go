package pins

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Change is a tool whose present definition is not among the approved ones.
type Change struct {
	Tool string `json:"tool"`
	// Old is the definition that was approved last, New what the server offers now; nil if it is too large to be kept.
	Old *Definition `json:"old,omitempty"`
	// New may be nil although the tool has changed: then only the hash is known.
	New *Definition `json:"new,omitempty"`
	// Hash is that of the new definition.
	Hash string `json:"hash"`
}

// Parts returns the names of what differs: "description", "input schema". Without both definitions only "definition" can be said.
func (c Change) Parts() []string {
	// A definition that was too large to be kept can only be compared by its hash.
	if c.Old == nil || c.New == nil {
		return []string{"definition"}
	}
	var parts []string
	for _, p := range c.comparedParts() {
		if p.old != p.new {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// definitionPart is one part of a definition, before and now.
type definitionPart struct {
	name, old, new string
	// schema says that the texts are JSON, to be compared by path.
	schema bool
}

// comparedParts covers everything that is pinned, in the order in which a person reads it.
func (c Change) comparedParts() []definitionPart {
	return []definitionPart{
		{"title", c.Old.Title, c.New.Title, false},
		{"description", c.Old.Description, c.New.Description, false},
		{"input schema", string(c.Old.InputSchema), string(c.New.InputSchema), true},
		{"output schema", string(c.Old.OutputSchema), string(c.New.OutputSchema), true},
		{"annotations", annotationsText(c.Old.Annotations), annotationsText(c.New.Annotations), true},
		{"other members", string(c.Old.Rest), string(c.New.Rest), true},
	}
}

// annotationsText returns hints as JSON, empty for none.
func annotationsText(a *messages.Annotations) string {
	if a == nil {
		return ""
	}
	// Hints are compared as JSON, by their paths, like schemas.
	b, _ := json.Marshal(a) // it always encodes
	return string(b)
}

// maxShown bounds the lines of one part in Text; the JSON form has them all.
const maxShown = 200

// Text describes the change for a person: removed lines with -, added ones with +; texts line by line, schemas and annotations by
// the path of each value. No character of it acts on a terminal: those that could, and invisible ones, are escaped
// (messages.Escaped).
func (c Change) Text() string {
	var b strings.Builder
	// The tool's name is the server's text too.
	fmt.Fprintf(&b, "%s: %s changed\n", messages.Line(c.Tool, 120), strings.Join(c.Parts(), ", "))
	if c.Old == nil || c.New == nil {
		b.WriteString("  (a definition is too large to be kept, or was not kept)\n")
		return b.String()
	}
	for _, p := range c.comparedParts() {
		if p.old == p.new {
			continue
		}
		fmt.Fprintf(&b, "  %s:\n", p.name)
		// A schema is compared by paths, because the order of its keys means nothing.
		show := diffLines(splitLines(p.old), splitLines(p.new))
		if p.schema {
			show = diffByPath(p.old, p.new)
		}
		// A changed schema may have thousands of lines; a person reads the first ones.
		for _, line := range show[:min(len(show), maxShown)] {
			fmt.Fprintf(&b, "    %s\n", line)
		}
		// The person must know that something is missing from the text.
		if n := len(show) - maxShown; n > 0 {
			fmt.Fprintf(&b, "    … %d more lines; --json shows all\n", n)
		}
		// Invisible characters are a known way to hide instructions from the person who approves.
		if hidden := messages.CountHidden(p.new); hidden > messages.CountHidden(p.old) {
			fmt.Fprintf(&b, "    ! what nobody sees, or what acts on a terminal, stands in it %s, and here as \\x1b or \\u200b\n", timesText(hidden))
		}
	}
	return b.String()
}

// timesText returns a count in words.
func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// splitLines returns the escaped lines of a text, without an empty last one.
func splitLines(s string) []string {
	// An empty text has no line, so that a new description shows added lines only.
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(messages.Escaped(s), "\n"), "\n")
}
