package plan

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// mixedText is a value that is put together from pieces of the publisher and of the person. The origin of a piece
// decides whether it may refer to the person's environment.
type mixedText []textPiece

// textPiece is a part of a value with one origin.
type textPiece struct {
	text string
	// fromPerson marks a piece that the person gave, secret one that must not be shown.
	fromPerson, secret bool
}

// publishedText returns a text of the publisher, or of mcpvisor, as one piece.
func publishedText(s string) mixedText { return mixedText{{text: s}} }

// String returns the whole value, with secrets.
func (w mixedText) String() string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(p.text)
	}
	return b.String()
}

// redactedText returns the value with "…" for each secret piece.
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

// isFromPerson reports whether the person gave a piece of the value and all of its text is theirs.
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

// markedText returns the value with personMark for each piece of the person.
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

// reference begins a reference to the environment in an entry.
const reference = "${"

// checkSafe refuses a value that would be expanded when the entry is read, unless each reference stands inside a piece
// of the person's own, and refuses control characters of the publisher. what names the value in the error.
func (w mixedText) checkSafe(what string) error {
	var b strings.Builder
	for _, p := range w {
		// The piece keeps its length and loses its references, so that adjacent pieces cannot complete one with it
		// unseen.
		if p.fromPerson {
			b.WriteString(strings.ReplaceAll(p.text, reference, "  "))
		} else {
			b.WriteString(p.text)
		}
	}
	switch text := b.String(); {
	case strings.Contains(text, reference):
		return planError(ErrUnusable, what+` holds "${", which would be read from your environment`,
			"the publisher has to write {name} and a variable instead")
	// A control character could act on a terminal that shows the entry.
	case strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }):
		return planError(ErrUnusable, what+" holds a control character", "")
	}
	return nil
}

// substituteNames replaces {name} with values. Names that lookup does not know stay unchanged, as the schema of
// server.json demands: "If an identifier in braces is not found in variables … the {curly_braces} substring should
// remain unchanged".
func substituteNames(template string, lookup func(name string) (mixedText, bool, error)) (mixedText, error) {
	var out mixedText
	for {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			break
		}
		// A name ends at the next brace; an opening one begins the search anew.
		length := strings.IndexAny(template[open+1:], "{}")
		if length < 0 {
			break
		}
		end := open + 1 + length
		// The inner brace may begin a name.
		if template[end] == '{' {
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

// shortText returns a publisher's text for a sentence: escaped, on one line, up to 80 characters.
func shortText(s string) string { return messages.Line(s, 80) }
