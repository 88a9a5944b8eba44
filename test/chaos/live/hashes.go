package live

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// toolHashes remembers the hash of each server's tools. A definition that is as it was is the same pointer in every snapshot,
// so that looking at a thousand servers costs little when one of them has changed.
type toolHashes map[string]hashedTools

type hashedTools struct {
	tools []*messages.Tool
	hash  string
}

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
