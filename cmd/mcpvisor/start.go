package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// closeTime bounds the end of the servers of a command that is done: the stop ladder of two rungs of at most stopGrace
// each, and a little for the processes to be reaped. What is left then, the guardian ends.
const (
	closeTime = 2800 * time.Millisecond
	stopGrace = time.Second
)

// guardedManager is a manager of this process with all that belongs to it.
type guardedManager struct {
	*supervisor.Manager
	log *zap.Logger
	// endGuardian ends the guardian.
	endGuardian func()
}

// startManager starts the servers of cfg under a guardian. Close the result.
func startManager(ctx context.Context, o *options, cfg supervisor.Config) (*guardedManager, error) {
	if err := o.chooseStore(&cfg); err != nil {
		return nil, err
	}
	m := &guardedManager{log: o.newLogger(), endGuardian: func() {}}
	if g, err := startGuardian(); err != nil {
		o.warnFailure(fmt.Errorf("no guardian could be started: servers may stay behind if this process is killed: %w", err))
	} else {
		cfg.Guard, m.endGuardian = g, func() { g.Close() }
		if o.prompter != nil {
			o.prompter.guard = g
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

// closeWithin closes the manager and returns when every server has ended, or the time has passed. It works after an interrupt
// too.
func (m *guardedManager) closeWithin(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := m.Close(ctx)
	if err == nil {
		m.endGuardian() // otherwise it has work to do, and begins when this process is gone
	}
	_ = m.log.Sync() // a terminal cannot be synced, and says so
	return err
}

// tuneShortRun makes the servers of cfg fit for a command that only looks at them for a moment: all are dialled at once, and
// have less time to say good-bye. Those that are given a time to connect, wait, have all of it for one attempt.
func tuneShortRun(cfg *supervisor.Config, wait time.Duration) {
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

// interruptedError is the error of a command whose person pressed Ctrl-C; nil if nobody did.
func interruptedError(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return &exitError{exitInterrupted, "interrupted"}
	}
	return nil
}
