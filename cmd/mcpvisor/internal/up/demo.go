package up

import (
	"context"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Demo holds the servers that up --demo connects instead of those of the project. Package main hands one to this package; a build
// without the demo hands none, and so links none of those servers.
type Demo struct {
	// Intro explains to a newcomer what is on the screen.
	Intro string
	// Servers are configured once the display runs; Config has none.
	Servers map[string]messages.Spec
	Config  supervisor.Config
	// Work uses the servers until ctx ends, and reports how each of its calls ended.
	Work func(ctx context.Context, m *supervisor.Manager, ended func(server string, o messages.Outcome))
	// Close ends what belongs to the demo besides the manager.
	Close func()
}

// demoRun returns the run of up --demo. It returns an error if the person also named servers.
func demoRun(o *cli.Options, f upFlags, makeDemo func() (Demo, error)) (*upRun, error) {
	if len(o.Configs)+len(o.Servers) > 0 {
		return nil, exit.With(exit.Usage, "--demo runs its own servers; leave out --config and --mcp-server")
	}
	demo, err := makeDemo()
	if err != nil {
		return nil, err
	}
	dir := "."
	if s, _ := project.LoadSetup(o); s != nil {
		dir = s.ProjectDir // the other commands look for the control socket of this project
	}
	return &upRun{
		options: o, flags: f, project: dir, noJournal: true,
		intro: demo.Intro, servers: demo.Servers, cfg: demo.Config, work: demo.Work, close: demo.Close,
	}, nil
}
