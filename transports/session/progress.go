package session

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// progress is the way of one request's progress notifications to its caller.
type progress struct {
	mu   sync.Mutex
	over bool
	tell func(messages.Progress)
}

// finish makes sure that nothing is told any more. It waits for a call that is under way.
func (p *progress) finish() {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
}

func (p *progress) say(v messages.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.tell(v)
	}
}

// progressed takes a progress notification. One for a request that has ended, or that asked for none, is ignored.
//
// 2025-11-25: "Progress notifications MUST only reference tokens that: Were provided in an active request".
func (s *Session) progressed(params []byte) {
	token := idOf(rawjson.Member(params, "progressToken"))
	s.mu.Lock()
	var p *progress
	var patience *Patience
	if f := s.pending[token]; f != nil {
		p, patience = f.progress, f.patience
	} else {
		for f := range s.follows {
			if token > 0 && f.token == token {
				p, patience = f.progress, f.patience
			}
		}
	}
	s.mu.Unlock()
	if p == nil {
		return
	}
	patience.begin()
	params = bytes.Clone(params) // without the rest of the body
	s.callbacks.put(len(params), false, func() { p.say(readProgress(params)) })
}

func readProgress(params []byte) (v messages.Progress) {
	m := rawjson.ObjectAt(params, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "progress":
			v.Progress, _ = strconv.ParseFloat(string(value), 64)
		case "total":
			v.Total, _ = strconv.ParseFloat(string(value), 64)
		case "message":
			v.Message, _ = rawjson.Text(value)
		}
	}
	return v
}
