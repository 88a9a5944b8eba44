package bugs

import "slices"

// readBugs are in the methods of the facade that concern several servers, or that only read.
var readBugs = slices.Concat(inPackage("supervisor",
	Bug{
		Name: "connected-is-what-was", In: "Manager.ConnectedServers", Old: "cell.View().State.Phase == messages.Connected", New: "cell.View().Session != nil",
		Finds: []string{"I20"}, Why: "a server that is disabled and warm, or that is being connected, counts as connected",
	},
	Bug{
		Name: "settled-while-starting", In: "Manager.Settled", Old: "v.Seen >= ticket && v.State.Settled() && !isLost(v) && isRetryKnown(v) || v.State.Removing",
		New:   "v.Seen >= ticket || v.State.Removing",
		Finds: []string{"I20"}, Why: "a program that waits for its servers goes on while they start",
	},
	Bug{
		Name: "settled-waits-for-the-removed", In: "Manager.awaitServers", Old: "!all", New: "all",
		Finds: []string{"I20"}, Why: "a program that waits for its servers fails because one of them is removed meanwhile",
	},
	Bug{
		Name: "failed-left-alone", In: "Manager.ConnectAll", Old: "return m.Reconnect(ctx, name)", New: "return nil",
		Finds: []string{"I16", "I18"}, Why: "ConnectAll does nothing about servers that have failed",
	},
	Bug{
		Name: "disabled-left-alone", In: "Manager.ConnectAll", Old: "return m.Toggle(ctx, name, true)", New: "return nil",
		Finds: []string{"I16"}, Why: "ConnectAll does nothing about servers that are disabled",
	},
	Bug{
		Name: "all-is-well", In: "forEachServer", Old: "len(errs) == 0", New: "len(errs) < len(names)",
		Finds: []string{"I16"}, Why: "who connects all servers does not hear of the ones that failed, unless all have",
	},
	Bug{
		Name: "handle-of-the-last-state", In: "Server.IsConnected", Old: "cell != nil && cell.View().State.Phase == messages.Connected", New: "cell != nil && cell.View().Info != nil",
		Finds: []string{"I20"}, Why: "a server that was connected once counts as connected for ever",
	},
), inPackage("supervisor/internal/core",
	Bug{
		Name: "adjusted-told-as-added", In: "supervisor.handleSetServers", Old: "adjusted = true", New: "adjusted = false",
		Finds: []string{"I20"}, Why: "a program is told that a server is new whose connection goes on",
	},
	Bug{
		Name: "replaced-told-as-added", In: "supervisor.handleSetServers", Old: "res.Removed = append(res.Removed, name)\nr.runtime = nil", New: "r.runtime = nil",
		Finds: []string{"I20"}, Why: "a program is not told which servers its new set has ended",
	},
))
