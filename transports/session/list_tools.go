package session

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ToolList is what a server offers.
type ToolList struct {
	// Tools are in the server's order, without a Server; each name stands once.
	Tools []messages.Tool
	// Quarantined are the tools that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Changed are the tools whose definition is not the one that was approved, whether they are among Tools or held back. A
	// session knows of none: whoever remembers definitions says so.
	Changed []messages.ChangedTool
	// Public says that the server lets the list be shared between users, as Listing.Public.
	Public bool
	// Hash is equal for two lists with the same definitions in whatever order: a re-list that changed nothing.
	Hash [sha256.Size]byte

	// all are the tools as they were listed, whatever an owner makes of Tools.
	all []messages.Tool
}

// reuseDefinitions gives a list that is being read the definitions of this one which stand there byte for byte, nearly always in
// the same order: one may have been put in, changed or taken out between two that are as they were. They share their
// memory then, and nothing of the new list stays but what is new in it.
func (t *ToolList) reuseDefinitions(l *pageCollector[messages.Tool]) {
	if t == nil || len(t.all) == 0 {
		return
	}
	next := 0 // the first that has not been found
	l.findKnown = func(raw []byte) (messages.Tool, string, bool) {
		for i := next; i < min(next+2, len(t.all)); i++ {
			if bytes.Equal(t.all[i].Raw, raw) {
				next = i + 1
				return t.all[i], t.all[i].Name, true
			}
		}
		return messages.Tool{}, "", false
	}
	read := l.kind.read
	kind := *l.kind
	kind.read = func(raw []byte) (messages.Tool, string, string) {
		tool, key, reason := read(raw)
		if next < len(t.all) && t.all[next].Name == key {
			next++ // this one in another form
		}
		return tool, key, reason
	}
	l.kind = &kind
}

// nextList is the list that was read after this one, which may be nil. If it is this one, definition for definition, it
// shares everything and needs no digest.
func (t *ToolList) nextList(l *pageCollector[messages.Tool]) *ToolList {
	if l.findKnown != nil && l.newCount == 0 && len(l.quarantined) == 0 && len(t.Quarantined) == 0 && len(l.entries) == len(t.all) {
		return &ToolList{Tools: t.all, Public: l.public, Hash: t.Hash, all: t.all}
	}
	return &ToolList{Tools: l.entries, Quarantined: l.quarantined, Public: l.public, Hash: l.contentHash(), all: l.entries}
}

var toolKind = listKind[messages.Tool]{
	method: "tools/list", member: "tools", singular: "tool", plural: "tools", unique: "name",
	read: func(raw []byte) (messages.Tool, string, string) {
		tool, reason := readTool(raw)
		return tool, tool.Name, reason
	},
}

// ListTools asks for all pages of the tool list. A server that declares no tools has an empty list and is not asked.
//
// One tool that cannot be used does not spoil the list: it is quarantined. A list that cannot be read as a whole, or
// whose pages never end, is an error of ClassProtocol; nothing of it should be used then.
func (s *Session) ListTools(ctx context.Context) (ToolList, error) {
	if e := s.endedError("read"); e != nil {
		return ToolList{}, e
	}
	info := s.info.Load()
	if info == nil {
		return ToolList{}, &messages.Error{
			Op: "read", Class: messages.ClassInvalid, Text: "the tools were asked for before the handshake",
		}
	}
	l := newPageCollector(&toolKind, s.cfg.MaxTools)
	l.keepsDefinitions, l.public = true, info.Capabilities.Tools // where nobody asks, nobody has said public
	mirrors := make(map[string]paramHeaders)
	if s.sendsParamHeaders() {
		l.check = func(tool messages.Tool) string {
			m, problem := paramHeadersOf(tool.InputSchema)
			if len(m) > 0 {
				mirrors[tool.Name] = m
			}
			return problem
		}
	}
	before := s.toolList.Load()
	before.reuseDefinitions(l)
	if info.Capabilities.Tools {
		s.toolsRequested.Store(true) // before the first page: what changes after it is a change of this list
		if e := l.fetchPages(ctx, s); e != nil {
			return ToolList{}, requiredRequestError(e)
		}
		s.freeIdleRequests()
		s.toolHeaders.Store(&mirrors)
		s.storeTaskSupport(l.entries)
	}
	list := before.nextList(l)
	s.toolList.Store(list)
	s.memory.keepList(l.memoryTaken, list.Size())
	return *list, nil
}
