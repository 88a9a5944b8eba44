package live

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// startManager starts the manager, adds every server of the plan at runtime, and begins to record the manager's events.
func (r *run) startManager(ctx context.Context) error {
	// Calls and commands end with the run, and not with ctx: the manager is closed in order after it.
	working, cancel := context.WithCancel(context.Background())
	r.driver.ctx, r.driver.cancel = working, cancel //nolint:fatcontext // set once, before a goroutine reads it
	r.driver.wantedStates, r.driver.respecCommands, r.driver.adjustments = map[string]wantedState{}, map[string]int{}, map[string][]map[string]string{}
	// The supervisor's goroutine alone calls Rand, so that the generator needs no lock.
	draw := rand.New(rand.NewPCG(r.plan.Seed, 0)) //nolint:gosec // jitter
	var store *pins.Store
	if r.plan.Scenario.Manager.Pins {
		var err error
		if store, err = pins.Open(""); err != nil {
			return &Error{Text: "no memory of definitions can be made: " + err.Error(), Err: err}
		}
	}
	cfg := supervisor.Config{
		Pins:          store,
		Logger:        zap.New(newLogObserver(r.secrets, r.recordEvent)),
		Guard:         r.options.Guard,
		AuthProvider:  r.authorizerFor,
		Restart:       r.plan.Policy,
		Gate:          r.plan.Limits,
		WithdrawAfter: r.plan.WithdrawAfter,
		CallWait:      r.plan.CallWait,
		Rand:          draw.Float64,
		Timing: actors.Timing{
			Quiet: r.plan.Quiet, MaxWait: r.plan.MaxWait,
			ProbeEvery: r.plan.ProbeEvery, ProbeTimeout: r.plan.ProbeTimeout, ProbeStrikes: r.plan.ProbeStrikes,
		},
	}
	if len(r.plan.Agents) > 0 {
		// Where nobody knows whose question it is, the program that embeds the manager answers for the roots.
		cfg.Roots = func(_ context.Context, server string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///" + server, Name: "work"}}, nil
		}
		gateway.PassQuestions(&cfg)
	}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return &Error{Text: "the manager does not start: " + err.Error(), Err: err}
	}
	r.manager = m
	// The watcher exists before the first server does, so that the record has every event.
	go r.watchEvents(m.Watch(watchBuffer))
	if _, err := m.SetServers(ctx, r.wantedSpecs()); err != nil {
		return &Error{Text: "the manager does not take the servers: " + err.Error(), Err: err}
	}
	return nil
}

// wantedSpecs returns the specs of the servers that the owner has not removed.
func (r *run) wantedSpecs() map[string]messages.Spec {
	all := map[string]messages.Spec{}
	for _, srv := range r.plan.Servers {
		if r.driver.wantedStateOf(srv.Name) != wantRemoved {
			all[srv.Name] = r.serverSpec(srv.Name)
		}
	}
	return all
}

// describedServer is a server of the plan as the owner has described it since.
func (r *run) describedServer(name string) scenario.Server {
	r.driver.mu.Lock()
	defer r.driver.mu.Unlock()
	s := r.servers.Server(name).Plan()
	for _, fields := range r.driver.adjustments[name] {
		s = s.Adjusted(fields)
	}
	return s
}

// permissionRules are the rules that the commands have given so far.
func (r *run) permissionRules() (rules access.Rules) {
	inOrder := slices.SortedFunc(slices.Values(r.plan.Servers), func(a, b scenario.Server) int { return strings.Compare(a.Name, b.Name) })
	for _, srv := range inOrder {
		name := srv.Name
		for _, tool := range r.describedServer(name).Refused {
			text := name + ":" + tool
			if tool != scenario.WholeServer {
				text = access.Exact(name, tool)
			}
			rules.Own.Rules = append(rules.Own.Rules, access.MustParse(access.Deny, text))
		}
	}
	return rules
}

// serverSpec returns the spec by which the manager reaches a server now, with what commands have changed of it.
func (r *run) serverSpec(name string) messages.Spec {
	spec, plan := r.servers.Server(name).Spec(), r.describedServer(name)
	r.driver.mu.Lock()
	defer r.driver.mu.Unlock()
	spec.Trusted, spec.Disabled, spec.Connect = plan.Trusted, plan.Disabled, plan.Connect
	if spec.ConnectTimeout = messages.Duration(plan.ConnectTimeout); plan.NoConnectTimeout {
		spec.ConnectTimeout = 0
	}
	spec.CallTimeout = messages.Duration(plan.CallTimeout)
	spec.MaxCallTimeout, spec.IdleTimeout = messages.Duration(plan.MaxCallTimeout), messages.Duration(plan.IdleTimeout)
	spec.MaxInFlight, spec.MaxQueued, spec.DeniedTools = plan.MaxInFlight, plan.MaxQueued, plan.Denied
	// A respec must change a field that the connection depends on; the message limit does, and no message of the run reaches
	// it.
	if id := r.driver.respecCommands[name]; id > 0 {
		spec.MaxMessage = int64(16<<20 + id)
	}
	return spec
}
