package actors

import (
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// ReplaceSpec hands a changed spec to a server actor.
type ReplaceSpec struct {
	Spec  *messages.Spec
	Event lifecycle.Respec
}

// replaceSpec puts another spec in force: in the place of the old one, or around the connection that there is.
func (s *Server) replaceSpec(m ReplaceSpec) {
	text := "its configuration was changed: it begins anew"
	if s.state.Keeps(m.Event) {
		text = "its configuration was changed: its connection goes on"
		s.adjustSpec(m.Spec)
	} else {
		s.spec, s.list, s.tools, s.attempts, s.timeouts = m.Spec, nil, nil, 0, 0
		s.initializeFirst = false
		s.cfg.Cell.Share.Keep(0, 0)
		s.cfg.Holder.era.Store(messages.EraAuto)
	}
	if m.Spec.Remark != "" {
		text = m.Spec.Remark
	}
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: s.state.Epoch, Phase: s.state.Phase, Step: s.state.Step, Text: text})
	s.cfg.Log.Info(text, zap.String("server", s.cfg.Name), zap.Uint64("epoch", s.state.Epoch))
	s.applyEvent(m.Event)
}

// adjustSpec goes on under another spec with what there is. Calls that were admitted keep the bounds under which they began; what
// comes after reads the new spec from the new link, which leads through the same gate.
func (s *Server) adjustSpec(spec *messages.Spec) {
	if s.attSpec == s.spec {
		s.attSpec = spec
	}
	s.spec = spec
	s.filterTools()
	s.shownHash = [32]byte{} // the registry is told again, whatever the list
	if s.state.Phase == messages.Connected {
		s.useLink(&Link{Server: s.link.Server, Epoch: s.link.Epoch, gate: s.link.gate, reportError: s.link.reportError, lastHeard: s.link.lastHeard})
	}
}
