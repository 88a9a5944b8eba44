package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Options say what an endpoint serves, to whom, and within which bounds. Service must be set.
type Options struct {
	Service Service
	// Authenticate says in whose name a request is made; its error is the answer 401. nil: all requests are those of one
	// principal without a name.
	Authenticate func(*http.Request) (Principal, error)
	// ExpectHost reports whether a value of Host, without a port and in lower case, is expected beside the names of the loopback;
	// nil: none. AnyHost switches the check off, and that of Origin, where no browser can reach the endpoint: on a unix socket.
	ExpectHost func(host string) bool
	AnyHost    bool
	// MaxBody bounds a message of an agent, 16 MiB if 0. MaxSessions and MaxRequests bound the sessions and the requests in
	// flight of one principal, 16,384 and 1,024 if 0; standing requests (subscriptions/listen) are bounded as sessions are.
	MaxBody                  int64
	MaxSessions, MaxRequests int
	// MaxBytes bounds the messages of one principal that are held at once, but for those below 64 KiB; 256 MiB if 0.
	MaxBytes int64
	// MaxUnread bounds the answers of one agent, on lines or of one session, that wait until it reads them, 64 MiB if 0. Those of one principal
	// over HTTP are bounded by MaxBytes once more. An answer that is too much is dropped, and an error tells the agent so.
	MaxUnread int64
	// Unread counts for Stdio: what is divided among the agents of several calls of it, so that the one which holds most is refused first;
	// nil: one of 256 MiB for this agent alone.
	Unread *budget.Budget
	// MaxConnections bounds the connections of Server, 20,000 if 0. One more takes the place of one on which nobody was let in yet, else of
	// one that waits for its next request; where all are in use, it is closed.
	MaxConnections int
	// SessionIdle is the time after which a session ends that has neither a request nor a stream, 1 h if 0; its agent gets 404
	// and begins another one.
	SessionIdle time.Duration
	// KeepAlive is the time without an event after which a line that means nothing is sent, 15 s if 0.
	KeepAlive time.Duration
	// Began counts for Stdio: when its agent began to wait for the first answer, which is before Stdio is called where something
	// had to be started for it. Zero if that is not known.
	Began time.Time
}

// DefaultMaxBody is the MaxBody of Options that say none.
const DefaultMaxBody = 16 << 20

// withDefaults returns o with each zero bound replaced.
func (o Options) withDefaults() Options {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 16_384
	}
	if o.MaxRequests <= 0 {
		o.MaxRequests = 1_024
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxUnread <= 0 {
		o.MaxUnread = 64 << 20
	}
	if o.Unread == nil {
		o.Unread = budget.New(256 << 20)
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 20_000
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = time.Hour
	}
	if o.KeepAlive <= 0 {
		o.KeepAlive = 15 * time.Second
	}
	return o
}

// Handler is an endpoint over streamable HTTP, for any listener. Safe for concurrent use.
type Handler struct {
	o        Options
	sessions sessions
	// closing is closed at the beginning of the end, lifetime ends with the last request.
	closing   chan struct{}
	closeOnce sync.Once
	lifetime  context.Context //nolint:containedctx // it is that of the endpoint
	cut       context.CancelFunc

	mu      sync.Mutex
	loads   map[string]*load // by the names of principals
	total   int              // requests in flight
	drained chan struct{}    // made by Close, closed with the last request
}

// NewHandler makes an endpoint.
func NewHandler(o Options) *Handler {
	h := &Handler{o: o.withDefaults(), closing: make(chan struct{}), loads: map[string]*load{}}
	h.lifetime, h.cut = context.WithCancel(context.Background())
	h.sessions.idle, h.sessions.most, h.sessions.ended = h.o.SessionIdle, h.o.MaxSessions, h.o.Service.Closed
	return h
}

