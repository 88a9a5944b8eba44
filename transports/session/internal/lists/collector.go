package lists

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/memory"
)

const (
	// maxListBytes bounds the bytes of all pages of one list, because the list keeps them: MaxPages pages of the
	// largest message would be too much.
	maxListBytes = 256 << 20
	// maxCursor bounds the cursor that is sent back, in bytes.
	maxCursor = 64 << 10
	// maxFresh bounds the time for which a list may call itself fresh.
	maxFresh = 24 * time.Hour
)

// A Kind describes one of the lists that a server can have. It is shared by all sessions and never changed.
type Kind[T any] struct {
	// Method is the request for a page, Member the member of its result that holds the entries.
	Method, Member string
	// Singular and Plural name the entries in error texts.
	Singular, Plural string
	// Read reads one entry. key must be unique in the list and is set as far as it is known; reason says why the
	// entry cannot be used, empty if it can.
	Read func(raw []byte) (entry T, key, reason string)
	// Unique is the name of the key in texts: name, URI, id.
	Unique string
	// optional is true if a server without the method counts as one with an empty list.
	optional bool
}

// A PageSource asks the server for the pages of its lists.
type PageSource interface {
	// RequestPage sends one request with these members of params, without braces, and returns the result object.
	RequestPage(ctx context.Context, method string, params []byte) ([]byte, *messages.Error)
}

// Limits bound what a server can make a session hold with one list.
type Limits struct {
	// Memory is the account for the entries that are kept.
	Memory               *memory.Account
	MaxPages, MaxEntries int
}

// A Collector reads all pages of one list. One goroutine uses it, once.
type Collector[T any] struct {
	kind        *Kind[T]
	limits      Limits
	names       map[string]struct{} // the keys that were taken
	cursors     map[string]struct{} // as they stood in the JSON
	bytes       int                 // of all pages, for maxListBytes
	entriesSeen int                 // all elements, the unusable ones too
	cost        int64               // bytes of the entries that are kept, without those that an earlier list keeps
	MemoryTaken int64               // bytes reserved in Limits.Memory
	firstPage   []byte              // the array of the first page

	Entries     []T
	Quarantined []messages.QuarantinedTool
	// Check says why an entry that could be read cannot be used all the same, empty if it can; nil accepts all.
	Check func(entry T) (reason string)
	// KeepsDefinitions makes the collector keep the definitions, which ContentHash needs.
	KeepsDefinitions bool
	definitions      []definition
	// findKnown finds an entry of an earlier list that was read from the same bytes; nil if there is no earlier list.
	// An entry that it does not find is read from a copy of its bytes: otherwise one new entry would keep its whole
	// page alive, while the other entries of the page live elsewhere.
	findKnown func(raw []byte) (entry T, key string, ok bool)
	// newCount counts the entries that findKnown did not find.
	newCount int
	// freshUntil is the earliest time at which one of the pages stops being fresh, by the server's word; public is
	// true if every page said that it may be shared.
	freshUntil time.Time
	Public     bool
}

// A definition is one element of the list: its bytes, and why it cannot be used, empty if it can.
type definition struct {
	raw    []byte
	reason string
}

// NewCollector returns an empty collector.
func NewCollector[T any](k *Kind[T], limits Limits) *Collector[T] {
	return &Collector[T]{
		kind: k, limits: limits, names: make(map[string]struct{}), cursors: make(map[string]struct{}), Public: true,
	}
}

