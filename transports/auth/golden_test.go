package auth

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/formtest"
)

// The golden headers have every member of the form that is written.
func TestTheGoldenHeadersAreWhole(t *testing.T) {
	var golden [][]byte
	for _, kind := range []string{"passphrase", "file", "plain"} {
		text, err := os.ReadFile(filepath.Join("testdata", "store1", kind, "store.json"))
		if err != nil {
			t.Fatal(err)
		}
		golden = append(golden, text)
	}
	formtest.Check(t, storeHeader{}, golden...)
}
