package sent

import (
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// This file holds what the refusal of a message means, and what ends a conversation. Every other rule judges the messages of one
// conversation.
//
// Over HTTP each message is an exchange of its own, which the server may end with an error status. 2025-11-25, Sending Messages
// to the Server: "If the server cannot accept the input, it MUST return an HTTP error status code (e.g., 400 Bad Request). The
// HTTP response body MAY comprise a JSON-RPC error response that has no id." So a refused message was not accepted. What it had
// changed here is taken back, and the client may send the same message again, for example with other credentials: that is no
// second use of its id. A body that has the id is an answer, and uses the id up.
//
// On a pipe or a socket a conversation ends with the connection. Over HTTP no connection ends, and a conversation is a session:
// "A server using the Streamable HTTP transport MAY assign a session ID at initialization time". It ends in two ways:
//
//   - A message of its handshake meets an error status, and no other one was answered. Nothing was agreed on then, so there is no
//     session.
//   - The server forgets it: "When a client receives HTTP 404 in response to a request containing an Mcp-Session-Id, it MUST start
//     a new session by sending a new InitializeRequest without a session ID attached."
//
// The next server/discover or initialize begins another conversation, in which the client counts anew.

// crossTime is the time within which a message may still come that was sent before the client knew of the server's last one: in
// virtual time what a message needs both ways at most, among real processes what a busy machine needs for reading a long one.
const (
	virtualCrossTime = time.Second
	realCrossTime    = 30 * time.Second
)

// receiveStatus records the HTTP status with which the server ended the exchange of a request, or with an empty reply of a
// notification. The code 0 broke the exchange off: then the message may have been accepted.
func (c *conversation) receiveStatus(at time.Duration, reply string, code int, body []byte) {
	how := refused
	switch {
	case code == 0:
		how = abandoned
	case reply != "" && string(membersOf(body)["id"]) == reply:
		how = answered
	}
	if reply == "" {
		c.refusedNotices++
		// The client has sent nothing since notifications/initialized, so that was the one.
		c.ended = c.ended || c.lastMethod == "notifications/initialized"
		return
	}
	r := c.requests[reply]
	if r == nil {
		return
	}
	if how == refused && r.end == "" {
		for _, takeBack := range r.takeBacks {
			takeBack()
		}
	}
	isHeard := r.end == "" // the client reads nothing of what answers a request that it has given up
	c.endRequest(at, reply, how)
	switch {
	case code == http.StatusNotFound && c.version != "" && c.hasSession():
		// A server that has changed to the modern era says so that it does not know the method (seed 30321443).
		if !c.lost && (how != answered || string(membersOf(membersOf(body)["error"])["code"]) != "-32601") {
			c.ended, c.lost, c.lostAt = true, isHeard, at
		}
	case isHandshake(r.method) && c.version == "" && !c.modern && !c.discovered:
		c.ended = true
	}
}

// loseRequest ends a request whose exchange broke, with its process or its stream, and takes back an answer that was on its way then.
func (c *conversation) loseRequest(now time.Duration, id string, r *request) {
	if r.end == answered && r.endedAt > now {
		c.loseAnswer(now, r)
	}
	c.endRequest(now, id, abandoned)
}

// tearStreams notes that the streams of all requests broke, as they do where a gateway cuts whatever lasts. Where their events are numbered, the client may
// go on with each, and gets the answers by that.
func (c *conversation) tearStreams(now time.Duration) {
	if c.server.Web != scenario.WebNumbered {
		return
	}
	for _, r := range c.requests {
		switch {
		case r.end == "":
			r.torn = true
		case r.end == answered && r.endedAt > now:
			c.loseAnswer(now, r)
		}
	}
}

// loseAnswer takes back an answer that was on its way: the client never got it, and may ask for the task again, or cancel the request.
func (c *conversation) loseAnswer(now time.Duration, r *request) {
	if t := c.tasks[r.task]; t != nil && r.method == "tasks/get" {
		t.ended = t.ended && t.endedAt <= now
		t.toldAt = min(t.toldAt, now)
	}
	r.end, r.endedAt = abandoned, now
	c.noteLostTaskRequest(r, abandoned)
}

// hasSession reports whether the server has given a session on this connection.
func (c *conversation) hasSession() bool {
	return c.server.Kind == messages.HTTP && len(c.sessions) > 0 && c.sessions[len(c.sessions)-1] != ""
}

// isHandshake reports whether a request is the first of a handshake.
func isHandshake(method string) bool { return method == "initialize" || method == "server/discover" }

// beginAnother begins another conversation if this one has ended and the message is the first of a handshake. Requests in progress
// stay: their answers may still come, and the client may cancel them.
func (c *conversation) beginAnother(m *message) {
	if !c.ended || !isHandshake(*m.Method) {
		return
	}
	next := newConversation(c.server, c.declared, c.crossTime, c.knownTasks, c.knownRounds)
	next.sessions, next.misled, next.problems, next.refusedNotices = c.sessions, c.misled, c.problems, c.refusedNotices
	next.closed, next.closedAt, next.pause = c.closed, c.closedAt, c.pause
	for _, id := range c.order {
		if r := c.requests[id]; r != nil && r.end == "" {
			next.requests[id] = r
			next.order = append(next.order, id)
		}
	}
	*c = *next
}

// checkEnded judges that a client leaves a session of which it knows that the server has forgotten it.
func (c *conversation) checkEnded(now time.Duration, method string) {
	if c.lost && now > c.lostAt+c.crossTime {
		c.reportProblem("it was sent %s %s after it had answered 404 to its session: 2025-11-25, \"it MUST start a new session\"", method,
			(now - c.lostAt).Round(time.Millisecond))
	}
}

// isSentAgain reports whether a notification that may come only once may come again, because the server has refused one. The
// refusal names no notification.
func (c *conversation) isSentAgain() bool {
	if c.refusedNotices == 0 {
		return false
	}
	c.refusedNotices--
	return true
}
