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

// HashTools hashes a list of tools regardless of its order: equal lists of names and definitions have equal hashes, in the
// events of the servers (Changed) and of the manager (Entries). Of two tools with one name the first counts, as in the catalog.
//
// The definition of a tool is its Raw text; without it, its other fields. A server leaves tools out of its hash that no catalog
// can hold, for instance with a broken schema.
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

// HashContent hashes what is said in a message: a value of JSON without its _meta, however it is written.
func HashContent(raw []byte) string {
	var value any
	if json.Unmarshal(raw, &value) == nil {
		if members, ok := value.(map[string]any); ok {
			delete(members, "_meta")
		}
		if text, err := json.Marshal(value); err == nil {
			raw = text // members in the order of their names
		}
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// NamesOf returns the sorted names of tools, each once, separated by commas.
func NamesOf(tools []messages.Tool) string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// toolDefinition returns the definition of one tool in one line.
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
	// A schema that is no JSON cannot be encoded, so its text counts.
	if err != nil {
		return []byte(t.Name + "\x00" + t.Description + "\x00" + string(t.InputSchema))
	}
	return line
}
