package discover

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/formtest"
)

// The golden file has every member of the form that is written.
func TestTheGoldenApprovalsAreWhole(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "approvals_v2.json"))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Check(t, approvalStore{}, golden)
}
