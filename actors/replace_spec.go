package actors

import (
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
)

// ReplaceSpec puts a changed spec in force at a server's actor. Event says whether the connection may stay.
type ReplaceSpec struct {
	Spec  *messages.Spec
	Event lifecycle.Respec
}

// replaceSpec puts another spec in force. If the connection fits it, only what the spec says about calls and tools changes;
// otherwise everything that was learned under the old spec is forgotten, since it may be another server.
func (s *Server) replaceSpec(m ReplaceSpec) {
	// The history says which of the two happened.
	text := "its configuration was changed: it begins anew"
	if s.state.Keeps(m.Event) {
		text = "its configuration was changed: its connection goes on"
		s.adjustSpec(m.Spec)
	} else {
		// Nothing that was learned of the old server is true of the new one.
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

// adjustSpec keeps the connection under another spec. Calls that were admitted keep the bounds under which they began; later ones
// take the new bounds from the new link, which leads to the same gate.
func (s *Server) adjustSpec(spec *messages.Spec) {
	if s.attSpec == s.spec {
		s.attSpec = spec
	}
	s.spec = spec
	s.filterTools()
	// The registry gets the list again, even if it is the same.
	s.shownHash = [32]byte{}
	if s.state.Phase == messages.Connected {
		s.useLink(&Link{Server: s.link.Server, Epoch: s.link.Epoch, gate: s.link.gate, reportError: s.link.reportError, lastHeard: s.link.lastHeard,
			answers: s.link.answers})
	}
}
