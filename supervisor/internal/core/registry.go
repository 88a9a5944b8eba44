package core

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
)

// sendToRegistry sends to the registry of the moment. A message to one that has just died is lost; its successor is sent
// everything again by spawnRegistry.
func (s *supervisor) sendToRegistry(m any) {
	pid, _ := s.shared.Registry.PID()
	s.root.Send(pid, m)
}

// spawnRegistry starts the registry, or the successor of one that panicked.
func (s *supervisor) spawnRegistry(ctx actor.Context) {
	s.spawned++
	s.registryDead = false
	// The catalog itself outlives the actor, so readers never see it empty.
	cfg := actors.RegistryConfig{Catalog: s.shared.Catalog, Hub: s.shared.Hub, WithdrawAfter: s.WithdrawAfter}
	pid, err := ctx.SpawnNamed(actorsystem.PropsOf(s.ActorOptions, "registry", func() actor.Actor { return actors.NewRegistry(cfg) }),
		fmt.Sprintf("registry-%d", s.spawned))
	if err != nil {
		panic(err)
	}
	s.shared.Registry.Set(pid)
	if s.registryDeaths == 0 {
		return
	}
	// The successor continues the published snapshot. The changes in its predecessor's mailbox are lost, so every server
	// announces its tools again, and servers that are gone are forgotten again.
	for _, r := range s.servers {
		if r.pid != nil {
			ctx.Send(r.pid, lifecycle.Announce{})
		}
	}
	for _, name := range s.shared.Catalog.Snapshot().Remembered() {
		if s.servers[name] == nil {
			ctx.Send(pid, catalog.Change{Kind: catalog.Forget, Server: name})
		}
	}
	// The Sync that Close waits for may have been in the lost mailbox.
	s.finishClose(ctx)
}

// handleRegistryDeath replaces the registry: at once for the first three times, afterwards after a second each.
func (s *supervisor) handleRegistryDeath(ctx actor.Context) {
	if s.ending {
		return
	}
	s.registryDeaths++
	if s.registryDeaths <= 3 {
		s.spawnRegistry(ctx)
		return
	}
	// A registry that panics on some change would otherwise be respawned in a busy loop.
	s.registryDead = true
	s.wakeAt(time.Now().Add(time.Second), time.Now())
}
