package transporttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// The tests of this file are about both directions: requests of the peer with the client's answers, and cancellation.

// bigNotifications checks notifications that are larger than a pipe's buffer. A transport that stops reading while it writes
// deadlocks with a peer that does the same.
func bigNotifications(t *testing.T, h Harness) {
	// 2 MiB altogether, which forces the peer to wait until the transport reads.
	const n, size = 8, 1 << 18 // more than a pipe holds
	c := h.startSuite(t, Options{}).dialConn()
	c.callPeer("notify", commandParams{N: n, Bytes: size})
	c.checkNotes(n)
	for _, m := range c.Messages() {
		var e envelope
		if json.Unmarshal(m, &e) == nil && e.Method == "note" && (len(m) < size || bytes.Count(m, []byte("p")) < size) {
			t.Errorf("a notification of %d bytes arrived with %d", size, len(m))
		}
	}
	c.checkAlive("big notifications")
}

// peerAsks lets the peer ask as a part of its answer, as over the stream of a request.
func peerAsks(t *testing.T, h Harness) { exchangeAnswers(t, h, "ask") }

// peerAsksByPush lets the peer ask outside of any answer, as over a standing stream.
func peerAsksByPush(t *testing.T, h Harness) { exchangeAnswers(t, h, "ask-push") }

// exchangeAnswers lets the peer ask while several requests of the client wait, each for its own answer. A transport that read or
// wrote only one way at a time would block. Elicitation, sampling and roots work like this.
func exchangeAnswers(t *testing.T, h Harness, command string) {
	const callers = 6
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	var wg sync.WaitGroup
	for i := range callers {
		m := s.newRequest(command, fmt.Sprintf(`{"caller":%d}`, i))
		// A client's handler would answer with these bytes; the peer gives them back.
		// The number is above 2^53 and the text has an escaped zero: a transport that decodes and encodes would change them.
		want := fmt.Sprintf(`{"of":%d,"n":9007199254740993,"s":"漢 \\u0000"}`, i)
		wg.Add(2)
		go func() {
			defer wg.Done()
			ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
			defer cancel()
			if d, err := c.Send(ctx, m); err != nil || d != transports.Written {
				t.Errorf("Send of a request that the peer asks about: %v, %v", d, err)
				return
			}
			if got := string(c.Answer(t, s.Bound, m.ID)); got != want {
				t.Errorf("the peer got the answer %s, want %s", got, want)
			}
		}()
		go func() {
			defer wg.Done()
			// The peer derives the id of its question from the request's.
			idMember := fmt.Sprintf(`"id":"asked-%d"`, m.ID)
			c.Wait(t, s.Bound, "the request of the peer", func() bool { return c.hasMessage(idMember) })
			ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
			defer cancel()
			body := fmt.Appendf(nil, `{"jsonrpc":"2.0",%s,"result":%s}`, idMember, want)
			if d, err := c.Send(ctx, transports.Message{Body: body}); err != nil || d != transports.Written {
				t.Errorf("Send of an answer: %v, %v; want written and no error", d, err)
			}
		}()
	}
	s.runWithin("every exchange", wg.Wait)
	c.checkAlive("the peer's requests")
}

// hasMessage reports whether a message with that text has arrived.
func (c *conn) hasMessage(text string) bool {
	for _, m := range c.Messages() {
		if strings.Contains(string(m), text) {
			return true
		}
	}
	return false
}

// cancelLegacy cancels in the legacy era, by a notification.
func cancelLegacy(t *testing.T, h Harness) { cancelPending(t, h, "") }

// cancelModern cancels in the modern era: over HTTP by the end of the stream, elsewhere by the notification.
func cancelModern(t *testing.T, h Harness) { cancelPending(t, h, "2026-07-28") }

// cancelPending gives up a request that the peer is working on, sends the cancellation, and checks which of the two reaches the
// peer. The peer's work must be stopped in both eras, by exactly one of the two ways.
func cancelPending(t *testing.T, h Harness, version string) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	// The peer works on it until it is told to stop, or for ever.
	m := s.newRequest("silent", nil)
	m.Version = version
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		d, err := c.Send(ctx, m)
		if d == transports.NotWritten || s.Features.SendWaits != (err != nil) {
			t.Errorf("Send of a request without an answer: %v, %v", d, err)
		}
		if err != nil && classOf(err) != messages.ClassCanceled {
			t.Errorf("Send that was given up: %v", err)
		}
	}()
	id := fmt.Sprint(m.ID)
	// Only a request that the peer has can be cancelled there.
	c.awaitSeen("the request arrives", func(seen map[string]int) bool { return seen[id] == 1 })
	if !s.Features.SendWaits { // Send may still wait until the peer has accepted the request
		s.runWithin("Send", func() { <-returned })
	}
	cancel()
	s.runWithin("Send after its context has ended", func() { <-returned })
	// The suite sends it in both eras, as sessions do; the transport decides whether it goes out.
	c.sendWritten(transports.Message{Method: "notifications/cancelled", Version: version,
		Body: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, m.ID)})
	if version == "" || !s.Features.CancelClosesStream {
		c.awaitSeen("the cancellation arrives", func(seen map[string]int) bool { return seen["notifications/cancelled"] == 1 })
		return
	}
	c.awaitSeen("the exchange has ended", func(seen map[string]int) bool { return seen["ended "+id] == 1 })
	// 2026-07-28: "no notifications/cancelled message is expected" over streamable HTTP.
	if n := c.seenByPeer()["notifications/cancelled"]; n != 0 {
		t.Errorf("the peer got %d notifications/cancelled", n)
	}
}

// awaitSeen asks the peer for the messages that it has seen until cond holds.
func (c *conn) awaitSeen(what string, cond func(seen map[string]int) bool) {
	c.s.t.Helper()
	for deadline := time.Now().Add(c.s.Bound); ; time.Sleep(10 * time.Millisecond) {
		seen := c.seenByPeer()
		if cond(seen) {
			return
		}
		if time.Now().After(deadline) {
			// The numbers of requests would hide the rest in the message.
			maps.DeleteFunc(seen, func(what string, _ int) bool { return what[0] >= '0' && what[0] <= '9' })
			c.s.t.Fatalf("%s: not within %v; beside requests, the peer has seen %v", what, c.s.Bound, seen)
		}
	}
}
