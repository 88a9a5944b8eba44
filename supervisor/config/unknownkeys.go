package config

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
)

// unknownKey is a key of an entry that mcpvisor does not know, with its place.
type unknownKey struct {
	key string
	pos Pos
}

// warnUnknownKeys warns about all unknown keys of an entry in one sentence, because files of other tools have many and
// a warning for each would bury the rest.
func (r *reader) warnUnknownKeys() {
	if len(r.unknownKeys) == 0 {
		return
	}
	text := "unknown key, ignored"
	for i, s := range r.unknownKeys[1:] {
		// The first key has the place of the warning; the others get the line in parentheses.
		switch {
		case i == maxUnknownKeys:
			text += fmt.Sprintf(" and %d more", len(r.unknownKeys)-1-maxUnknownKeys)
		case i > maxUnknownKeys:
		case i == 0:
			text += fmt.Sprintf("; also %s (line %d)", messages.Line(s.key, 40), s.pos.Line)
		default:
			text += fmt.Sprintf(", %s (%d)", messages.Line(s.key, 40), s.pos.Line)
		}
	}
	r.addWarning(r.unknownKeys[0].pos, r.unknownKeys[0].key, text, "")
}

// maxUnknownKeys bounds how many keys the sentence names after the first one.
const maxUnknownKeys = 8
