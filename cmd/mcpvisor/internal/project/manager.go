package project

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// CloseTime bounds the end of a command's servers: two rungs of the stop ladder of at most stopGrace each, and some time for
// the processes to be reaped. The guardian ends what is left after that.
const (
	CloseTime = 2800 * time.Millisecond
	stopGrace = time.Second
)

// GuardedManager is a manager of this process together with its logger and its guardian.
type GuardedManager struct {
	*supervisor.Manager
	log *zap.Logger
	// endGuardian ends the guardian process; it does nothing if none runs.
	endGuardian func()
}

// StartManager starts the servers of cfg under a guardian: a new one, unless cfg has one already. The caller must call CloseWithin. Without a guardian it goes on and
// warns, because servers stay behind only if this process is killed.
func StartManager(ctx context.Context, o *cli.Options, cfg supervisor.Config) (*GuardedManager, error) {
	if err := ChooseStore(o, &cfg); err != nil {
		return nil, err
	}
	m := &GuardedManager{log: o.NewLogger(), endGuardian: func() {}}
	if cfg.Guard != nil {
		// The caller has one for several managers, and ends it.
	} else if g, err := guardian.Start(); err != nil {
		o.WarnFailure(fmt.Errorf("no guardian could be started: servers may stay behind if this process is killed: %w", err))
	} else {
		cfg.Guard, m.endGuardian = g, func() { g.Close() }
		if o.Prompter != nil {
			o.Prompter.Guard = g
		}
	}
	cfg.Logger = m.log
	var err error
	if m.Manager, err = supervisor.Start(ctx, cfg); err != nil {
		m.endGuardian()
		return nil, err
	}
	return m, nil
}

// CloseWithin closes the manager and returns when every server has ended or the time has passed. It uses a context of its own,
// so that it works after an interrupt.
func (m *GuardedManager) CloseWithin(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := m.Close(ctx)
	if err == nil {
		m.endGuardian() // otherwise the guardian has work to do, and does it when this process is gone
	}
	_ = m.log.Sync() // a terminal cannot be synced, and returns an error
	return err
}

// TuneShortRun adapts the servers of cfg to a command that uses them for a moment: all connect at once, and each has at most
// stopGrace to end. A person who gave --wait (wait, 0 if not) gives each attempt at least that time. It changes the map in cfg.
func TuneShortRun(cfg *supervisor.Config, wait time.Duration) {
	for name, spec := range cfg.Servers {
		spec.Connect = messages.Eager
		if spec.StopGrace <= 0 || time.Duration(spec.StopGrace) > stopGrace {
			spec.StopGrace = messages.Duration(stopGrace)
		}
		if wait > time.Duration(spec.ConnectTimeout) && (spec.ConnectTimeout > 0 || wait > actors.DefaultConnectTimeout) {
			spec.ConnectTimeout = messages.Duration(wait)
		}
		cfg.Servers[name] = spec
	}
}

// ChooseStore makes --store count. Without it the manager decides when it needs a store, by supervisor.DefaultAuthOptions: that
// function alone names the directory and the key, so that a program that embeds the manager finds the sign-ins of the command.
func ChooseStore(o *cli.Options, cfg *supervisor.Config) error {
	if o.Store == "" || o.Store == string(auth.KindAuto) {
		return nil
	}
	opts, err := supervisor.DefaultAuthOptions()
	if err != nil {
		return err
	}
	opts.Kind = auth.Kind(o.Store)
	if o.Store == cli.StorePlain {
		opts.Kind, opts.KeyFile, opts.Plain = auth.KindFiles, "", true
	}
	cfg.AuthStore, err = auth.Open(opts)
	// The locks must be those of the same directory, or two processes could renew one token at the same time.
	cfg.AuthLocks = supervisor.LocksFor(opts)
	return err
}