// FetchPages asks for all pages. An error has its outcome; the memory that was reserved is given back then.
//
// 2025-11-25, Pagination: "Clients MUST treat cursors as opaque tokens: Don't make assumptions about cursor format;
// Don't attempt to parse or modify cursors; Don't persist cursors across sessions".
func (l *Collector[T]) FetchPages(ctx context.Context, source PageSource) (failed *messages.Error) {
	// After success the memory belongs to the caller, which keeps or releases it.
	defer func() {
		if failed != nil {
			l.limits.Memory.Release(l.MemoryTaken)
			l.MemoryTaken = 0
		}
	}()
	var params []byte
	for range l.limits.MaxPages {
		raw, e := source.RequestPage(ctx, l.kind.Method, params)
		if e != nil && l.kind.optional && e.Code == jsonrpc.CodeMethodNotFound {
			return nil
		}
		if e != nil {
			return e
		}
		next, problem := l.addPage(raw, time.Now())
		if problem != "" {
			return l.listError(problem)
		}
		if e := l.reserveMemory(); e != nil {
			return e
		}
		if next == nil {
			return nil
		}
		// The cursor goes back as the bytes that came, quotes and escapes included.
		params = append([]byte(`"cursor":`), next...)
	}
	return l.listError(fmt.Sprintf("has more than %d pages", l.limits.MaxPages))
}

// listError returns the error of a list that is unusable as a whole.
func (l *Collector[T]) listError(problem string) *messages.Error {
	return &messages.Error{
		Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol,
		Text: "the server's " + l.kind.Singular + " list " + problem,
	}
}

// addPage adds one page, which came at the time now. next is the cursor of the next page as it stood in the JSON, nil
// if this was the last; problem says why the whole list is unusable, "" if it is not.
func (l *Collector[T]) addPage(raw []byte, now time.Time) (next []byte, problem string) {
	if l.bytes += len(raw); l.bytes > maxListBytes {
		return nil, fmt.Sprintf("is larger than %d MiB", maxListBytes>>20)
	}
	var entries, ttl, scope []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case l.kind.Member:
			entries = value
		case "nextCursor":
			next = value
		case "ttlMs":
			ttl = value
		case "cacheScope":
			scope = value
		}
	}
	switch {
	// A page without the array is no page: treating it as empty would hide all tools of a broken server.
	case !rawjson.IsArray(entries):
		return nil, "has a page without an array of " + l.kind.Plural
	case rawjson.IsNull(next):
		next = nil
	case !rawjson.IsText(next):
		return nil, "has a cursor that is not a string"
	case len(next) > maxCursor:
		return nil, fmt.Sprintf("has a cursor of more than %d KiB", maxCursor>>10)
	}
	l.noteFreshness(ttl, scope, now)
	// The first page is kept for emptyCursorMeansEnd only.
	if l.firstPage == nil {
		l.firstPage = entries
	} else if l.emptyCursorMeansEnd(entries, next) {
		return nil, ""
	}
	if next != nil {
		// Cursors are opaque, so a repetition of the same cursor is the only sign of an endless list.
		if _, seenBefore := l.cursors[string(next)]; seenBefore {
			return nil, "has pages that repeat: a cursor came twice"
		}
		l.cursors[string(next)] = struct{}{}
	}
	return next, l.addEntries(entries)
}

// noteFreshness records until when a page is fresh. A page that does not say is stale at once.
//
// 2026-07-28, Caching: "Each page response carries its own ttlMs value. The freshness clock for each page starts at
// the time that page was received." "If ttlMs is absent, clients SHOULD assume a default of 0 (immediately stale)";
// "If ttlMs is negative, clients SHOULD ignore it and treat it as 0."
func (l *Collector[T]) noteFreshness(ttl, scope []byte, now time.Time) {
	until := now
	if ms, err := strconv.ParseFloat(string(ttl), 64); err == nil && ms > 0 {
		until = now.Add(time.Duration(min(ms, float64(maxFresh.Milliseconds()))) * time.Millisecond)
	}
	if l.firstPage == nil || until.Before(l.freshUntil) {
		l.freshUntil = until
	}
	text, _ := rawjson.Text(scope)
	l.Public = l.Public && text == "public"
}

