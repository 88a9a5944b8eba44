package allocations_test

import (
	"encoding/json"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// TestWhatARecordAllocates: the record of a call costs its caller the text of its hash.
func TestWhatARecordAllocates(t *testing.T) {
	l := audit.New(discard{}, audit.Options{})
	defer l.Close(t.Context())
	args := json.RawMessage(`{"path": "docs/notes.md", "limit": 100, "filter": "a few \"words\""}`)
	if n := testing.AllocsPerRun(1000, func() {
		r := audit.Record{Kind: audit.KindCall, Server: "files", Tool: "read", Outcome: messages.OutcomeResult, Millis: 1.5}
		audit.Hash.AddTo(&r, args, nil)
		l.Add(r)
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
