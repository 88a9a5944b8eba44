package catalog

import (
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// filling has the announcements of so many servers: 10,000 tools together, the same number from each server.
func filling(servers int) []Change {
	changes := make([]Change, servers)
	for i := range changes {
		list := make([]messages.Tool, 10_000/servers)
		for j := range list {
			list[j] = messages.Tool{
				Name: fmt.Sprintf("tool_%03d", j), Description: "does something",
				InputSchema: []byte(`{"type":"object","properties":{}}`),
			}
		}
		changes[i] = Change{Kind: Announce, Server: fmt.Sprintf("server-%04d", i), Epoch: uint64(i + 1), Rev: 1,
			Tools: list, Route: i}
	}
	return changes
}

func filled(servers int) *Snapshot {
	s, _ := Empty(messages.Naming{}).Apply(filling(servers)...)
	return s
}

func BenchmarkApply(b *testing.B) {
	for _, servers := range []int{100, 5000} {
		s := filled(servers)
		id := fmt.Sprintf("server-%04d", servers/2)
		var list []messages.Tool
		for _, e := range s.Server(id) {
			list = append(list, *e.Tool)
		}
		same := Change{Kind: Announce, Server: id, Epoch: 1 << 20, Rev: 1, Tools: list, Route: "new"}
		b.Run(fmt.Sprintf("one of %d servers reconnects", servers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(same)
			}
		})
		b.Run(fmt.Sprintf("one of %d servers is withdrawn", servers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(Change{Kind: Withdraw, Server: id, Epoch: 1 << 20})
			}
		})
		b.Run(fmt.Sprintf("one of %d servers says the same again", servers), func(b *testing.B) {
			second := same
			second.Epoch, second.Rev, second.Route = s.Server(id)[0].Epoch, 2, s.Server(id)[0].Route
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(second)
			}
		})
	}
	b.Run("5000 servers at once", func(b *testing.B) {
		changes := filling(5000)
		b.ReportAllocs()
		for b.Loop() {
			Empty(messages.Naming{}).Apply(changes...)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	s := filled(5000)
	b.Run("by name", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := s.Lookup("mcp__server-2500__tool_001"); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("by server and tool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := s.LookupTool("server-2500", "tool_001"); !ok {
				b.Fatal("not found")
			}
		}
	})
}

func BenchmarkDiff(b *testing.B) {
	s := filled(5000)
	next, _ := s.Apply(Change{Kind: Withdraw, Server: "server-2500", Epoch: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		if len(Diff(s, next).Removed) != 2 {
			b.Fatal("wrong")
		}
	}
}
