package lifecycle

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// BenchmarkStep measures one event: the life of a server that connects, changes its tools, is disabled and enabled,
// dies and closes, over and over, and an event that is stale.
func BenchmarkStep(b *testing.B) {
	b.Run("life", func(b *testing.B) {
		start := replay(b, "Init enabled")
		events := []Event{
			Granted{1}, Dialed{1}, Greeted{1}, Listed{1}, ToolsChanged{1}, RelistDue{1}, Listed{1}, Disable{}, Enable{},
			Lost{Epoch: 1, Cause: Cause{Class: messages.ClassExited}}, Closed{1},
		}
		b.ReportAllocs()
		for n, s := 0, start; b.Loop(); n++ {
			if n == len(events) {
				if s.Step != messages.Restarting {
					b.Fatalf("the life did not happen: %s", writeState(s))
				}
				n, s = 0, start
			}
			s, _ = Step(s, events[n])
		}
	})
	b.Run("stale", func(b *testing.B) {
		s := replay(b, "Init enabled; Granted epoch=2; Dialed epoch=2")
		var e Event = Lost{Epoch: 1, Cause: Cause{Class: messages.ClassExited}}
		b.ReportAllocs()
		for b.Loop() {
			if _, effects := Step(s, e); effects != nil {
				b.Fatal("a stale event has effects")
			}
		}
	})
}
