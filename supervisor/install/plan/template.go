package plan

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// mixedText is a value in the making: what the publisher wrote and what the person gave, side by side. Whose a piece is
// decides whether it may refer to the person's environment.
type mixedText []textPiece

type textPiece struct {
	text string
	// fromPerson is true for what the person gave, secret for what must not be shown.
	fromPerson, secret bool
}

func publishedText(s string) mixedText { return mixedText{{text: s}} }

func (w mixedText) String() string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(p.text)
	}
	return b.String()
}

// redactedText is the value with nothing secret in it.
func (w mixedText) redactedText() string {
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

// isFromPerson reports whether all of the value is the person's.
func (w mixedText) isFromPerson() bool {
	fromPerson := false
	for _, p := range w {
		if !p.fromPerson && p.text != "" {
			return false
		}
		fromPerson = fromPerson || p.fromPerson
	}
	return fromPerson
}

// markedText is the value with personMark for each piece of the person's.
func (w mixedText) markedText() string {
	var b strings.Builder
	for _, p := range w {
		if p.fromPerson {
			b.WriteString(personMark)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// reference is how a reference to the environment begins in an entry.
const reference = "${"

// checkSafe refuses a value that would be expanded when the entry is read, unless each reference stands inside a piece of the
// person's own. what names the value for the error.
func (w mixedText) checkSafe(what string) error {
	var b strings.Builder
	for _, p := range w {
		if p.fromPerson { // the pieces next to it must not complete a reference, either
			b.WriteString(strings.ReplaceAll(p.text, reference, "  "))
		} else {
			b.WriteString(p.text)
		}
	}
	switch text := b.String(); {
	case strings.Contains(text, reference):
		return planError(ErrUnusable, what+` holds "${", which would be read from your environment`,
			"the publisher has to write {name} and a variable instead")
	case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }):
		return planError(ErrUnusable, what+" holds a control character", "")
	}
	return nil
}

// substituteNames puts values into {name}. Names that lookup does not know stay as they are: the schema says "If an identifier
// in braces is not found in variables … the {curly_braces} substring should remain unchanged".
func substituteNames(template string, lookup func(name string) (mixedText, bool, error)) (mixedText, error) {
	var out mixedText
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
			out, template = append(out, textPiece{text: template[:end]}), template[end:]
			continue
		}
		w, known, err := lookup(template[open+1 : end])
		if err != nil {
			return nil, err
		}
		if !known {
			w = publishedText(template[open : end+1])
		}
		out = append(append(out, textPiece{text: template[:open]}), w...)
		template = template[end+1:]
	}
	return append(out, textPiece{text: template}), nil
}

// shortText is a publisher's text as it may stand in a sentence.
func shortText(s string) string { return messages.Line(s, 80) }