// emptyCursorMeansEnd recognises a server that writes an empty cursor where it means that there is no next page. An
// empty string is a valid cursor, and it is followed; but if it leads to the first page again, byte for byte, with
// the same empty cursor, the list was complete.
func (l *Collector[T]) emptyCursorMeansEnd(entries, next []byte) bool {
	_, followed := l.cursors[`""`]
	return followed && len(l.cursors) == 1 && string(next) == `""` && bytes.Equal(entries, l.firstPage)
}

// addEntries adds the definitions of one page. One that cannot be used is quarantined with its reason and does not
// spoil the others.
func (l *Collector[T]) addEntries(entries []byte) (problem string) {
	elements := rawjson.ArrayAt(entries, 0, 0)
	for elements.Next() {
		raw := elements.Skip()
		if l.entriesSeen++; l.entriesSeen > l.limits.MaxEntries {
			return fmt.Sprintf("has more than %d %s", l.limits.MaxEntries, l.kind.Plural)
		}
		fresh := l.newCount
		// The reasons are collected in a fixed order, so that the same definition always gets the same one.
		entry, key, reason := l.readEntry(raw)
		// An entry that shares the memory of an earlier list is already paid for.
		if l.findKnown == nil || l.newCount > fresh {
			l.cost += int64(len(raw)) + EntryCost
		}
		if reason == "" {
			if _, duplicate := l.names[key]; duplicate {
				reason = "the " + l.kind.Unique + " is in the list twice; the first definition is used"
			}
		}
		// check runs only on an entry that would be used, so it may have side effects for that one.
		if reason == "" && l.Check != nil {
			reason = l.Check(entry)
		}
		if l.KeepsDefinitions {
			l.definitions = append(l.definitions, definition{raw, reason})
		}
		if reason != "" {
			// The name goes into a status, so it is neutralised; a definition without one is named by its position.
			name := messages.Line(key, 128)
			if name == "" {
				name = fmt.Sprintf("(%s %d of the list)", l.kind.Singular, l.entriesSeen)
			}
			l.Quarantined = append(l.Quarantined, messages.QuarantinedTool{Name: name, Reason: reason})
			continue
		}
		l.names[key] = struct{}{}
		l.Entries = append(l.Entries, entry)
	}
	return ""
}

// readEntry returns the entry that the bytes stand for: that of the earlier list if the bytes are the same.
func (l *Collector[T]) readEntry(raw []byte) (entry T, key, reason string) {
	if l.findKnown == nil {
		return l.kind.Read(raw)
	}
	entry, key, ok := l.findKnown(raw)
	if !ok {
		l.newCount++
		entry, key, reason = l.kind.Read(bytes.Clone(raw))
	}
	return entry, key, reason
}

// ContentHash returns a digest that is equal for two lists with the same definitions in any order. It covers the
// reasons too, because the order decides which of two definitions with one name is used.
func (l *Collector[T]) ContentHash() [sha256.Size]byte {
	digests := make([][sha256.Size]byte, len(l.definitions))
	one := sha256.New()
	for i, d := range l.definitions {
		one.Reset()
		one.Write([]byte(d.reason + "\n"))
		one.Write(d.raw)
		one.Sum(digests[i][:0])
	}
	// Sorting the digests makes the order of the list irrelevant.
	slices.SortFunc(digests, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	for _, d := range digests {
		all.Write(d[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// EntryCost is the cost of one entry of a list besides its bytes, in bytes: the parsed entry and its place in maps.
// It is an estimate.
const EntryCost = 512

// reserveMemory reserves the memory of the entries of the newest page. A list that the share has no room for is an
// error; FetchPages then gives back the memory of the earlier pages.
func (l *Collector[T]) reserveMemory() *messages.Error {
	err := l.limits.Memory.Reserve(l.cost - l.MemoryTaken)
	if err == nil {
		l.MemoryTaken = l.cost
		return nil
	}
	return &messages.Error{
		Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted, Err: err,
		Text: "the server's " + l.kind.Singular + " list was refused, because it holds its share of the memory for all servers: " + err.Error(),
		Fix:  "raise the memory budget, or have the server list less",
	}
}
