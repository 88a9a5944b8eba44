package sim

import (
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// specOf is what the manager is told of a server. Each has a secret of its own, where its kind has room for one.
func specOf(s scenario.Server, canary string) messages.Spec {
	spec := messages.Spec{
		Type: s.Kind, Trusted: s.Trusted, Disabled: s.Disabled, Connect: s.Connect,
		ConnectTimeout: messages.Duration(s.ConnectTimeout), CallTimeout: messages.Duration(s.CallTimeout),
		IdleTimeout: messages.Duration(s.IdleTimeout),
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

// revised is another description of the same server.
func revised(spec messages.Spec, revision int) messages.Spec {
	text := strconv.Itoa(revision)
	switch spec.Type {
	case messages.Stdio:
		spec.Args = []string{spec.Args[0], spec.Args[1], "--revision", text}
	case messages.SDK: // there is nothing else to say about one
		spec.StopGrace = messages.Duration(5e9 + revision)
	default:
		spec.URL += "?revision=" + text
	}
	return spec
}
