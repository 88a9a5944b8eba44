package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// ownWebConn is the server's end of a connection whose client's end is the program's own (package transports/web), for a server that says
// web. It takes the place of webConn, the model of that client: the requests of the client come to RoundTrip, and wait there until the loop
// has the server answer them.
type ownWebConn struct {
	baseConn
	// client is the client's end. numbered servers give the events of their streams ids.
	client   transports.Conn
	numbered bool

	// mu of baseConn guards these. requests wait for an answer, by id, and notices to be taken; held are those of both that wait for the
	// opening. notReading is set while the server takes no notices.
	requests   map[string][]*exchange
	notices    []*exchange
	held       []*exchange
	notReading bool
	// refuseAll answers what comes on a connection whose opening was refused; nil if it was not.
	refuseAll func(x *exchange)
	// raw is the refusal that denyExchange or refuseOpening gives next, as it goes over the wire; nil for a broken connection.
	raw *rawRefusal
	// dead is set once the server has ended its side, closing once the client has said goodbye, sessionGiven once the client was given the id of
	// its session, denied once its credentials were refused.
	dead, closing, sessionGiven, denied bool
	// listening is the stream for messages that belong to no request.
	listening eventStream
	// streamCount counts the streams that were numbered, resumptions the requests to go on with one, reopenings those for another stream for
	// messages that belong to no request. Such a request may not come before listenAgainAt.
	streamCount, resumptions, reopenings int
	listenAgainAt                        time.Time
	// answerCount counts the responses with answers.
	answerCount int
	// refused are the names of the streams that the server does not know any more, because it said so.
	refused map[string]bool
	// broken and breaches are for the judges: the streams that broke, and what the client did wrong, since they looked last.
	broken   []brokenStream
	breaches []string
}

var _ http.RoundTripper = (*ownWebConn)(nil)

// rawRefusal is an HTTP status with what goes with it.
type rawRefusal struct {
	code   int
	header http.Header
	body   []byte
}

// ownResponse is the response to a request of the program's own client.
type ownResponse struct {
	request *http.Request
	// began is closed once there is head, or err in its place.
	began chan struct{}
	head  *http.Response
	err   error
	// stream carries the answer if it comes as events. leftAt is when the client gave the request up, cancelled says that it told the server so; they
	// are noted only for the judges of streams.
	stream    eventStream
	leftAt    time.Time
	cancelled bool
}

// dialOwnWeb makes a connection of the program's own client to a server, which is its RoundTripper.
func (t *Transport) dialOwnWeb(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	c := &ownWebConn{baseConn: newBaseConn(t, sink), numbered: t.web == scenario.WebNumbered, requests: map[string][]*exchange{}}
	cfg := web.Config{
		URL: t.url, Headers: t.Headers, MaxMessage: t.MaxMessage, Grace: t.Grace, Client: &http.Client{Transport: c}, Rand: t.random,
	}
	if t.token != nil {
		cfg.Auth = t.token
	}
	client, err := web.NewHTTP(cfg).Dial(ctx, sink)
	if err != nil {
		return nil, err
	}
	c.client = client
	t.remote.onDialed(c)
	go func() { // ends with the connection
		<-client.Released()
		_, ended := client.Send(context.Background(), transports.Message{Method: "ping", ID: 1, Body: []byte("{}")})
		c.mu.Lock()
		saidGoodbye := c.closing
		c.judgeGoodbye(ended)
		c.mu.Unlock()
		if !saidGoodbye {
			c.remote.onClosing(c, false)
		}
		c.releaseConn(c)
	}()
	return client, nil
}

