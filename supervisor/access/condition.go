package access

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// condition is one NAME:PATTERN of a rule.
type condition struct {
	argument string
	// parts are the literal stretches between the stars of the pattern.
	parts []string
}

// cutConditions takes a rule apart at its parentheses. fault and fix are empty for a rule that can be read.
func cutConditions(text string) (name string, all []condition, fault, fix string) {
	const how = "write (path:docs/*), with \\ before a * , ( ) or \\ that is meant as it is"
	open := strings.IndexByte(text, '(')
	if open < 0 {
		if strings.ContainsRune(text, ')') {
			return "", nil, "a ) without a (", how
		}
		return text, nil, "", ""
	}
	name = text[:open]
	// Each round reads one condition: a name up to its colon, a pattern up to a comma or the closing parenthesis.
	s := scanner{text: text[open+1:]}
	for {
		argument, stars, end := s.readUntil(":,)")
		key := strings.Join(argument, "*")
		switch {
		case end == '(':
			return "", nil, "a ( inside of the parentheses", how
		// A star in a name would match arguments that the rule's author never saw.
		case stars:
			return "", nil, "the name of an argument cannot hold a *", how
		case end == ':' && strings.TrimSpace(key) == "", end == ')' && key == "" && len(all) == 0:
			return "", nil, "the name of an argument is missing", how
		case end == 0:
			return "", nil, "the ) is missing", how
		case end != ':':
			return "", nil, "a condition is a name and a pattern with a colon between them", how
		}
		parts, _, end := s.readUntil(",)")
		switch {
		case end == '(':
			return "", nil, "a ( inside of the parentheses", how
		case end == 0:
			return "", nil, "the ) is missing", how
		case len(parts) == 1 && parts[0] == "":
			return "", nil, "the pattern of an argument is missing", "write " + key + ":* for any value"
		}
		all = append(all, condition{argument: strings.TrimSpace(key), parts: parts})
		if end == ',' {
			continue
		}
		// Text behind the parentheses is usually a misplaced one, and must not be ignored.
		if s.text != "" {
			return "", nil, "something follows the )", how
		}
		return name, all, "", ""
	}
}

// scanner reads the inside of parentheses, where a backslash takes the meaning of the next character.
type scanner struct{ text string }

// readUntil reads up to one of the ends, which it returns; 0 if the text has none. Stars split what it read.
func (s *scanner) readUntil(ends string) (parts []string, stars bool, end byte) {
	var b strings.Builder
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case c == '\\' && i+1 < len(s.text):
			i++
			b.WriteByte(s.text[i])
		case c == '*':
			parts, stars = append(parts, b.String()), true
			b.Reset()
		case c == '(':
			return parts, stars, c
		case strings.IndexByte(ends, c) >= 0:
			s.text = s.text[i+1:]
			return append(parts, b.String()), stars, c
		default:
			b.WriteByte(c)
		}
	}
	s.text = ""
	return parts, stars, 0
}

// matchesAny reports whether the pattern is of stars only.
func (c *condition) matchesAny() bool { return len(c.parts) > 1 && strings.Join(c.parts, "") == "" }

// matchesText matches one value, case and all.
func (c *condition) matchesText(text string) bool { return messages.MatchParts(c.parts, text) }

// argument is one argument of a call, as it was sent.
type argument struct {
	name  string
	value json.RawMessage
}

// parseArguments returns the arguments in their order; one that is there twice is returned twice, because servers differ in which
// one they take. ok is false for anything but an object, null or nothing.
func parseArguments(args json.RawMessage) (all []argument, ok bool) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || bytes.Equal(args, []byte("null")) {
		return nil, true
	}
	if !rawjson.IsObject(args) {
		return nil, false
	}
	// The names are not folded and doubled ones are kept, because servers differ in what they do with them.
	o := rawjson.ObjectAt(args, 0, 0)
	for o.Next() {
		all = append(all, argument{string(o.Name), o.Skip()})
	}
	return all, o.End() == len(args)
}

// scalarText returns a value in the form that patterns match; ok is false for lists and objects.
func scalarText(raw json.RawMessage) (text string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '{', '[':
		return "", false
	case '"':
		return rawjson.Text(raw)
	}
	return string(raw), true
}

