package cli

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// TestTheHelpShowsFlagsThatExist checks that the flags that every help shows are flags of the program.
func TestTheHelpShowsFlagsThatExist(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	NewOptions(t.Context(), terminal.Streams{}, nil).AddFlags(flags)
	for _, name := range commonFlags {
		if flags.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}
