package live

import (
	"context"
	"math/rand/v2"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// start starts the manager with every server of the plan, added at runtime, and begins to record what it says.
func (r *run) start(ctx context.Context) error {
	// Calls and commands end with the run, and not with ctx: the manager is closed in order after it.
	working, cancel := context.WithCancel(context.Background())
	r.driver.ctx, r.driver.cancel = working, cancel //nolint:fatcontext // set once, before anybody reads it
	r.driver.wishes, r.driver.respecs, r.driver.adjusted = map[string]wish{}, map[string]int{}, map[string][]map[string]string{}
	draw := rand.New(rand.NewPCG(r.plan.Seed, 0)) //nolint:gosec // jitter
	m, err := supervisor.Start(ctx, supervisor.Config{
		Logger:        zap.New(newLogObserver(r.secrets, r.record)),
		Guard:         r.o.Guard,
		AuthProvider:  r.authorizer,
		Restart:       r.plan.Policy,
		Gate:          r.plan.Limits,
		WithdrawAfter: r.plan.WithdrawAfter,
		CallWait:      r.plan.CallWait,
		Rand:          draw.Float64,
		Timing: actors.Timing{
			Quiet: r.plan.Quiet, MaxWait: r.plan.MaxWait,
			ProbeEvery: r.plan.ProbeEvery, ProbeTimeout: r.plan.ProbeTimeout, ProbeStrikes: r.plan.ProbeStrikes,
		},
	})
	if err != nil {
		return &Error{Text: "the manager does not start: " + err.Error(), Err: err}
	}
	r.manager = m
	go r.watch(m.Watch(watchBuffer))
	if _, err := m.SetServers(ctx, r.specs()); err != nil {
		return &Error{Text: "the manager does not take the servers: " + err.Error(), Err: err}
	}
	return nil
}

// specs are those of all servers that were not removed.
func (r *run) specs() map[string]messages.Spec {
	all := map[string]messages.Spec{}
	for name := range r.seats {
		if r.driver.wishOf(name) != removed {
			all[name] = r.spec(name)
		}
	}
	return all
}

// spec is how the manager reaches a server now.
func (r *run) spec(name string) messages.Spec {
	s := r.seats[name]
	spec, of := s.door.spec(), s.plan
	r.driver.mu.Lock()
	defer r.driver.mu.Unlock()
	for _, with := range r.driver.adjusted[name] {
		of = of.Adjusted(with)
	}
	spec.Trusted, spec.Disabled, spec.Connect = of.Trusted, of.Disabled, of.Connect
	spec.ConnectTimeout = messages.Duration(of.ConnectTimeout)
	spec.CallTimeout = messages.Duration(of.CallTimeout)
	spec.MaxCallTimeout, spec.IdleTimeout = messages.Duration(of.MaxCallTimeout), messages.Duration(of.IdleTimeout)
	spec.MaxInFlight, spec.MaxQueued, spec.DeniedTools = of.MaxInFlight, of.MaxQueued, of.Denied
	if id := r.driver.respecs[name]; id > 0 { // another description of the same server, which its connection depends on
		spec.MaxMessage = int64(16<<20 + id)
	}
	return spec
}
