package sim

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// breakSomeActor lets the actor of a server panic soon, or every fourth time the registry: see scenario.Manager.BrokenActors. An actor that
// is not there, or gets no message, is spared.
func (w *simulation) breakSomeActor(server string) {
	actorName := "server/" + server
	if w.brokenCount++; w.brokenCount%4 == 0 {
		actorName = "registry"
	}
	w.turns.breakActor(actorName)
}

// noteBroken records the panic of an actor as a fault. Any goroutine may call it.
func (w *simulation) noteBroken(actorName string) {
	server, isServer := strings.CutPrefix(actorName, "server/")
	if !isServer {
		server = ""
	}
	number := -int(w.panicCount.Add(1))
	for _, kind := range []history.Kind{history.FaultOn, history.FaultOff} {
		w.rec.Add(history.Event{T: w.elapsedTime(), Side: history.Harness, Kind: kind, Server: server, Fault: number, Name: history.BrokenActor})
	}
}
