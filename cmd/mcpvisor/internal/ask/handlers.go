package ask

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// SetRequestHandlers gives the manager the functions that answer requests of servers. A request kind that could not be answered
// here gets no function: the manager then does not announce the capability, and servers can do without it. configured is the
// sampling command of the configuration files, which --sampling-command overrides.
func (d *Prompter) SetRequestHandlers(cfg *supervisor.Config, flags *Flags, configured []string) {
	cfg.Ask = d.PermitCall
	if d.CanAnswer() {
		cfg.Elicit, cfg.ElicitURL = d.AnswerElicitation, true
	}
	command := flags.samplingWords
	if command == nil {
		command = configured
	}
	// A sampling command needs a consent of the person for each server, or --yes.
	if command != nil && (flags.yes || d.HasTerminal()) {
		s := &sampler{prompter: d, command: command, yes: flags.yes}
		cfg.Sample = s.answerSampling
	}
	if roots := flags.rootList; len(roots) > 0 {
		cfg.Roots = func(context.Context, string) ([]messages.Root, error) { return roots, nil }
	}
}