// RoundTrip implements http.RoundTripper.
func (c *ownWebConn) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GetConn != nil {
		trace.GetConn(req.URL.Host)
	}
	c.mu.Lock()
	c.judgeSession(req)
	c.mu.Unlock()
	if isRefusedCaller(req.Header) {
		return &http.Response{StatusCode: http.StatusUnauthorized, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Body: http.NoBody,
			Header: http.Header{"Www-Authenticate": {`Bearer error="invalid_token"`}}}, nil
	}
	switch req.Method {
	case http.MethodGet:
		x := &exchange{method: "GET", header: headersOf(req), done: make(chan struct{}), own: newOwnResponse(req)}
		x.markGiven()
		c.remote.onStreamWanted(c, x)
		return x.awaitHead()
	case http.MethodDelete:
		return c.takeGoodbye(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close()
	return c.postMessage(req, body)
}

// newOwnResponse makes the response to a request that has none yet.
func newOwnResponse(req *http.Request) *ownResponse {
	return &ownResponse{request: req, began: make(chan struct{})}
}

// headersOf returns the headers of a request as the machines read them.
func headersOf(req *http.Request) map[string]string {
	h := make(map[string]string, len(req.Header))
	for name, values := range req.Header {
		h[http.CanonicalHeaderKey(name)] = values[0]
	}
	return h
}

// postMessage hands a message over and waits for the beginning of its response.
func (c *ownWebConn) postMessage(req *http.Request, body []byte) (*http.Response, error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	x := &exchange{method: m.Method, caller: messages.CallerOf(req.Context()), body: body, header: headersOf(req), done: make(chan struct{}),
		own: newOwnResponse(req)}
	if m.Method != "" {
		x.id = string(m.ID)
	}
	if m.Method == "tools/call" {
		x.call = callOf(body)
	}
	c.mu.Lock()
	if m.Method == "notifications/cancelled" {
		c.noteCancelled(cancelledOf(body))
	}
	refuse := c.refuseAll
	if x.id != "" {
		c.requests[x.id] = append(c.requests[x.id], x)
	} else {
		c.notices = append(c.notices, x)
	}
	handedOver := c.opened && refuse == nil
	x.handedOver = handedOver
	switch {
	case refuse != nil:
		refuse(x)
	case !handedOver:
		c.held = append(c.held, x)
	}
	c.mu.Unlock()
	if handedOver {
		x.markGiven()
		c.remote.onSent(c, x)
	}
	select {
	case <-x.own.began:
	case <-req.Context().Done():
		if c.giveUp(x) {
			return nil, req.Context().Err()
		}
	}
	return x.own.head, x.own.err
}

// markGiven tells the client that a connection has its request, so that the server may have it, too.
func (x *exchange) markGiven() {
	if trace := httptrace.ContextClientTrace(x.own.request.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// awaitHead waits for the beginning of a response.
func (x *exchange) awaitHead() (*http.Response, error) {
	select {
	case <-x.own.began:
		return x.own.head, x.own.err
	case <-x.own.request.Context().Done():
		return nil, x.own.request.Context().Err()
	}
}

// giveUp ends an exchange whose client waits no longer; false if its response has begun.
func (c *ownWebConn) giveUp(x *exchange) bool {
	c.mu.Lock()
	if x.completed {
		c.mu.Unlock()
		return false
	}
	select {
	case <-x.own.began:
		c.mu.Unlock()
		return false
	default:
	}
	c.forgetExchange(x)
	c.mu.Unlock()
	c.remote.onAbandoned(c, x)
	return true
}

// forgetExchange ends an exchange. The caller holds mu.
func (c *ownWebConn) forgetExchange(x *exchange) {
	x.completeLocked(transports.Written, nil)
	isSame := func(y *exchange) bool { return x == y }
	c.held, c.notices = slices.DeleteFunc(c.held, isSame), slices.DeleteFunc(c.notices, isSame)
	if rest := slices.DeleteFunc(c.requests[x.id], isSame); len(rest) > 0 {
		c.requests[x.id] = rest
	} else {
		delete(c.requests, x.id)
	}
}

// beginResponse begins a response. The caller holds mu.
func (x *exchange) beginResponse(status int, header http.Header, body io.ReadCloser, length int64) {
	x.own.head = &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: body, ContentLength: length, Request: x.own.request,
	}
	close(x.own.began)
}

// failExchange ends an exchange as a network does that breaks: err in the place of its response, or in the middle of it. The caller holds mu.
func (c *ownWebConn) failExchange(x *exchange, err error) {
	select {
	case <-x.own.began:
		x.own.stream.breakOff(err)
	default:
		x.own.err = err
		close(x.own.began)
	}
	c.forgetExchange(x)
}

// refuseRaw answers an exchange with a status. The caller holds mu.
func (c *ownWebConn) refuseRaw(x *exchange, r *rawRefusal) {
	c.denied = c.denied || r.code == http.StatusUnauthorized || r.code == http.StatusForbidden
	select {
	case <-x.own.began: // the status has gone out, and only the connection can break
		x.own.stream.breakOff(syscall.ECONNRESET)
	default:
		x.beginResponse(r.code, r.header.Clone(), io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body)))
	}
	c.forgetExchange(x)
}

// takeRaw returns the refusal that was prepared, and forgets it. The caller holds mu.
func (c *ownWebConn) takeRaw() *rawRefusal {
	r := c.raw
	c.raw = nil
	return r
}

