package actors

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// RefilterTools tells a server's actor that Screen decides otherwise now. What is offered is announced anew.
type RefilterTools struct{}

// filterTools makes the list that is offered of the one that the server gave.
func (s *Server) filterTools() {
	if s.list == nil {
		s.tools = nil
		return
	}
	s.tools = offeredTools(s.list, s.spec)
	if s.cfg.Filter != nil {
		s.tools = s.cfg.Filter(s.cfg.Name, s.spec, s.tools)
	}
}

// refilterTools shows what is offered now, where tools are shown at all.
func (s *Server) refilterTools() {
	s.filterTools()
	s.shownHash = [32]byte{}
	if s.state.Phase == messages.Connected || s.state.Step == messages.Idle {
		s.applyEvent(lifecycle.Announce{})
		return
	}
	s.publishView(s.state)
}

// offeredTools is the list after the spec's allow and deny lists.
func offeredTools(list *session.ToolList, spec *messages.Spec) *session.ToolList {
	if spec.AllowedTools == nil && len(spec.DeniedTools) == 0 {
		return list
	}
	some := *list
	some.Tools = slices.DeleteFunc(slices.Clone(list.Tools), func(t messages.Tool) bool {
		return ToolRule(spec, t.Name) != ""
	})
	return &some
}

// ToolRule names the rule of the spec that keeps a tool from being offered; empty if there is none.
func ToolRule(spec *messages.Spec, tool string) string {
	if slices.ContainsFunc(spec.DeniedTools, func(p string) bool { return matchTool(p, tool) }) {
		return "deniedTools"
	}
	if spec.AllowedTools != nil && !slices.ContainsFunc(spec.AllowedTools, func(p string) bool { return matchTool(p, tool) }) {
		return "allowedTools"
	}
	return ""
}

func matchTool(pattern, tool string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(tool, prefix)
	}
	return pattern == tool
}
