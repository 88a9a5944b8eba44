package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// misfit is a server that no scenario has: its specs cannot work.
const misfit = "misfit"

// impossibleSpecs are specs that cannot work, whatever the machine and the network do.
var impossibleSpecs = []messages.Spec{
	{Type: messages.Stdio},
	{Type: messages.Stdio, Command: "mcp-server", Isolation: &messages.Isolation{Network: "sometimes"}},
	{Type: messages.HTTP},
	{Type: messages.HTTP, URL: "https://"},
	{Type: messages.HTTP, URL: "ftp://misfit.sim/mcp"},
	{Type: messages.HTTP, URL: "https://misfit.sim:port/mcp"},
	{Type: messages.WebSocket, URL: "ftp://misfit.sim/mcp"},
	{Type: messages.ClaudeAIProxy, URL: "https://misfit.sim/mcp"},
	{Type: messages.HTTP, URL: "http://misfit.sim/mcp", Headers: map[string]string{"Authorization": "Bearer none"}},
	{Type: messages.HTTP, URL: "https://misfit.sim/mcp", TLS: &messages.TLS{CertFile: "/none.pem"}},
	{Type: messages.HTTP, URL: "https://misfit.sim/mcp", Isolation: &messages.Isolation{Network: "none"}},
	{Type: messages.HTTP, URL: "https://misfit.sim/mcp", Era: "ancient"},
	{Type: messages.SDK, Name: misfit, LogLevel: "loud"},
	{Type: messages.SDK, Name: misfit, Pin: "forever"},
}

// impossibleSpec returns one of them by turns, in each day from another one on.
func (p *embeddingProgram) impossibleSpec(round int) messages.Spec {
	return impossibleSpecs[(p.world.plan.Seed+uint64(round))%uint64(len(impossibleSpecs))]
}

// giveImpossible gives the manager specs that cannot work: of a server that there is and of one that there is not. Each is refused with the
// class of its fault, and changes nothing.
func (p *embeddingProgram) giveImpossible(name string, round int) {
	spec := p.impossibleSpec(round)
	for _, server := range []string{name, misfit, ""} {
		p.checkImpossible(server, p.connectServer(server, spec))
	}
	if p.world.manager.Server(misfit) != nil {
		p.world.reportBrokenPromise(misfit, "its spec was refused, and there is such a server")
	}
}

// connectServer adds a server, by message if the owner's commands come so.
func (p *embeddingProgram) connectServer(server string, spec messages.Spec) error {
	if actor := p.world.messageActor; actor != nil {
		return actor.requestDone(&messages.AddServer{Name: server, Spec: spec.ToProto()})
	}
	return p.world.manager.Connect(p.world.users.ctx, server, spec)
}

// checkImpossible judges what a spec that cannot work was answered with.
func (p *embeddingProgram) checkImpossible(server string, err error) {
	var typed *supervisor.Error
	if hasEnded(err) || errors.As(err, &typed) && (errors.Is(err, errNoReply) || typed.Class == messages.ClassConfig && typed.Server == server) {
		return
	}
	p.world.reportBrokenPromise(server, fmt.Sprintf("a spec that cannot work was answered with %v", err))
}

// configureImpossible configures a server that cannot work: it stands in the status as failed for good and is never tried, no command
// starts it, and it goes with the next configuration.
func (p *embeddingProgram) configureImpossible(ctx context.Context, spec messages.Spec) {
	m := p.world.manager
	res, err := m.Configure(ctx, map[string]messages.Spec{misfit: spec})
	if err != nil {
		return // the manager has ended
	}
	if len(res.Added) != 1 || len(res.Removed)+len(res.Adjusted) > 0 {
		p.world.reportBrokenPromise("", fmt.Sprintf("a configuration of one server more changed %+v", res))
	}
	if err := m.Settled(ctx, misfit); !hasEnded(err) {
		p.checkImpossible(misfit, err)
	}
	if st, err := m.ServerStatus(misfit); err == nil && (st.Status != messages.Failed || st.Retry != messages.RetryNever || st.Class != messages.ClassConfig || st.Attempts != 0) {
		p.world.reportBrokenPromise(misfit, "its spec cannot work, and it is "+describeStatus(&st))
	}
	p.checkImpossible(misfit, m.Reconnect(ctx, misfit))
	if err := m.Remove(ctx, misfit); !hasEnded(err) && messages.ClassOf(err) != messages.ClassInvalid {
		p.world.reportBrokenPromise(misfit, fmt.Sprintf("it is configured, and its removal was answered with %v", err))
	}
}

// withMisfit adds a server whose spec cannot work to a set of servers, and returns the check of the answer: it alone is refused, and the
// others are answered as without it.
func withMisfit(specs map[string]messages.Spec, spec messages.Spec, check func(messages.SetServersResult) string) (map[string]messages.Spec, func(messages.SetServersResult) string) {
	specs = maps.Clone(specs)
	specs[misfit] = spec
	return specs, func(got messages.SetServersResult) string {
		if text := got.Errors[misfit]; !strings.Contains(text, misfit) {
			return fmt.Sprintf("a set of servers with one that cannot work says of it %q", text)
		}
		got.Errors = maps.Clone(got.Errors)
		delete(got.Errors, misfit)
		return check(got)
	}
}
