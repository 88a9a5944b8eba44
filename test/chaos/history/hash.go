package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// HashTools is the hash of a list of tools, whatever its order: equal lists of names and definitions have equal hashes, on
// the side of the world (Changed) as on that of the manager (Entries). Of two tools of one name the first counts, as in the
// catalog.
//
// A tool's definition is Raw, as it stood in the list; without it, what the other fields say. A world that lists tools which
// no catalog can hold (a broken schema) leaves them out.
func HashTools(tools []messages.Tool) string {
	sorted := make([]*messages.Tool, len(tools))
	for i := range tools {
		sorted[i] = &tools[i]
	}
	slices.SortStableFunc(sorted, func(a, b *messages.Tool) int { return strings.Compare(a.Name, b.Name) })
	sorted = slices.CompactFunc(sorted, func(a, b *messages.Tool) bool { return a.Name == b.Name })
	sum := sha256.New()
	for _, t := range sorted {
		sum.Write(toolDefinition(t))
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// NamesOf is the sorted names of tools, each once, with commas between.
func NamesOf(tools []messages.Tool) string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// toolDefinition is one tool as one line.
func toolDefinition(t *messages.Tool) []byte {
	if len(t.Raw) > 0 {
		var b bytes.Buffer
		if json.Compact(&b, t.Raw) == nil {
			return b.Bytes()
		}
		return t.Raw
	}
	own := *t
	own.Server = ""
	line, err := json.Marshal(&own)
	if err != nil { // a schema that is no JSON: its text is all that there is
		return []byte(t.Name + "\x00" + t.Description + "\x00" + string(t.InputSchema))
	}
	return line
}
