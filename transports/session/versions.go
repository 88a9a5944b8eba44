package session

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// firstCommon returns the first version of ours that is among theirs, empty if there is none. The order of ours is our
// preference.
func firstCommon(ours, theirs []string) string {
	for _, v := range ours {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}

// supportedVersionsIn reads data.supported of an error object, at most 100 versions, as the specification's example of a
// refused version has it.
func supportedVersionsIn(data []byte) []string {
	return textsOf(rawjson.Member(data, "supported"), 100)
}
