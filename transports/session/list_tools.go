package session

import (
	"context"
	"crypto/sha256"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ToolList is the list of a server's tools.
type ToolList struct {
	// Tools are in the server's order, without a Server; no name stands twice.
	Tools []messages.Tool
	// Quarantined are the tools that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Changed are the tools whose definition differs from the approved one, whether they are among Tools or withheld.
	// A session leaves it empty; the package that remembers the approved definitions fills it.
	Changed []messages.ChangedTool
	// Public is true if the server lets the list be shared between users, as Listing.Public.
	Public bool
	// Hash is equal for two lists with the same definitions in any order, so that a new listing without changes is
	// recognised.
	Hash [sha256.Size]byte

	// all are the tools as the server listed them. An owner may replace Tools; the next listing compares with all.
	all []messages.Tool
}

// reuseDefinitions lets a list that is being read share the memory of this one's definitions, which may be nil.
func (t *ToolList) reuseDefinitions(l *pageCollector[messages.Tool]) {
	if t != nil {
		l.reuseEntries(t.all, func(tool *messages.Tool) (raw []byte, key string) { return tool.Raw, tool.Name })
	}
}

// nextList returns the list that l has read after this one, which may be nil. If every definition is the same, the
// lists share everything and no digest is computed.
func (t *ToolList) nextList(l *pageCollector[messages.Tool]) *ToolList {
	if l.onlyReused() && len(t.Quarantined) == 0 && len(l.entries) == len(t.all) {
		return &ToolList{Tools: t.all, Public: l.public, Hash: t.Hash, all: t.all}
	}
	return &ToolList{Tools: l.entries, Quarantined: l.quarantined, Public: l.public, Hash: l.contentHash(), all: l.entries}
}

// ListTools reads all pages of the tool list. A server that declares no tools has an empty list and is not asked.
//
// One tool that cannot be used does not spoil the list: it is quarantined. A list that cannot be read as a whole, or
// whose pages never end, is an error of ClassProtocol; the caller should use nothing of it then. The owner calls it
// again after OnToolsChanged.
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
	l := newPageCollector(&toolKind, s.listLimits())
	l.keepsDefinitions, l.public = true, info.Capabilities.Tools // public only if the server was asked and said so
	mirrors := make(map[string]paramHeaders)
	// Over HTTP in the modern era a tool with an invalid header annotation must not be used: check quarantines it.
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
	if info.Capabilities.Tools { // before the first page: a change that is announced from now on concerns this list
		s.toolsRequested.Store(true) // before the first page: what changes after it is a change of this list
		if e := l.fetchPages(ctx, (*conversation)(s)); e != nil {
			return ToolList{}, requiredRequestError(e)
		}
		// Listing needs large buffers, and the session may be idle for days after it.
		s.freeIdleRequests()
		s.toolHeaders.Store(&mirrors)
		s.storeTaskSupport(l.entries)
	}
	list := before.nextList(l)
	s.toolList.Store(list)
	s.memory.keepList(l.memoryTaken, list.Size())
	return *list, nil
}

// Size returns the bytes that the list costs its server's share of the memory.
func (t *ToolList) Size() (n int64) {
	if t == nil {
		return 0
	}
	for i := range t.all {
		n += int64(len(t.all[i].Raw)) + entryCost
	}
	return n
}
