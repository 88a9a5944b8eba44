package config

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
)

// unknownKey is a key of an entry that nothing here knows, and where it stands.
type unknownKey struct {
	key string
	pos Pos
}

// warnUnknownKeys warns about the unknown keys of an entry in one sentence: files of other tools have many.
func (r *reader) warnUnknownKeys() {
	if len(r.unknownKeys) == 0 {
		return
	}
	text := "unknown key, ignored"
	for i, s := range r.unknownKeys[1:] {
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

// maxUnknownKeys is how many unknown keys are named after the first.
const maxUnknownKeys = 8
