package sim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// eventStream is a stream of events that the program's own client reads, over as many responses as it takes. The lock of its connection
// guards it.
type eventStream struct {
	// body is the response that carries it now; nil before the first one, and while it is broken.
	body *streamBody
	// name begins the ids of its events, empty for a stream without ids. events are all that were said since it began, complete says that the
	// last of them is the answer.
	name     string
	events   [][]byte
	complete bool
	// broken is set while it waits to be resumed, since brokenAt.
	broken   bool
	brokenAt time.Time
	// retry is when its server asks to be asked for the rest of it, 0 if it does not say. asked counts the requests to go on with it.
	retry time.Duration
	asked int
}

// numberEvents begins the ids of a stream.
func (s *eventStream) numberEvents(name string) { s.name = name }

// writeEvent sends a message to the client. It returns false if the stream is not open, so that the message is lost or waits to be sent again.
func (s *eventStream) writeEvent(message []byte) bool {
	if s.name != "" {
		s.events = append(s.events, message)
	}
	if s.body == nil {
		return false
	}
	s.body.writeBytes(s.encodeEvent(message, len(s.events)))
	return true
}

// encodeEvent writes a message as an event, with the id of its place if the stream is numbered. Every second event says its type, and every
// fifth has its data on two lines, which a reader joins. Before every sixth stands an event of another type, as of a proxy on the way, which is
// no message.
func (s *eventStream) encodeEvent(message []byte, place int) []byte {
	var b bytes.Buffer
	if place%6 == 2 {
		b.WriteString("event: heartbeat\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"heartbeat\"}\n\n")
	}
	if s.name != "" {
		b.WriteString("id: " + s.name + "/" + strconv.Itoa(place) + "\n")
	}
	if place%2 == 1 {
		b.WriteString("event: message\r\n")
	}
	if first, rest, found := bytes.Cut(message, []byte(`,"method":`)); found && place%5 == 4 {
		b.WriteString("data: " + string(first) + "\ndata:,\"method\":" + string(rest) + "\n\n")
		return b.Bytes()
	}
	b.WriteString("data: " + string(message) + "\n\n")
	return b.Bytes()
}

// breakOff ends the response that carries the stream, as a network does. A numbered stream may be resumed then.
func (s *eventStream) breakOff(err error) {
	if s.body != nil {
		s.body.endBody(err)
		s.body, s.broken, s.brokenAt = nil, s.name != "", time.Now()
	}
}

// streamBody is the body of a response that goes on. The loop writes and ends it, the client reads and closes it.
type streamBody struct {
	ctx     context.Context //nolint:containedctx // that of the request, which ends the response
	onClose func()
	wake    chan struct{}

	mu      sync.Mutex
	unread  []byte
	endedBy error
	closed  bool
}

func newStreamBody(ctx context.Context, onClose func()) *streamBody {
	return &streamBody{ctx: ctx, onClose: onClose, wake: make(chan struct{}, 1)}
}

func (b *streamBody) writeBytes(p []byte) {
	b.mu.Lock()
	b.unread = append(b.unread, p...)
	b.mu.Unlock()
	b.wakeReader()
}

// endBody ends the body: what was written is read before.
func (b *streamBody) endBody(err error) {
	b.mu.Lock()
	b.endedBy = err
	b.mu.Unlock()
	b.wakeReader()
}

func (b *streamBody) wakeReader() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	for {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		b.mu.Lock()
		n := copy(p, b.unread)
		b.unread = b.unread[n:]
		err := b.endedBy
		b.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-b.wake:
		case <-b.ctx.Done():
		}
	}
}

// Close implements io.Closer.
func (b *streamBody) Close() error {
	b.mu.Lock()
	first := !b.closed && b.endedBy == nil
	b.closed = true
	b.mu.Unlock()
	if first {
		b.onClose()
	}
	return nil
}

// eventStreamHeader returns the headers of a stream.
func eventStreamHeader() http.Header {
	return http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Cache-Control": {"no-cache"}}
}

// deliverMessage implements conn. An answer comes as one document, or as the last event of a stream; a numbered server always says the answers
// to calls in streams.
func (c *ownWebConn) deliverMessage(body []byte, reply string, more bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply == "" {
		return c.listening.writeEvent(body) || c.listening.broken
	}
	xs := c.requests[reply]
	if len(xs) == 0 {
		return false // the client has closed the response
	}
	x := xs[0]
	s := &x.own.stream
	if s.body == nil && !s.broken {
		c.answerCount++ // not the id of the request: if two callers wake in one instant, chance decides on that
		number := c.answerCount
		if !more && !c.isResumable(x) && number%2 == 0 {
			c.answerPlainly(x, body, number)
			return true
		}
		c.beginStream(x)
	}
	s.complete = !more
	heard := s.writeEvent(body)
	if !more && heard {
		c.endStream(x)
	}
	return heard
}

// answerPlainly answers a request with one document. The caller holds mu.
func (c *ownWebConn) answerPlainly(x *exchange, body []byte, number int) {
	h := http.Header{"Content-Type": {"application/json"}}
	c.addSession(x, h)
	length := int64(len(body))
	if number%4 == 0 {
		length = -1
	}
	x.beginResponse(http.StatusOK, h, io.NopCloser(bytes.NewReader(bytes.Clone(body))), length)
	c.forgetExchange(x)
}

