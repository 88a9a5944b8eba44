package actors

import (
	"cmp"
	"slices"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// RefilterTools makes a server's actor call Filter again, because its decisions have changed, and announce the outcome.
type RefilterTools struct{}

// filterTools derives the offered list from the list that the server gave: the spec's patterns first, then Filter.
func (s *Server) filterTools() {
	// No list has come yet, and none is known from an earlier run.
	if s.list == nil {
		s.tools = nil
		return
	}
	s.tools = offeredTools(s.list, s.spec)
	if s.cfg.Filter != nil {
		s.tools = s.cfg.Filter(serverOf(s.cfg.Name, s.spec), s.spec, s.tools)
	}
}

// serverOf returns the name by which rules and pins know a server: an instance has those of the server that it is one of.
func serverOf(name string, spec *messages.Spec) string { return cmp.Or(spec.InstanceOf, name) }

// refilterTools filters again, and announces the list where tools are shown: for a connected server, and for one that rests.
func (s *Server) refilterTools() {
	s.filterTools()
	// The registry gets the list even if it is the same: the reasons of quarantined tools may differ.
	s.shownHash = [32]byte{}
	if s.state.Phase == messages.Connected || s.state.Step == messages.Idle {
		s.applyEvent(lifecycle.Announce{})
		return
	}
	s.publishView(s.state)
}

// offeredTools returns the list without the tools that the spec's allow and deny lists keep out. The list itself is not changed.
func offeredTools(list *session.ToolList, spec *messages.Spec) *session.ToolList {
	if spec.AllowedTools == nil && len(spec.DeniedTools) == 0 {
		return list
	}
	// The session's list is kept whole: a later spec may offer other tools of it.
	some := *list
	some.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t messages.Tool) bool {
		return ToolRule(spec, t.Name) != ""
	})
	return &some
}

// ToolRule returns the key of the spec that keeps a tool from being offered; empty if none does. A denied tool stays denied also if
// it is allowed by name.
func ToolRule(spec *messages.Spec, tool string) string {
	if slices.ContainsFunc(spec.DeniedTools, func(p string) bool { return messages.MatchPattern(p, tool) }) {
		return "deniedTools"
	}
	if spec.AllowedTools != nil && !slices.ContainsFunc(spec.AllowedTools, func(p string) bool { return messages.MatchPattern(p, tool) }) {
		return "allowedTools"
	}
	return ""
}
