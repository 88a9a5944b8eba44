package supervision_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// TestAHashTakesOneAllocation: the text of the hash; the canonical form of the arguments is written into a buffer that is used again.
// It stands here because the race detector, under which the library's tests run, drops what a pool keeps.
func TestAHashTakesOneAllocation(t *testing.T) {
	args := []byte(`{"path":"notes/2026/november.md","limit":100,"deep":{"b":[1,2],"a":"x\ny"}}`)
	var r audit.Record
	if n := testing.AllocsPerRun(200, func() { audit.Hash.AddTo(&r, args, nil) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	if r.ArgsSHA256 == "" {
		t.Error("nothing was hashed")
	}
}
