package era

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// FirstCommon returns the first version of ours that is among theirs, empty if there is none. The order of ours is our
// preference.
func FirstCommon(ours, theirs []string) string {
	for _, v := range ours {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}

// SupportedVersionsIn reads data.supported of an error object, at most 100 versions, as the specification's example of a
// refused version has it.
func SupportedVersionsIn(data []byte) []string {
	return jsonrpc.TextsOf(rawjson.Member(data, "supported"), 100)
}
