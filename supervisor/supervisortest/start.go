package supervisortest

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// closeTime bounds the wait for the first connections and the Close at the end of a test: no healthy run comes near it.
const closeTime = time.Minute

// Start starts a manager with these servers and the defaults of everything else. It returns when each of them is connected, or has
// failed for the first time; a server that was told to be silent is not waited for. The test closes the manager at its end.
func Start(t testing.TB, servers ...*Server) *supervisor.Manager {
	t.Helper()
	return StartConfig(t, supervisor.Config{}, servers...)
}

// StartConfig is Start with more options. The servers come in addition to those of cfg, which is not changed.
func StartConfig(t testing.TB, cfg supervisor.Config, servers ...*Server) *supervisor.Manager {
	t.Helper()
	m, err := supervisor.Start(t.Context(), AddTo(cfg, servers...))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	var talking []string
	for _, s := range servers {
		if !s.isSilent() {
			talking = append(talking, s.name)
		}
	}
	if len(talking) > 0 {
		ctx, cancel := context.WithTimeout(t.Context(), closeTime)
		defer cancel()
		// A test may want a server that a policy refuses.
		if err := m.Settled(ctx, talking...); err != nil && !errors.Is(err, supervisor.ErrNotConnected) {
			t.Fatalf("start: %v", err)
		}
	}
	return m
}

// AddTo returns cfg with the servers in it, for a program that starts its manager itself. cfg is not changed.
func AddTo(cfg supervisor.Config, servers ...*Server) supervisor.Config {
	cfg.Servers, cfg.InProcess = maps.Clone(cfg.Servers), maps.Clone(cfg.InProcess)
	if cfg.Servers == nil {
		cfg.Servers = map[string]supervisor.Spec{}
	}
	if cfg.InProcess == nil {
		cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{}
	}
	for _, s := range servers {
		spec := s.Spec
		spec.Type = messages.SDK
		cfg.Servers[s.name], cfg.InProcess[s.name] = spec, s.Serve
	}
	return cfg
}
