package pins

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/formtest"
)

// The golden file has every member of the form that is written.
func TestTheGoldenPinsAreWhole(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "pins_v2.json"))
	if err != nil {
		t.Fatal(err)
	}
	formtest.Check(t, file{}, golden)
}
