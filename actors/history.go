package actors

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/mcpvisor/mcpvisor/messages"
)

// historySize bounds the entries of a server's history: an afternoon of failures, about 20 KB.
const historySize = 64

// Entry is one sentence about what happened to a server.
type Entry struct {
	Time  time.Time      `json:"time"`
	Epoch uint64         `json:"epoch,omitempty"`
	Phase messages.Phase `json:"phase"`
	Step  messages.Step  `json:"step,omitempty"`
	Text  string         `json:"text"`
	// Stderr is the end of the child's standard error where it explains the entry, neutralised.
	Stderr string `json:"stderr,omitempty"`
}

// ToProto returns the protobuf form of the entry.
func (e Entry) ToProto() *messages.HistoryEntry {
	return &messages.HistoryEntry{Time: timestamppb.New(e.Time), Epoch: e.Epoch, Phase: string(e.Phase), Step: string(e.Step),
		Text: e.Text, Stderr: e.Stderr}
}

// EntryFromProto returns the Go form of an entry.
func EntryFromProto(p *messages.HistoryEntry) Entry {
	return Entry{Time: p.GetTime().AsTime().Local(), Epoch: p.GetEpoch(), Phase: messages.Phase(p.GetPhase()),
		Step: messages.Step(p.GetStep()), Text: p.GetText(), Stderr: p.GetStderr()}
}

// History is the bounded history of one server. It outlives the server's actor. Safe for concurrent use.
type History struct {
	mu      sync.Mutex
	entries []Entry
}

// Add appends an entry and drops the oldest beyond the bound. An entry that repeats the last one is dropped, so that a server in a
// loop does not push out the reason.
func (h *History) Add(e Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.entries); n > 0 {
		// A server that fails in the same way again and again makes one entry per attempt, not several.
		if last := h.entries[n-1]; last.Text == e.Text && last.Epoch == e.Epoch && last.Phase == e.Phase {
			return
		}
	}
	switch n := len(h.entries); {
	case n == historySize:
		copy(h.entries, h.entries[1:])
		h.entries = h.entries[:historySize-1]
	// Most servers connect and stay: their five entries are allocated at once, and more only as they are needed.
	case n == cap(h.entries):
		h.entries = slices.Grow(h.entries, max(5, min(n, historySize-n)))
	}
	h.entries = append(h.entries, e)
}

// Entries returns a copy, oldest first.
func (h *History) Entries() []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Entry(nil), h.entries...)
}
