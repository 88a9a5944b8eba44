package bugs

import "slices"

// thirdSlipBugs were written as slipBugs were, after the harness had learned from those and from the later ones, and no day found them then:
// days had no calls of one instant, no servers of a configuration, and no owner who changed a server between two of its failures, or asked for a
// list that is refused.
var thirdSlipBugs = slices.Concat(
	inPackage("actors",
		Bug{
			Name: "slot-lost-in-race", In: "callQueue.acquireSlot", Old: "if !waited && <-w.Value { t.releaseSlot() }", New: "_ = waited",
			Finds: []string{"I21", "I2"}, Why: "a call that ends in the instant in which it gets a slot keeps the slot for ever",
		},
		Bug{
			Name: "repetition-waits-for-nothing", In: "Calls.repeat", Old: "wait := max(c.Wait, c.RetryWait)", New: "wait := c.Wait",
			Finds: []string{"I2"}, Why: "a call that was lost with its connection is told as unknown at once, although its server comes back and it may run twice",
		},
		Bug{
			Name: "cache-counts-as-life", In: "Link.noteResult", Old: "err == nil && l.silent.Load() != 0 && l.lastHeard().After(before)", New: "err == nil && l.silent.Load() != 0",
			Finds: []string{"I8"}, Why: "a list that is answered from a cache ends the row of calls in silence",
		},
		Bug{
			Name: "leaving-watcher-takes-calls", In: "Hub.dropWatcher", Old: "if !w.withoutCalls { h.watchingCalls.Add(-1) }", New: "h.watchingCalls.Add(-1)",
			Finds: []string{"I19"}, Why: "when a watcher leaves that needed no calls, the others are told of none any more",
		},
	),
	inPackage("actors/lifecycle",
		Bug{
			Name: "refresh-outlives-refusal", In: "machine.handleListFailed", Old: "m.Listing, m.RelistAfter, m.Refreshing = false, false, false",
			New:   "m.Listing, m.RelistAfter = false, false",
			Finds: []string{"I16"}, Why: "who asks for a list that the server refuses waits until it refuses it no more",
		},
	),
	inPackage("supervisor/gateway",
		Bug{
			Name: "watch-of-everybody", In: "view.keyOf", Old: "key.principal = v.principal", New: "_ = key",
			Finds: []string{"I12", "I24", "I3"}, Why: "the resource that an agent watches is not that of its own instance",
		},
		Bug{
			Name: "watch-ended-for-nobody", In: "watches.removeWatch", Old: "supervisor.WithCaller(context.Background(), to.principal)", New: "context.Background()",
			Finds: []string{"I12"}, Why: "an instance is watched on after its agent has gone, and never ends",
		},
		Bug{
			Name: "update-of-an-unknown-server", In: "watches.tellUpdated", Old: "server, principal = owner, caller", New: "_, principal = owner, caller",
			Finds: []string{"I24"}, Why: "agents hear nothing of the resources of their own instances",
		},
	),
	inPackage("supervisor/internal/core",
		Bug{
			Name: "adjusted-spec-forgets-failures", In: "supervisor.applySpec", Old: "if !keep { r.policy = restart.Record{} }", New: "r.policy = restart.Record{}",
			Finds: []string{"I7"}, Why: "a server that dies again and again is not parked if somebody changes its timeout meanwhile",
		},
		Bug{
			Name: "instance-place-kept", In: "supervisor.finishRemoval", Old: "delete(r.owner.instances, r.principal)", New: "{}",
			Finds: []string{"I21"}, Why: "after maxInstances callers no other one ever has an instance",
		},
		Bug{
			Name: "commands-before-spec", In: "supervisor.finishRemoval",
			Old:   "if r.waitingSpec != nil { s.configureOne(ctx, r.name, r.waitingSpec) }\nfor _, w := range r.waitingCommands { w.run(ctx) }",
			New:   "for _, w := range r.waitingCommands { w.run(ctx) }\nif r.waitingSpec != nil { s.configureOne(ctx, r.name, r.waitingSpec) }",
			Finds: []string{"I16"}, Why: "a command for a configured server that comes back is refused as if there were none",
		},
		Bug{
			Name: "reload-keeps-waiting-spec", In: "managedServer.withdrawConfigured", Old: "r.configured, r.waitingSpec = nil, nil", New: "r.configured = nil",
			Finds: []string{"I16", "I1"}, Why: "a server that is taken out of the file twice in a moment comes back",
		},
		Bug{
			Name: "command-outlives-its-server", In: "managedServer.withdrawConfigured", Old: "if !cameBack { return }", New: "if cameBack || !cameBack { return }",
			Finds: []string{"I16"}, Why: "what was wished of a server that a reload took away is done to the one that the next reload brings",
		},
	),
)
