package access

import (
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// matchesNumber matches a text that is a number as a server may read it: 1000.0, 1e3 and 10e2 are 1000. The pattern is compared as
// it is written, with its stars, and as a number too.
func (c *condition) matchesNumber(text string) bool {
	plain, ok := plainNumber(text)
	if !ok {
		return false
	}
	if plain != text && c.matchesText(plain) {
		return true
	}
	if len(c.parts) > 1 {
		return false
	}
	wanted, ok := plainNumber(c.parts[0])
	return ok && wanted == plain
}

// plainNumber returns a number without an exponent and without superfluous zeros, as a double holds it. ok is false for a text that
// is no number in JSON.
func plainNumber(text string) (plain string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') || !rawjson.Valid([]byte(text)) {
		return "", false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		// The number is beyond a double: a server reads it as it is written, or not at all.
		return "", false
	}
	if f == 0 {
		return "0", true // also -0
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}
