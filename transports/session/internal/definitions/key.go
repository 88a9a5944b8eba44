package definitions

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// readKey reads the member by which a resource, a template or a prompt is addressed. reason says why it cannot be
// used, empty if it can.
func readKey(raw []byte, what string, maxBytes int) (key, reason string) {
	// A null is a missing member to most languages, and gets the same words.
	key, ok := rawjson.Text(raw)
	switch {
	case rawjson.IsNull(raw):
		return "", "it has no " + what
	case !ok:
		return "", "the " + what + " is not a string"
	// An empty key could not be told from a missing one in a request.
	case key == "":
		return "", "the " + what + " is empty"
	// The key comes back with the reason from here on: the report of the quarantine names it, cut to a line.
	case len(key) > maxBytes:
		return key, "the " + what + " is longer than " + strconv.Itoa(maxBytes) + " bytes"
	case strings.ContainsRune(key, utf8.RuneError):
		// The decoded text could not be sent back as the server wrote it.
		return key, "the " + what + " holds characters that are not valid"
	}
	return key, ""
}

// tooLarge returns reason, or the reason of a definition beyond the bound that all definitions have.
func tooLarge(raw []byte, reason string) string {
	// The key's own fault comes first, because it says more about what to mend.
	if reason == "" && len(raw) > MaxDefinition {
		return "the definition is larger than 1 MiB"
	}
	return reason
}
