package supervisor

import (
	"github.com/mcpvisor/mcpvisor/messages"
)

// maxRemembered bounds the definitions of one server that RememberedTools returns, in bytes.
const maxRemembered = 4 << 20

// RememberedTools returns the tools and the instructions that a server had in an earlier run under the same spec and the same account, as far as rules and
// pins let them be offered, while it is in its first attempt of this run. So a program can show them before the server answers; a call to
// one of them finds out whether the server still has it. nil without Config.RememberTools, in any other state of the server, and
// if nothing is known.
func (m *Manager) RememberedTools(server string) (tools []messages.Tool, instructions string) {
	cell := m.shared.CellOf(server)
	if cell == nil || !m.cfg.RememberTools {
		return nil, ""
	}
	v := cell.View()
	if v.State.Phase != messages.Pending || v.State.EverConnected || v.Attempts > 0 || v.Spec.InstanceOf != "" {
		return nil, ""
	}
	list := m.toolCache.LoadToolList(server, v.Spec)
	if list == nil || list.Size() > maxRemembered {
		return nil, ""
	}
	return m.permissions.FilterTools(server, v.Spec, list).Tools, list.Instructions
}
