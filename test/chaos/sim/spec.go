package sim

import (
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// specOf returns the spec of a server, with its canary as a secret where the kind has room for one (headers, environment).
func specOf(s scenario.Server, canary string) messages.Spec {
	spec := messages.Spec{
		Type: s.Kind, Trusted: s.Trusted, Disabled: s.Disabled, Connect: s.Connect,
		ConnectTimeout: slightlyLess(s.ConnectTimeout, canary, "connect"), CallTimeout: slightlyLess(s.CallTimeout, canary, "call"),
		MaxCallTimeout: slightlyLess(s.MaxCallTimeout, canary, "longest"), IdleTimeout: slightlyLess(s.IdleTimeout, canary, "idle"),
		MaxInFlight: s.MaxInFlight, MaxQueued: s.MaxQueued, DeniedTools: s.Denied, Pin: s.Pin,
	}
	if s.NoConnectTimeout {
		spec.ConnectTimeout = 0
	}
	host, path := s.Name+".sim", "/mcp"
	if s.OneHost {
		host, path = s.Group+".sim", "/"+s.Name+"/mcp"
	}
	switch s.Kind {
	case messages.HTTP, messages.SSE, messages.ClaudeAIProxy:
		spec.URL = "https://" + host + path
		spec.Headers = map[string]string{"X-Api-Key": canary}
	case messages.WebSocket:
		spec.URL = "wss://" + host + path
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

// slightlyLess returns a limit that is up to a microsecond below the plan's. If two timers of equal length start in one
// instant, Go's scheduler decides which of them fires first; distinct limits leave only those races that the manager makes
// itself.
func slightlyLess(d time.Duration, words ...string) messages.Duration {
	if d <= 0 {
		return messages.Duration(d)
	}
	return messages.Duration(d - time.Duration(1+seedOf(words...)%997))
}

// reviseSpec returns a spec that describes the same server differently, so that the manager must reconnect.
func reviseSpec(spec messages.Spec, revision int) messages.Spec {
	text := strconv.Itoa(revision)
	switch spec.Type {
	case messages.Stdio:
		spec.Args = []string{spec.Args[0], spec.Args[1], "--revision", text}
	// Only the message limit of an in-process server affects its connection.
	case messages.SDK:
		spec.MaxMessage = int64(16<<20 + revision)
	default:
		spec.URL += "?revision=" + text
	}
	return spec
}
