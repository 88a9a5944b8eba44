package client_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/client"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/gosdk"
	"github.com/mcpvisor/mcpvisor/test/chaos/client/mcpgo"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
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

// countingProgress counts the progress that a client tells of.
type countingProgress struct {
	client.Client
	count *atomic.Int32
}

// CallWithProgress implements client.ProgressCaller.
func (c countingProgress) CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	return c.Client.(client.ProgressCaller).CallWithProgress(ctx, tool, arguments, func(message string) {
		c.count.Add(1)
		progress(message)
	})
}

// TestTheLibrariesTellOfProgress: the adapters hand progress to its own call.
func TestTheLibrariesTellOfProgress(t *testing.T) {
	for name, dial := range map[string]client.Dial{"gosdk": gosdk.Dial(sdkClient), "mcpgo": mcpgo.Dial()} {
		var count atomic.Int32
		day := client.Case{Name: "endless-progress", Kind: messages.Stdio, Era: messages.EraLegacy}.Day(client.Limits{})
		_, verdicts := play(t, day, func(ctx context.Context, s *client.Server) (client.Client, error) {
			c, err := dial(ctx, s)
			return countingProgress{c, &count}, err
		})
		for _, v := range verdicts {
			if v.ID == "C11" && v.Answer != invariant.Holds {
				t.Errorf("%s: %s %s", name, v.Answer, v.Why)
			}
		}
		if count.Load() == 0 {
			t.Errorf("%s tells of no progress", name)
		}
	}
}
