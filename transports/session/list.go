package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ToolList is what a server offers.
type ToolList struct {
	// Tools are in the server's order, without a Server; each name stands once.
	Tools []messages.Tool
	// Quarantined are the tools that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Hash is equal for two lists with the same definitions in whatever order: a re-list that changed nothing.
	Hash [sha256.Size]byte
}

const (
	// maxListBytes bounds all pages of one list, because the list keeps them: 1,000 pages of 16 MiB are too much.
	maxListBytes = 256 << 20
	// maxCursor bounds the cursor that we send back.
	maxCursor = 64 << 10
)

// ListTools asks for all pages of the tool list. A server that declares no tools has an empty list and is not asked.
//
// One tool that cannot be used does not spoil the list: it is quarantined. A list that cannot be read as a whole, or
// whose pages never end, is an error of ClassProtocol; nothing of it should be used then.
func (s *Session) ListTools(ctx context.Context) (ToolList, error) {
	if e := s.ended("read"); e != nil {
		return ToolList{}, e
	}
	info := s.info.Load()
	if info == nil {
		return ToolList{}, &messages.Error{
			Op: "read", Class: messages.ClassInvalid, Text: "the tools were asked for before the handshake",
		}
	}
	l := newListing(s.cfg.MaxTools)
	if !info.Capabilities.Tools {
		return l.result(), nil
	}
	if s.mirrors() {
		l.mirrors = make(map[string]mirror)
	}
	var params []byte
	for range s.cfg.MaxPages {
		raw, e := s.ask(ctx, "read", "tools/list", params)
		if e != nil {
			return ToolList{}, e
		}
		next, wrong := l.page(raw)
		if wrong != "" {
			return ToolList{}, badList(wrong)
		}
		if next == nil {
			s.mirrored.Store(&l.mirrors)
			return l.result(), nil
		}
		params = append([]byte(`"cursor":`), next...)
	}
	return ToolList{}, badList(fmt.Sprintf("has more than %d pages", s.cfg.MaxPages))
}

func badList(wrong string) *messages.Error {
	return &messages.Error{Op: "read", Class: messages.ClassProtocol, Text: "the server's tool list " + wrong}
}

// listing collects the pages of one list.
type listing struct {
	maxTools int
	names    map[string]struct{}
	cursors  map[string]struct{} // as they stood in the JSON
	digests  [][sha256.Size]byte
	bytes    int
	seen     int // definitions
	first    []byte
	// mirrors are those of the tools that have some; nil where nothing is mirrored, and the annotations are ignored.
	mirrors map[string]mirror
	list    ToolList
}

func newListing(maxTools int) *listing {
	return &listing{maxTools: maxTools, names: make(map[string]struct{}), cursors: make(map[string]struct{})}
}

// page adds the result of one tools/list. next is the cursor of the next page as it stood in the JSON, nil if this
// was the last. wrong says what makes the whole list unusable.
func (l *listing) page(raw []byte) (next []byte, wrong string) {
	if l.bytes += len(raw); l.bytes > maxListBytes {
		return nil, fmt.Sprintf("is larger than %d MiB", maxListBytes>>20)
	}
	var tools []byte
	m := objectAt(raw, 0, 0)
	for m.next() {
		value := m.skip()
		switch string(m.key) {
		case "tools":
			tools = value
		case "nextCursor":
			next = value
		}
	}
	switch {
	case !isArray(tools):
		return nil, "has a page without an array of tools"
	case isNull(next):
		next = nil
	case !isString(next):
		return nil, "has a cursor that is not a string"
	case len(next) > maxCursor:
		return nil, fmt.Sprintf("has a cursor of more than %d KiB", maxCursor>>10)
	}
	if l.first == nil {
		l.first = tools
	} else if l.emptyCursorMeansEnd(tools, next) {
		return nil, ""
	}
	if next != nil {
		// Pagination: clients must treat cursors as opaque tokens, so that all there is to see is the same one again.
		if _, again := l.cursors[string(next)]; again {
			return nil, "has pages that repeat: a cursor came twice"
		}
		l.cursors[string(next)] = struct{}{}
	}
	return next, l.add(tools)
}

// emptyCursorMeansEnd recognises a server that writes an empty cursor where it means that there is no next page. An
// empty string is a valid cursor, and it is followed; but if it leads to the first page again, byte for byte, with the
// same empty cursor, the list was complete.
func (l *listing) emptyCursorMeansEnd(tools, next []byte) bool {
	_, followed := l.cursors[`""`]
	return followed && len(l.cursors) == 1 && string(next) == `""` && bytes.Equal(tools, l.first)
}

// add takes the definitions of one page.
func (l *listing) add(tools []byte) (wrong string) {
	elements := arrayAt(tools, 0, 0)
	digest := sha256.New()
	for elements.next() {
		raw := elements.skip()
		if l.seen++; l.seen > l.maxTools {
			return fmt.Sprintf("has more than %d tools", l.maxTools)
		}
		tool, reason := readTool(raw)
		if reason == "" {
			if _, twice := l.names[tool.Name]; twice {
				reason = "the name is in the list twice; the first definition is used"
			}
		}
		if reason == "" && l.mirrors != nil {
			var m mirror
			if m, reason = mirrorOf(tool.InputSchema); len(m) > 0 {
				l.mirrors[tool.Name] = m
			}
		}
		// The digest covers the verdict too: which of two definitions with one name is used depends on their order.
		digest.Reset()
		digest.Write([]byte(reason + "\n"))
		digest.Write(raw)
		l.digests = append(l.digests, [sha256.Size]byte{})
		digest.Sum(l.digests[len(l.digests)-1][:0])
		if reason != "" {
			name := messages.Line(tool.Name, 128)
			if name == "" {
				name = fmt.Sprintf("(tool %d of the list)", l.seen)
			}
			l.list.Quarantined = append(l.list.Quarantined, messages.QuarantinedTool{Name: name, Reason: reason})
			continue
		}
		l.names[tool.Name] = struct{}{}
		l.list.Tools = append(l.list.Tools, tool)
	}
	return ""
}

// result is the finished list.
func (l *listing) result() ToolList {
	slices.SortFunc(l.digests, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	all := sha256.New()
	for _, d := range l.digests {
		all.Write(d[:])
	}
	l.list.Hash = [sha256.Size]byte(all.Sum(nil))
	return l.list
}
