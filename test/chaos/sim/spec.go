package sim

import (
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// specOf is what the manager is told of a server. Each has a secret of its own, where its kind has room for one.
func specOf(s scenario.Server, canary string) messages.Spec {
	spec := messages.Spec{
		Type: s.Kind, Trusted: s.Trusted, Disabled: s.Disabled, Connect: s.Connect,
		ConnectTimeout: slightlyLess(s.ConnectTimeout, canary, "connect"), CallTimeout: slightlyLess(s.CallTimeout, canary, "call"),
		MaxCallTimeout: slightlyLess(s.MaxCallTimeout, canary, "longest"), IdleTimeout: slightlyLess(s.IdleTimeout, canary, "idle"),
		MaxInFlight: s.MaxInFlight, MaxQueued: s.MaxQueued, DeniedTools: s.Denied,
	}
	switch s.Kind {
	case messages.HTTP, messages.SSE, messages.ClaudeAIProxy:
		spec.URL = "https://" + s.Name + ".sim/mcp"
		spec.Headers = map[string]string{"X-Api-Key": canary}
	case messages.WebSocket:
		spec.URL = "wss://" + s.Name + ".sim/mcp"
		spec.Headers = map[string]string{"X-Api-Key": canary}
	case messages.SDK:
		spec.Name = s.Name
	default:
		spec.Type = messages.Stdio
		spec.Command, spec.Args = "mcp-server", []string{"--name", s.Name}
		spec.Env = map[string]string{"API_TOKEN": canary}
	}
	return spec
}

// slightlyLess is a bound that is some nanoseconds below the one of the plan. Two clocks that are started in one instant and
// ring in one are a race that Go decides by chance; so only those meet that the manager itself makes equal.
func slightlyLess(d time.Duration, words ...string) messages.Duration {
	if d <= 0 {
		return messages.Duration(d)
	}
	return messages.Duration(d - time.Duration(1+seedOf(words...)%997))
}

// reviseSpec is another description of the same server.
func reviseSpec(spec messages.Spec, revision int) messages.Spec {
	text := strconv.Itoa(revision)
	switch spec.Type {
	case messages.Stdio:
		spec.Args = []string{spec.Args[0], spec.Args[1], "--revision", text}
	case messages.SDK: // there is nothing else to say about one that its connection depends on
		spec.MaxMessage = int64(16<<20 + revision)
	default:
		spec.URL += "?revision=" + text
	}
	return spec
}