// addSession names the session in the answer to initialize. The caller holds mu.
func (c *ownWebConn) addSession(x *exchange, h http.Header) {
	if x.method == "initialize" && c.session != "" {
		h.Set("Mcp-Session-Id", c.session)
		c.sessionGiven = true
	}
}

// isResumable reports whether the stream with the answer to a request can be gone on with when it breaks: those of calls, of servers of the legacy
// era that number their events.
func (c *ownWebConn) isResumable(x *exchange) bool {
	return c.numbered && x.method == "tools/call" && x.header["Mcp-Method"] == ""
}

// beginStream begins the response to a request as a stream. The caller holds mu.
func (c *ownWebConn) beginStream(x *exchange) {
	s := &x.own.stream
	s.body = newStreamBody(x.own.request.Context(), func() { c.closeStream(x) })
	h := eventStreamHeader()
	c.addSession(x, h)
	if c.isResumable(x) {
		c.streamCount++
		s.numberEvents(x.id)
		// 2025-11-25: "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field in order to prime the
		// client to reconnect".
		s.body.writeBytes([]byte(c.retryField(s) + "id: " + s.name + "/0\ndata:\n\n"))
	}
	x.beginResponse(http.StatusOK, h, s.body, -1)
}

// retryField says when to come back to a stream that breaks: for two of three streams. The caller holds mu.
func (c *ownWebConn) retryField(s *eventStream) string {
	if s.retry = []time.Duration{40 * time.Millisecond, 300 * time.Millisecond, 0}[c.streamCount%3]; s.retry == 0 {
		return ""
	}
	return "retry: " + strconv.Itoa(int(s.retry.Milliseconds())) + "\n"
}

// endStream ends a stream that has brought the answer. The caller holds mu.
func (c *ownWebConn) endStream(x *exchange) {
	x.own.stream.body.endBody(io.EOF)
	c.forgetExchange(x)
}

// closeStream notes that the client has closed a response before its end.
func (c *ownWebConn) closeStream(x *exchange) {
	c.mu.Lock()
	ended := x.completed
	if !ended {
		c.forgetExchange(x)
	}
	c.mu.Unlock()
	if !ended {
		c.remote.onAbandoned(c, x)
	}
}

// cutStream implements conn: it cuts the stream for messages that belong to no request, and of a numbered server those with the answers to
// calls as well, as a gateway does that cuts whatever lasts.
func (c *ownWebConn) cutStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listening.body != nil {
		c.listening.breakOff(io.ErrUnexpectedEOF)
		c.noteBroken(&c.listening, nil)
	}
	for _, x := range c.allExchanges() {
		if !c.isResumable(x) || x.own.stream.broken {
			continue
		}
		if x.own.stream.body == nil {
			c.beginStream(x)
		}
		x.own.stream.breakOff(io.EOF)
		c.noteBroken(&x.own.stream, x)
	}
}

// tearAnswer breaks the stream in the middle of the answer to a request, if it can be resumed.
func (c *ownWebConn) tearAnswer(reply string, body []byte, at int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	xs := c.requests[reply]
	if len(xs) == 0 || !c.isResumable(xs[0]) {
		return false
	}
	x := xs[0]
	s := &x.own.stream
	if s.body == nil && !s.broken {
		c.beginStream(x)
	}
	s.complete = true
	s.events = append(s.events, body)
	if s.body != nil {
		whole := s.encodeEvent(body, len(s.events))
		s.body.writeBytes(whole[:min(at, len(whole)/2)])
		s.breakOff(io.ErrUnexpectedEOF)
		c.noteBroken(s, x)
	}
	return true
}

// openStream answers a GET: with the stream for messages that belong to no request, or with the rest of one that broke. It returns the id of the
// request whose answer the client has with it, and that answer. Every fourth resumption is put off, and every seventh refused for good; of the
// requests for another stream for messages every third is put off.
func (c *ownWebConn) openStream(x *exchange) (reply string, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.own.request.Context().Err() != nil {
		return "", nil
	}
	last := x.header["Last-Event-Id"]
	switch {
	case c.dead || !c.opened:
		x.own.err = syscall.ECONNREFUSED
		close(x.own.began)
	case last == "" && c.putsOff(x):
	case last == "":
		c.beginListening(x)
	default:
		return c.goOn(x, last)
	}
	return "", nil
}

// A putOff is how a server refuses a stream that it will have later, and after how many seconds it says so, 0 if it does not say.
type putOff struct{ status, after int }

// putOffs are those that servers take in turn: one has not noticed the end of the stream before, another has no room for a while, or restarts.
var putOffs = []putOff{{http.StatusConflict, 0}, {http.StatusServiceUnavailable, 2}, {http.StatusConflict, 0}, {http.StatusTooManyRequests, 3}, {http.StatusBadGateway, 0}}

