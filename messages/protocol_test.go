package messages_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestTheProtocolOfASpecTravels: what a spec says of the protocol arrives with the message, and counts for Equal; the era
// auto is the one that is not written.
func TestTheProtocolOfASpecTravels(t *testing.T) {
	s := messages.Spec{Command: "x", Era: messages.EraLegacy, LogLevel: "debug",
		MaxCallTimeout: messages.Duration(time.Hour), Scope: messages.ScopeRuntime}
	if got := s.ToProto().ToSpec(); !got.Equal(s) || got.Era != s.Era || got.LogLevel != s.LogLevel || got.MaxCallTimeout != s.MaxCallTimeout {
		t.Errorf("%+v", got)
	}
	for _, other := range []messages.Spec{
		{Command: "x", LogLevel: "debug", MaxCallTimeout: s.MaxCallTimeout},
		{Command: "x", Era: s.Era, MaxCallTimeout: s.MaxCallTimeout},
		{Command: "x", Era: s.Era, LogLevel: "debug"},
	} {
		if s.Equal(other) {
			t.Errorf("equal to %+v", other)
		}
	}
	if !(messages.Spec{Command: "x", Era: messages.EraAutoWord}).Equal(messages.Spec{Command: "x"}) {
		t.Error("auto is not the default")
	}
	if p := (messages.Status{Era: messages.EraModern, ProtocolVersion: "2026-07-28"}).ToProto(); p.GetEra() != "modern" ||
		p.GetProtocolVersion() != "2026-07-28" {
		t.Errorf("%v", p)
	}
}

func TestFailuresOfSeveralServers(t *testing.T) {
	a, b := &messages.Error{Server: "a", Text: "x"}, &messages.Error{Server: "b", Text: "y"}
	for _, c := range []struct {
		err  error
		want []string
	}{{nil, nil}, {a, []string{"a"}}, {errors.Join(a, b), []string{"a", "b"}}} {
		got := messages.FailuresOf(c.err)
		if len(got) != len(c.want) {
			t.Errorf("%v: %v", c.err, got)
			continue
		}
		for i, f := range got {
			if f.GetServer() != c.want[i] {
				t.Errorf("%v: %v", c.err, got)
			}
		}
	}
}
