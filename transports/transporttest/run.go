package transporttest

import (
	"context"
	"testing"
	"time"
)

// Run checks the contract on one kind of transport, in one subtest for each sentence of it. Subtests about features that the kind
// does not have ([Features]) are left out, and not reported as skipped.
func Run(t *testing.T, h Harness) {
	// A slow machine under the race detector needs seconds for what takes milliseconds elsewhere.
	if h.Bound == 0 {
		h.Bound = time.Minute
	}
	// No subtest runs in parallel: each compares the goroutines of the process before and after it.
	h.warmUp(t)
	// The names are the sentences of the contract, in the order of a connection's life: messages, limits, contexts, deaths,
	// Close, Dial.
	always := true
	for _, c := range []struct {
		name string
		has  bool
		run  func(*testing.T, Harness)
	}{
		{"EchoIsByteExact", always, echoIsByteExact},
		{"ConcurrentSends", always, concurrentSends},
		{"NotificationsAndResponsesArrive", always, notificationsAndResponses},
		{"SendDoesNotKeepTheBody", always, sendDoesNotKeepTheBody},
		{"IncomingNotifications", always, incomingNotifications},
		{"BigNotifications", always, bigNotifications},
		{"Push", h.Features.Push, pushedNotifications},
		{"PeerAsks", always, peerAsks},
		{"PeerAsksByPush", h.Features.Push, peerAsksByPush},
		{"BigResult", always, bigResult},
		{"BigRequest", always, bigRequest},
		{"LimitIsExact", always, limitIsExact},
		{"OversizedCostsItself", always, oversizedCostsItself},
		{"Noise", h.Features.Noise, reportedNoise},
		{"EndedContextWritesNothing", always, endedContextWritesNothing},
		{"SilentPeer", always, silentPeer},
		{"CancelLegacy", always, cancelLegacy},
		{"CancelModern", always, cancelModern},
		{"LateAnswer", !h.Features.SendWaits, lateAnswer},
		{"LateAnswerIsCutShort", h.Features.SendWaits, lateAnswerIsCutShort},
		{"StalledPeer", h.Features.Stall, stalledPeer},
		{"StalledPeerAndClose", h.Features.Stall, stalledPeerAndClose},
		{"PeerDiesMidCall", always, peerDiesMidCall},
		{"LastWordsBeatTheDeath", h.Features.DeathIsDown, lastMessages},
		{"SendsRaceTheDeath", always, sendsRaceTheDeath},
		{"CloseIsIdempotentAndConcurrent", always, closeConcurrently},
		{"CloseEndsWaitingSends", always, closeEndsWaitingSends},
		{"CloseWithEndedContext", always, closeWithEndedContext},
		{"CloseRacesTheDeath", always, closeRacesTheDeath},
		{"CloseRacesTraffic", always, closeRacesTraffic},
		{"DialWithEndedContext", always, dialWithEndedContext},
		{"DialCanceledOnItsWay", always, dialCanceled},
		{"DialContextEndsAfterDial", always, dialContextEndsLater},
		{"DialAgainAfterClose", always, dialAgain},
		{"InfoNeverBlocks", always, infoNeverBlocks},
		{"PID", h.Features.PID, childPID},
		{"BrokenDial", len(h.Broken) > 0, brokenDial},
	} {
		// A skipped subtest would look like a gap in the kind's tests.
		if c.has {
			t.Run(c.name, func(t *testing.T) { c.run(t, h) })
		}
	}
}

// warmUp opens and closes one connection before the first comparison of goroutines, so that whatever a kind starts once for the
// whole process (a thread, a shared client) exists by then. A kind that cannot connect at all fails here, with one clear error.
func (h Harness) warmUp(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), h.Bound)
	defer cancel()
	// It has the secret as well, so that a kind that needs one can be opened.
	c, err := h.New(t, Options{Secret: canarySecret}).Dial(ctx, &Recorder{})
	if err != nil {
		t.Fatalf("the first Dial: %v", err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatalf("the first Close: %v", err)
	}
}
