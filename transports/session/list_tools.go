package session

import (
	"context"
	"crypto/sha256"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/headers"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/lists"
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
	// Instructions say how the server is used; it sent them in the handshake.
	Instructions string
	// Hash is equal for two lists with the same definitions in any order, so that a new listing without changes is
	// recognised.
	Hash [sha256.Size]byte

	// all are the tools as the server listed them. An owner may replace Tools; the next listing compares with all.
	all []messages.Tool
}

// reuseDefinitions lets a list that is being read share the memory of this one's definitions, which may be nil.
func (t *ToolList) reuseDefinitions(l *lists.Collector[messages.Tool]) {
	if t != nil {
		l.ReuseEntries(t.all, func(tool *messages.Tool) (raw []byte, key string) { return tool.Raw, tool.Name })
	}
}

// nextList returns the list that l has read after this one, which may be nil. If every definition is the same, the
// lists share everything and no digest is computed.
func (t *ToolList) nextList(l *lists.Collector[messages.Tool]) *ToolList {
	if l.OnlyReused() && len(t.Quarantined) == 0 && len(l.Entries) == len(t.all) {
		return &ToolList{Tools: t.all, Public: l.Public, Hash: t.Hash, all: t.all}
	}
	return &ToolList{Tools: l.Entries, Quarantined: l.Quarantined, Public: l.Public, Hash: l.ContentHash(), all: l.Entries}
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
	l := lists.NewCollector(&lists.Tools, s.listLimits())
	l.KeepsDefinitions, l.Public = true, info.Capabilities.Tools // public only if the server was asked and said so
	mirrors := make(map[string]headers.Params)
	// Over HTTP in the modern era a tool with an invalid header annotation must not be used: Check quarantines it.
	if s.sendsParamHeaders() {
		l.Check = func(tool messages.Tool) string {
			m, problem := headers.ReadSchema(tool.InputSchema)
			if len(m) > 0 {
				mirrors[tool.Name] = m
			}
			return problem
		}
	}
	before := s.toolList.Load()
	before.reuseDefinitions(l)
	if info.Capabilities.Tools {
		s.toolsRequested.Store(true) // before the first page: a change that is announced from now on concerns this list
		if e := l.FetchPages(ctx, (*conversation)(s)); e != nil {
			return ToolList{}, requiredRequestError(e)
		}
		// Listing needs large buffers, and the session may be idle for days after it.
		s.freeIdleRequests()
		s.toolHeaders.Store(&mirrors)
		s.storeTaskSupport(l.Entries)
	}
	list := before.nextList(l)
	list.Instructions = info.Instructions
	s.toolList.Store(list)
	s.memory.KeepList(l.MemoryTaken, list.Size())
	return *list, nil
}

// Size returns the bytes that the list costs its server's share of the memory.
func (t *ToolList) Size() (n int64) {
	if t == nil {
		return 0
	}
	for i := range t.all {
		n += int64(len(t.all[i].Raw)) + lists.EntryCost
	}
	return n
}