// putsOff refuses x, which asks for another stream for messages that belong to no request, every third time. The client asks once more, and not
// before the time that it was told. The caller holds mu.
func (c *ownWebConn) putsOff(x *exchange) bool {
	if early := time.Until(c.listenAgainAt); early > 0 {
		c.noteBreach("it was asked for another stream of messages that belong to no request " + early.String() + " before the time that it had asked for")
	}
	if c.listening.asked == 0 || c.listening.body != nil {
		return false
	}
	if c.reopenings++; c.reopenings%3 != 0 {
		return false
	}
	p := putOffs[c.reopenings/3%len(putOffs)]
	h := http.Header{"Content-Type": {"text/plain"}}
	if p.after > 0 {
		h.Set("Retry-After", strconv.Itoa(p.after))
		c.listenAgainAt = time.Now().Add(time.Duration(p.after) * time.Second)
	}
	c.listening.asked++
	c.noteBroken(&c.listening, nil)
	const text = "not now"
	x.beginResponse(p.status, h, io.NopCloser(strings.NewReader(text)), int64(len(text)))
	return true
}

// beginListening answers x with the stream for messages that belong to no request. The caller holds mu.
func (c *ownWebConn) beginListening(x *exchange) {
	if c.listening.body != nil {
		c.noteBreach("it was asked for another stream of messages that belong to no request, and that before is open")
	}
	c.listening = eventStream{body: newStreamBody(x.own.request.Context(), c.closeListening), asked: c.listening.asked + 1}
	c.streamCount++
	if c.numbered {
		c.listening.numberEvents("all-" + strconv.Itoa(c.streamCount))
		c.listening.body.writeBytes([]byte(c.retryField(&c.listening) + "id: " + c.listening.name + "/0\ndata:\n\n"))
	}
	x.beginResponse(http.StatusOK, eventStreamHeader(), c.listening.body, -1)
}

// goOn answers x with the rest of a stream after an event, or refuses it. The caller holds mu.
func (c *ownWebConn) goOn(x *exchange, last string) (reply string, answer []byte) {
	refuse := func(code int, text string) {
		x.beginResponse(code, http.Header{"Content-Type": {"text/plain"}}, io.NopCloser(strings.NewReader(text)), int64(len(text)))
	}
	name, place, _ := strings.Cut(last, "/")
	from, err := strconv.Atoi(place)
	asked, s := c.requestOfStream(name), &c.listening
	if asked != nil {
		s = &asked.own.stream
	}
	if err != nil || s.name != name || from > len(s.events) {
		if c.refused[name] {
			c.noteBreach("it was asked again to go on with a stream after the event " + last + ", which it had said it does not know")
		}
		refuse(http.StatusBadRequest, "that event is unknown")
		return "", nil
	}
	s.asked++
	if early := time.Until(s.brokenAt.Add(s.retry)); s.broken && early > 0 {
		c.noteBreach("it was asked to go on with a stream " + early.String() + " before the time that it had asked for, " + s.retry.String())
	}
	switch c.resumptions++; {
	case c.resumptions%4 == 0:
		refuse(http.StatusBadGateway, "not now")
		s.brokenAt = time.Now()
		c.noteBroken(s, asked)
		return "", nil
	case c.resumptions%7 == 0:
		if c.refused == nil {
			c.refused = map[string]bool{}
		}
		c.refused[name] = true
		s.name, s.broken = "", false
		refuse(http.StatusBadRequest, "that event is unknown")
		if asked == nil {
			c.noteBroken(s, nil)
		} else {
			c.forgetExchange(asked) // the refusal tells its client that no answer comes
		}
		return "", nil
	}
	return c.resumeStream(x, asked, s, from)
}

// requestOfStream returns the request whose answer a stream brings, nil if there is none. The caller holds mu.
func (c *ownWebConn) requestOfStream(name string) *exchange {
	for _, x := range c.requests[name] {
		if x.own.stream.name == name {
			return x
		}
	}
	return nil
}

// resumeStream goes on with a stream after an event, in the response to x. The caller holds mu.
func (c *ownWebConn) resumeStream(x, asked *exchange, s *eventStream, from int) (reply string, answer []byte) {
	onClose := c.closeListening
	if asked != nil {
		onClose = func() { c.closeStream(asked) }
	}
	s.broken = false
	if s.body != nil {
		s.body.endBody(io.EOF) // the client has noticed the end of the response before, and this server has not
	}
	s.body = newStreamBody(x.own.request.Context(), onClose)
	x.beginResponse(http.StatusOK, eventStreamHeader(), s.body, -1)
	for i := from; i < len(s.events); i++ {
		s.body.writeBytes(s.encodeEvent(s.events[i], i+1))
	}
	if asked == nil || !s.complete {
		return "", nil
	}
	answer = s.events[len(s.events)-1]
	c.endStream(asked)
	return asked.id, answer
}

// closeListening notes that the client has closed the stream for messages that belong to no request.
func (c *ownWebConn) closeListening() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening.body = nil
}

// ownWebOf returns a connection as one of the program's own client, if it is one.
func ownWebOf(l *simConn) (*ownWebConn, bool) {
	c, own := l.conn.(*ownWebConn)
	return c, own
}

var _ transports.Conn = (*ownWebConn)(nil)
