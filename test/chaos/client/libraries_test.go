package client_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/mcpgo"
)

// knownOfLibraries are the cases over HTTP in which a client that stands on a library as its documentation shows does something wrong.
//
// era-flip: the server speaks the legacy era for a while, and the modern one again. Both libraries keep the session of the legacy era,
// all of whose requests are refused with 400 from then on, and neither says that it is lost. A program must dial anew by itself.
var knownOfLibraries = map[string]string{
	"gosdk/modern/era-flip": "C4", "mcpgo/modern/era-flip": "C4",
}

// TestTheLibrariesOverHTTP: every case over HTTP ends with what is known.
func TestTheLibrariesOverHTTP(t *testing.T) {
	dials := map[string]client.Dial{"gosdk": gosdk.Dial(sdkClient), "mcpgo": mcpgo.Dial()}
	for _, library := range slices.Sorted(maps.Keys(dials)) {
		for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
			for _, c := range client.Cases(messages.HTTP, era) {
				name := fmt.Sprintf("%s/%s/%s", library, era, c.Name)
				if c.Name == "huge-line" {
					continue // seconds of a processor
				}
				t.Run(name, func(t *testing.T) {
					h, verdicts := play(t, c.Day(client.Limits{}), dials[library])
					seen := ""
					for _, v := range violated(verdicts) {
						seen = v.ID
						if knownOfLibraries[name] != v.ID {
							t.Errorf("%s: %s\n%s", v.ID, v.Why, client.Exchange(h, v))
						}
					}
					if want := knownOfLibraries[name]; want != seen {
						t.Errorf("known is %q, seen is %q", want, seen)
					}
				})
			}
		}
	}
}
