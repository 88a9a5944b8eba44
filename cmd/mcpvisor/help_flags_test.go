package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestTheHelpShowsFlagsThatExist checks that the flags that every help shows are flags of the program.
func TestTheHelpShowsFlagsThatExist(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	newOptions(t.Context(), streams{}, nil).addFlags(flags)
	for _, name := range commonFlags {
		if flags.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}
