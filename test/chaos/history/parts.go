package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// PartsOf returns the parts of a server's tools in one text, for Entries.Parts: the name of each, how many tools it has, and their hash.
func PartsOf(parts []scenario.Part, tools []messages.Tool) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		shown := slices.DeleteFunc(slices.Clone(tools), func(t messages.Tool) bool { return !p.Has(t.Name) })
		texts[i] = fmt.Sprintf("%s=%d:%s", p, len(shown), HashTools(shown))
	}
	return strings.Join(texts, ";")
}

// PartIn returns how many tools a part has in what [PartsOf] wrote, and their hash; false if it is not there.
func PartIn(text string, part scenario.Part) (count int, hash string, ok bool) {
	for one := range strings.SplitSeq(text, ";") {
		if rest, found := strings.CutPrefix(one, part.String()+"="); found {
			_, err := fmt.Sscanf(strings.Replace(rest, ":", " ", 1), "%d %s", &count, &hash)
			return count, hash, err == nil
		}
	}
	return 0, "", false
}