// Server returns a server for the endpoint, whose connections are bounded and cannot be kept open by silence, nor by reading nothing.
func (h *Handler) Server() *http.Server {
	c := &connections{most: h.o.MaxConnections}
	return &http.Server{Handler: h, ConnState: c.noteState, ConnContext: c.withConn, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: writeTimeout,
		IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// Sessions returns how many sessions of the legacy era are open.
func (h *Handler) Sessions() int { return h.sessions.countSessions() }

// Close ends the endpoint: new requests are refused, standing ones are answered, sessions end, and requests in flight get the
// time of ctx. Those that need more are cut off, and are answered as well. It returns nil if there were none. The answers reach their agents when
// the server has ended by its Shutdown.
func (h *Handler) Close(ctx context.Context) error {
	h.closeOnce.Do(func() { close(h.closing) })
	h.mu.Lock()
	if h.drained == nil {
		h.drained = make(chan struct{})
		if h.total == 0 {
			close(h.drained)
		}
	}
	drained := h.drained
	h.mu.Unlock()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = errors.New("requests of agents were cut off: " + ctx.Err().Error())
	}
	h.cut()
	h.sessions.cutRequests()
	if err != nil {
		// What is cut off has its answer, too: that nothing is known of its outcome.
		last := time.NewTimer(lastAnswers)
		defer last.Stop()
		select {
		case <-drained:
		case <-last.C:
		}
	}
	h.sessions.closeAll()
	return err
}

// lastAnswers is the time for the answers to requests that are cut off at the end.
const lastAnswers = time.Second

// exchange is one request over HTTP that was let in.
type exchange struct {
	w         http.ResponseWriter
	r         *http.Request
	principal Principal
	path      Path
	// message is the message of a POST, and empty for the other methods.
	message message
	// load counts the exchange among those of its principal: as one of kind, and with held bytes of its message. A GET and a DELETE have none.
	load *load
	kind requestKind
	held int64
}

// ServeHTTP implements http.Handler. What a request needs before it is let in is off the stack while it waits for its answer.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := h.admit(w, r)
	if x == nil {
		return
	}
	occupyConnection(r)
	switch r.Method {
	case http.MethodPost:
		h.servePost(x)
	case http.MethodGet:
		h.serveStream(x)
	case http.MethodDelete:
		h.endSession(x)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// admit checks where a request comes from, where it goes, and in whose name it is made. nil: it has its answer.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request) *exchange {
	if r.ContentLength != 0 {
		// Also a request that is refused unread: net/http reads the rest of its body.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // a connection without deadlines cannot be kept
	}
	if !h.o.AnyHost {
		if problem := checkSource(r, h.o.ExpectHost); problem != "" {
			writeError(w, nil, &Error{Code: CodeInvalidRequest, Message: problem, status: http.StatusForbidden})
			return nil
		}
	}
	switch r.URL.Path {
	case "/healthz":
		_, _ = io.WriteString(w, "ok\n")
		return nil
	case "/readyz":
		if !h.o.Service.Ready() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "not ready\n")
			return nil
		}
		_, _ = io.WriteString(w, "ok\n")
		return nil
	}
	path, ok := pathOf(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return nil
	}
	x := &exchange{w: w, r: r, path: path}
	if h.o.Authenticate != nil {
		var err error
		if x.principal, err = h.o.Authenticate(r); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeError(w, nil, &Error{Code: CodeInvalidRequest, Message: err.Error(), status: http.StatusUnauthorized})
			return nil
		}
	}
	return x
}

// Path is the part of the servers that an agent chooses by the path of its requests: /mcp is all that its credential shows, /mcp/s/NAME
// one server of it, /mcp/v/NAME what a view leaves of it. The service sees to it that no path shows more than the credential does.
type Path struct{ Server, View string }

// pathOf reads the path of a request.
func pathOf(path string) (p Path, ok bool) {
	if path == "/mcp" || path == "/mcp/" {
		return p, true
	}
	if p.Server, ok = strings.CutPrefix(path, "/mcp/s/"); ok {
		return p, p.Server != "" && !strings.Contains(p.Server, "/")
	}
	p = Path{}
	p.View, ok = strings.CutPrefix(path, "/mcp/v/")
	return p, ok && p.View != "" && !strings.Contains(p.View, "/")
}

// servePost handles one message.
func (h *Handler) servePost(x *exchange) {
	e := h.receivePost(x)
	if x.load != nil {
		defer h.leaveLoad(x)
	}
	switch {
	case e != nil:
		writeError(x.w, x.message.id, e)
	case isModern(x.r.Header, &x.message):
		h.serveModern(x)
	default:
		h.serveLegacy(x)
	}
}

// receivePost reads the message of a POST, and counts it as long as it is being answered.
func (h *Handler) receivePost(x *exchange) (e *Error) {
	if mediaType(headerOf(x.r.Header, "Content-Type")) != "application/json" {
		return &Error{Code: CodeInvalidRequest, Message: "the Content-Type must be application/json", status: http.StatusUnsupportedMediaType}
	}
	// 2025-11-25: "The client MUST include an Accept header, listing both application/json and text/event-stream". Which of them an answer
	// is depends on what the server says meanwhile.
	if !acceptsType(x.r, "application/json") || !acceptsType(x.r, "text/event-stream") {
		return &Error{Code: CodeInvalidRequest, Message: "the agent must accept application/json and text/event-stream",
			status: http.StatusNotAcceptable}
	}
	if e = h.enterLoad(x); e != nil {
		return e
	}
	body, e := h.readBody(x)
	if e != nil {
		return e
	}
	if x.message, e = readMessage(body); e != nil || !x.message.isRequest() {
		return e
	}
	kind := passingKind
	if x.message.method == "subscriptions/listen" {
		kind = standingKind
		if !h.holdBytes(x, int64(cap(body))) { // they are many, and stay
			return tooManyBytesError()
		}
	}
	return h.beginRequest(x, kind)
}

