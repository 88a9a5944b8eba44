package actors

import (
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Respec hands a changed spec to a server actor.
type Respec struct {
	Spec  *messages.Spec
	Event lifecycle.Respec
}

// respec puts another spec in force: in the place of the old one, or around the connection that there is.
func (s *Server) respec(m Respec) {
	text := "its configuration was changed: it begins anew"
	if s.state.Keeps(m.Event) {
		text = "its configuration was changed: its connection goes on"
		s.adjust(m.Spec)
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
	s.step(m.Event)
}

// adjust goes on under another spec with what there is. Calls that were admitted keep the bounds under which they began; what
// comes after reads the new spec from the new link, which leads through the same gate.
func (s *Server) adjust(spec *messages.Spec) {
	if s.attSpec == s.spec {
		s.attSpec = spec
	}
	s.spec = spec
	s.screen()
	s.shown = [32]byte{} // the registry is told again, whatever the list
	if s.state.Phase == messages.Connected {
		s.lead(&Link{Server: s.link.Server, Epoch: s.link.Epoch, gate: s.link.gate, refused: s.link.refused, heard: s.link.heard})
	}
}