// isMet decides for an allow rule, which must be certain: the argument is there once, with exactly this name, and every value
// of it fits.
func (c *condition) isMet(all []argument) bool {
	var found json.RawMessage
	for _, m := range all {
		if !strings.EqualFold(m.name, c.argument) {
			continue
		}
		if m.name != c.argument || found != nil {
			return false // the server decides which of them counts
		}
		found = m.value
	}
	if found == nil {
		return false
	}
	if text, ok := scalarText(found); ok {
		return c.admitsText(text)
	}
	if !rawjson.IsArray(found) {
		return false
	}
	// An allow needs every element, and at least one: an empty list may mean all.
	elements := 0
	a := rawjson.ArrayAt(found, 0, 0)
	for ; a.Next(); elements++ {
		if text, ok := scalarText(a.Skip()); !ok || !c.admitsText(text) {
			return false
		}
	}
	return elements > 0 && a.End() == len(found)
}

// admitsText refuses a path that leads upward where the pattern has a star: docs/* must not allow docs/../etc.
func (c *condition) admitsText(text string) bool {
	if len(c.parts) > 1 && !c.matchesAny() && hasDotDot(text) {
		return false
	}
	return c.matchesText(text)
}

// hasDotDot reports whether a text, read as a path, has an element "..".
func hasDotDot(text string) bool {
	// Both kinds of slashes count, because the server may run on Windows.
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return false
}

// mayBeMet decides for a deny or ask rule, which must not be evaded: it is enough that some reading of the argument fits.
func (c *condition) mayBeMet(all []argument) bool {
	for _, m := range all {
		if strings.EqualFold(m.name, c.argument) && c.mayMatchWithin(m.value) {
			return true
		}
	}
	return false
}

// mayMatchWithin looks at a value and at everything inside of it. The depth is bounded by the reader of the arguments.
func (c *condition) mayMatchWithin(raw json.RawMessage) bool {
	switch {
	case rawjson.IsObject(raw):
		for o := rawjson.ObjectAt(raw, 0, 0); o.Next(); {
			if c.mayMatch(string(o.Name)) || c.mayMatchWithin(o.Skip()) {
				return true
			}
		}
	case rawjson.IsArray(raw):
		for a := rawjson.ArrayAt(raw, 0, 0); a.Next(); {
			if c.mayMatchWithin(a.Skip()) {
				return true
			}
		}
	default:
		text, ok := scalarText(raw)
		return ok && c.mayMatch(text)
	}
	return false
}

// mayMatch matches one value as it is, in the other forms in which Unicode writes the same letters, as a path without its
// dots, and as a number that is written differently.
func (c *condition) mayMatch(text string) bool {
	if c.matchesAlike(text) || c.matchesNumber(text) {
		return true
	}
	// Letters that look alike, such as full-width ones, may be equal for the server.
	if plain := norm.NFKC.String(text); plain != text && c.normalized().matchesAlike(plain) {
		return true
	}
	return c.normalWanted() && c.normalized().matchesAlike(text)
}

// normalized returns the condition with its pattern in the NFKC form of Unicode.
func (c *condition) normalized() *condition {
	n := &condition{argument: c.argument, parts: make([]string, len(c.parts))}
	for i, p := range c.parts {
		n.parts[i] = norm.NFKC.String(p)
	}
	return n
}

// normalWanted reports whether the pattern itself is in another form, so that a normalised comparison can differ.
func (c *condition) normalWanted() bool {
	return slices.ContainsFunc(c.parts, func(p string) bool { return !norm.NFKC.IsNormalString(p) })
}

// matchesAlike matches a text as it is and, if it looks like a path, as the path without its dots.
func (c *condition) matchesAlike(text string) bool {
	if c.matchesText(text) {
		return true
	}
	// A path is compared without its dots too: a deny of /etc/* must see /srv/../etc/passwd.
	slashes := strings.ReplaceAll(text, `\`, "/")
	if clean := path.Clean(slashes); clean != text && (strings.Contains(slashes, "/") || hasDotDot(text)) {
		return c.matchesText(clean) || c.matchesText(clean+"/")
	}
	return false
}