// headerOf returns the first value of a header by its canonical name, which Header.Get would look up or make anew each time.
func headerOf(h http.Header, name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// bodyTimeout is the time that an agent has for sending a message.
const bodyTimeout = 30 * time.Second

// readBody reads a message, within the bounds.
func (h *Handler) readBody(x *exchange) ([]byte, *Error) {
	tooLarge := func() *Error {
		return &Error{Code: CodeInvalidRequest, Message: "the message is too large", status: http.StatusRequestEntityTooLarge}
	}
	if x.r.ContentLength > h.o.MaxBody {
		return nil, tooLarge()
	}
	// What an agent says of the length is not believed until the bytes are there.
	body := make([]byte, 0, min(max(x.r.ContentLength, 512), freeBytes-1)+1)
	for {
		n, err := x.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > h.o.MaxBody {
			return nil, tooLarge()
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refused(CodeParse, "the message could not be read to its end")
		}
		if len(body) < cap(body) {
			continue
		}
		size := min(2*int64(cap(body)), h.o.MaxBody+1)
		if size > freeBytes && !h.holdBytes(x, size) {
			return nil, tooManyBytesError()
		}
		body = append(make([]byte, 0, size), body...)
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // it had one, or cannot have any
	return body, nil
}

// mediaType returns a type of content without its parameters, in lower case.
func mediaType(value string) string {
	kind, _, _ := strings.Cut(value, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// acceptsType reports whether an agent accepts a type of content. One that says nothing accepts all.
func acceptsType(r *http.Request, kind string) bool {
	values := r.Header["Accept"]
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			switch part = mediaType(part); {
			case part == kind, part == "*/*", strings.HasSuffix(part, "/*") && strings.HasPrefix(kind, part[:len(part)-1]):
				return true
			}
		}
	}
	return len(values) == 0
}

// answerRequest has the service answer a request, and writes the answer.
func (h *Handler) answerRequest(ctx context.Context, x *exchange, r *Request) {
	stream := newEventStream(x.w, h.o.KeepAlive)
	if !r.Modern() {
		stream.keepEvents(r.Session, true)
	}
	r.stream, r.load, r.closing = stream, x.load, h.closing
	modern := r.Modern()
	ctx, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	if modern { // a session ends by itself with the endpoint, and with its credential
		defer context.AfterFunc(h.lifetime, r.cancel)()
		if c := r.Session.Principal.credential; c != nil {
			defer context.AfterFunc(c.known, r.cancel)()
		}
	} else if e := r.Session.beginRequest(r); e != nil {
		stream.stopWriting()
		writeError(x.w, r.ID, e)
		return
	}
	defer r.endHolding()
	result, e := callService(ctx, h.o.Service, r)
	if !modern {
		r.Session.finishRequest(r)
	} else {
		r.ended.Store(true)
	}
	if r.cancelled.Load() {
		stream.endUnanswered()
		return
	}
	if modern && e == nil {
		result = withResultType(result)
	}
	size := int64(len(result))
	if e != nil {
		size = int64(len(e.Raw) + len(e.Data))
	}
	if problem := h.holdAnswer(r, size); problem != nil {
		result, e, size = nil, problem, 0
	}
	defer h.releaseAnswer(r, size)
	b := make([]byte, 0, len(result)+len(r.ID)+128)
	stream.writeAnswer(e.httpStatus(modern), appendAnswer(b, r.ID, result, e))
}

// callService calls the service. A panic of it costs this request.
func callService(ctx context.Context, service Service, r *Request) (result []byte, e *Error) {
	defer func() {
		if recover() != nil {
			result, e = nil, &Error{Code: CodeInternal, Message: "a defect of mcpvisor ended the request"}
		}
	}()
	return service.Handle(ctx, r)
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, id []byte, e *Error) {
	status := e.status
	if status == 0 {
		status = http.StatusOK
	}
	writeJSON(w, status, appendError(nil, id, e))
}
