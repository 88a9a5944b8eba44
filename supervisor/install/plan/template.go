package plan

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// words is a value in the making: what the publisher wrote and what the person gave, side by side. Whose a piece is
// decides whether it may refer to the person's environment.
type words []piece

type piece struct {
	text string
	// own is true for what the person gave, secret for what must not be shown.
	own, secret bool
}

func published(s string) words { return words{{text: s}} }

func (w words) String() string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(p.text)
	}
	return b.String()
}

// shown is the value with nothing secret in it.
func (w words) shown() string {
	var b strings.Builder
	for _, p := range w {
		if p.secret {
			b.WriteString("…")
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// typed reports whether all of the value is the person's.
func (w words) typed() bool {
	typed := false
	for _, p := range w {
		if !p.own && p.text != "" {
			return false
		}
		typed = typed || p.own
	}
	return typed
}

// marked is the value with typedMark for each piece of the person's.
func (w words) marked() string {
	var b strings.Builder
	for _, p := range w {
		if p.own {
			b.WriteString(typedMark)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// reference is how a reference to the environment begins in an entry.
const reference = "${"

// safe refuses a value that would be expanded when the entry is read, unless each reference stands inside a piece of the
// person's own. what names the value for the error.
func (w words) safe(what string) error {
	var b strings.Builder
	for _, p := range w {
		if p.own { // the pieces next to it must not complete a reference, either
			b.WriteString(strings.ReplaceAll(p.text, reference, "  "))
		} else {
			b.WriteString(p.text)
		}
	}
	switch text := b.String(); {
	case strings.Contains(text, reference):
		return refuse(ErrUnusable, what+` holds "${", which would be read from your environment`,
			"the publisher has to write {name} and a variable instead")
	case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }):
		return refuse(ErrUnusable, what+" holds a control character", "")
	}
	return nil
}

// substitute puts values into {name}. Names that lookup does not know stay as they are: the schema says "If an identifier
// in braces is not found in variables … the {curly_braces} substring should remain unchanged".
func substitute(template string, lookup func(name string) (words, bool, error)) (words, error) {
	var out words
	for {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			break
		}
		length := strings.IndexAny(template[open+1:], "{}")
		if length < 0 {
			break
		}
		end := open + 1 + length
		if template[end] == '{' { // the inner one may be a name
			out, template = append(out, piece{text: template[:end]}), template[end:]
			continue
		}
		w, known, err := lookup(template[open+1 : end])
		if err != nil {
			return nil, err
		}
		if !known {
			w = published(template[open : end+1])
		}
		out = append(append(out, piece{text: template[:open]}), w...)
		template = template[end+1:]
	}
	return append(out, piece{text: template}), nil
}

// short is a publisher's text as it may stand in a sentence.
func short(s string) string { return messages.Line(s, 80) }
