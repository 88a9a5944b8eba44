package stdio

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/process"
)

// Capabilities returns what this machine can keep a server from. Only a try shows whether a network of its own can be made: a
// process is started for it, once, and the answer is kept for the life of this process.
func Capabilities(ctx context.Context) isolation.Capabilities { return process.FindCapabilities(ctx) }

// CapabilitiesFor returns the Capabilities that matter for want. It starts the trial process only if want needs the answer.
func CapabilitiesFor(ctx context.Context, want messages.Isolation) isolation.Capabilities {
	return process.FindCapabilitiesFor(ctx, want)
}
