package sim

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/transports"
)

// This file judges what the program's own HTTP client does about its session, and about streams that break. Its breaches are of I23: nothing but the requests for the
// streams themselves shows them, and the history has none of those.

// A brokenStream is a stream that broke while its client needs it: asked is the request whose answer it was to bring, nil for messages that belong
// to none.
type brokenStream struct {
	stream  *eventStream
	request *exchange
	at      time.Time
	asked   int
}

// noteBroken has the judges look whether a stream is asked for again. The caller holds the lock of the connection.
func (c *ownWebConn) noteBroken(s *eventStream, request *exchange) {
	if request != nil {
		ctx := request.own.request.Context()
		if ctx.Err() != nil {
			return // the client has given the request up
		}
		if request.own.leftAt.IsZero() {
			context.AfterFunc(ctx, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				request.own.leftAt = time.Now()
			})
		}
	}
	c.broken = append(c.broken, brokenStream{s, request, time.Now(), s.asked})
}

// noteCancelled notes that the client cancels a request, of whose answer it needs nothing more. The caller holds the lock of the connection.
func (c *ownWebConn) noteCancelled(id string) {
	for _, x := range c.requests[id] {
		x.own.cancelled = true
	}
}

// noteBreach notes what the client did and may not. The caller holds the lock of the connection.
func (c *ownWebConn) noteBreach(text string) { c.breaches = append(c.breaches, text) }

// judgeSession notes a request that does not name the session whose id its client was given. Requests of the modern era, by which a client may
// still ask for the era, have none. The caller holds the lock of the connection.
func (c *ownWebConn) judgeSession(req *http.Request) {
	if c.sessionGiven && req.Header.Get("Mcp-Method") == "" && req.Header.Get("Mcp-Session-Id") != c.session {
		c.noteBreach("the client sent a " + req.Method + " without the id of its session")
	}
}

// judgeGoodbye notes that the client closed its connection and left its session open at the server, which then keeps it for nothing. The client
// gives ended as the reason why its connection is over. It owes a goodbye only if it closed the connection itself: not after a break, nor after the
// server refused its credentials. The caller holds the lock of the connection.
func (c *ownWebConn) judgeGoodbye(ended error) {
	var e *transports.Error
	if c.sessionGiven && !c.closing && !c.denied && errors.As(ended, &e) && e.Class == messages.ClassCanceled {
		c.noteBreach("the client closed its connection and did not end its session")
	}
}

// The times in which a client asks for a stream again: for the rest of an answer it tries five times with pauses of up to 1.6 s; for messages
// that belong to no request for ever, with pauses of up to 30 s.
const answerAskedAgain, listeningAskedAgain = 3 * time.Second, 32 * time.Second

// judgeStreams records the breaches since the last look, and plans the looks at the streams that broke since then.
func (h *simServer) judgeStreams(l *simConn, c *ownWebConn) {
	c.mu.Lock()
	broken, breaches := c.broken, c.breaches
	c.broken, c.breaches = nil, nil
	c.mu.Unlock()
	for _, text := range breaches {
		h.reportStream(l, text)
	}
	for _, b := range broken {
		bound := listeningAskedAgain
		if b.request != nil {
			bound = answerAskedAgain
		}
		h.w.timeline.planAction(h.w.currentTime()+bound, h.server.Name, func() { h.checkAskedAgain(l, c, b) })
	}
}

// reportStream records a breach of the program's own client.
func (h *simServer) reportStream(l *simConn, text string) {
	h.w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I23", Server: h.server.Name, Conn: l.number, Text: text})
}

// checkAskedAgain judges that a stream which broke was asked for again, unless the connection has ended.
func (h *simServer) checkAskedAgain(l *simConn, c *ownWebConn, b brokenStream) {
	if l.ended || h.conns[l.number] != l {
		return
	}
	if problem := c.problemOf(b); problem != "" {
		h.reportStream(l, problem)
	}
}

// problemOf says that a stream which broke was not asked for again, empty if it was, or if its client has no use for it: it has said goodbye, the
// server has gone, or who waited for the answer has left since.
func (c *ownWebConn) problemOf(b brokenStream) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	what := "for messages that belong to no request"
	if b.request != nil {
		if b.request.own.cancelled || b.request.own.leftAt.After(b.at) {
			return ""
		}
		what = "with the answer to the request " + b.request.id + " (" + b.request.method + ")"
	}
	if c.dead || c.closing || b.stream.asked != b.asked {
		return ""
	}
	return "the stream " + what + " broke, and it was not asked for the rest of it"
}
