package live

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// toolHashes remembers the hash of each server's tools. The manager keeps an unchanged definition as the same pointer in every
// snapshot, so that comparing pointers saves hashing a thousand servers when one of them has changed. It is not safe for
// concurrent use.
type toolHashes map[string]hashedTools

type hashedTools struct {
	tools []*messages.Tool
	hash  string
}

// hashOf returns the hash of a server's tools in a snapshot, empty if it has none.
func (h toolHashes) hashOf(server string, entries []*supervisor.Entry) string {
	if len(entries) == 0 {
		return ""
	}
	known := h[server]
	if slices.EqualFunc(known.tools, entries, func(t *messages.Tool, e *supervisor.Entry) bool { return t == e.Tool }) {
		return known.hash
	}
	now := hashedTools{}
	tools := make([]messages.Tool, 0, len(entries))
	for _, e := range entries {
		now.tools = append(now.tools, e.Tool)
		tools = append(tools, *e.Tool)
	}
	now.hash = history.HashTools(tools)
	h[server] = now
	return now.hash
}