// prepareRefusal says how the next refusal goes over the wire.
func (c *ownWebConn) prepareRefusal(code int, retryAfter time.Duration, header map[string]string, body []byte) {
	r := &rawRefusal{code, http.Header{}, body}
	for name, value := range header {
		r.header.Set(name, value)
	}
	if retryAfter > 0 {
		r.header.Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	c.mu.Lock()
	c.raw = r
	c.mu.Unlock()
}

// Send, Close, Negotiated, Released and Info are those of the client's end.
func (c *ownWebConn) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	return c.client.Send(ctx, m)
}
func (c *ownWebConn) Close(ctx context.Context) error { return c.client.Close(ctx) }
func (c *ownWebConn) Negotiated(version string)       { c.client.Negotiated(version) }
func (c *ownWebConn) Released() <-chan struct{}       { return c.client.Released() }
func (c *ownWebConn) Info() transports.Info           { return c.client.Info() }

// acceptOpening implements conn. The messages that waited follow in their order.
func (c *ownWebConn) acceptOpening(session string) bool {
	if !c.answerOpening(session, nil) {
		return false
	}
	c.mu.Lock()
	held := c.held
	c.held = nil
	for _, x := range held {
		x.handedOver = true
	}
	c.mu.Unlock()
	for _, x := range held {
		x.markGiven()
		c.remote.onSent(c, x)
	}
	return true
}

// refuseOpening implements conn. Later messages get the same answer.
func (c *ownWebConn) refuseOpening(err *transports.Error, _ transports.Delivery) bool {
	if !c.answerOpening("", err) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.takeRaw()
	c.refuseAll = func(x *exchange) {
		if raw != nil {
			x.markGiven()
			c.refuseRaw(x, raw)
			return
		}
		c.failExchange(x, networkErrorOf(err, syscall.ECONNREFUSED))
	}
	for _, x := range c.allExchanges() {
		c.refuseAll(x)
	}
	return true
}

// networkErrorOf returns what a network says in the place of an answer: another error than one of the network as it is, and else cause.
func networkErrorOf(err *transports.Error, cause error) error {
	if err != nil && err.Class != messages.ClassNetwork {
		return err
	}
	return cause
}

// allExchanges returns every exchange that has not ended, in the order of their ids. The caller holds mu.
func (c *ownWebConn) allExchanges() (all []*exchange) {
	for _, id := range slices.Sorted(maps.Keys(c.requests)) {
		all = append(all, c.requests[id]...)
	}
	return append(all, c.notices...)
}

// markTaken implements conn: the server answers a notification with 202.
func (c *ownWebConn) markTaken(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.id != "" || c.notReading || x.completed {
		return
	}
	x.beginResponse(http.StatusAccepted, http.Header{}, http.NoBody, 0)
	c.forgetExchange(x)
}

// setReading implements conn.
func (c *ownWebConn) setReading(reading bool) {
	c.mu.Lock()
	c.notReading = !reading
	notices := slices.Clone(c.notices)
	c.mu.Unlock()
	if reading {
		for _, x := range notices {
			c.markTaken(x)
		}
	}
}

// denyExchange implements conn.
func (c *ownWebConn) denyExchange(reply string, _ transports.Delivery, err *transports.Error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw := c.takeRaw()
	xs := c.requests[reply]
	if reply == "" {
		xs = c.notices
	}
	switch {
	case len(xs) == 0:
		return false
	case raw != nil:
		c.refuseRaw(xs[0], raw)
	default:
		c.failExchange(xs[0], networkErrorOf(err, syscall.ECONNRESET))
	}
	return true
}

// endRemote implements conn: every exchange breaks. A later message shows whether the server is back.
func (c *ownWebConn) endRemote(e ending) {
	c.mu.Lock()
	c.dead = true
	c.listening.breakOff(syscall.ECONNRESET)
	for _, x := range c.allExchanges() {
		c.failExchange(x, syscall.ECONNRESET)
	}
	closing := c.closing
	c.mu.Unlock()
	if closing {
		c.markExited(e.text)
	}
}

// takeGoodbye takes the DELETE of a client that has closed, and answers it when the server has ended its side.
func (c *ownWebConn) takeGoodbye(req *http.Request) (*http.Response, error) {
	x := &exchange{method: "DELETE", done: make(chan struct{}), own: newOwnResponse(req)}
	x.markGiven()
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.remote.onClosing(c, false)
	select {
	case <-c.remoteExited:
		x.beginResponse(http.StatusOK, http.Header{}, http.NoBody, 0)
		return x.own.head, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// deliverBytes implements conn: a reader of event streams skips what is no event.
func (c *ownWebConn) deliverBytes([]byte) {}

// lockedRandom draws numbers in [0,1) for any goroutine.
type lockedRandom struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (r *lockedRandom) drawNumber() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.Float64()
}
