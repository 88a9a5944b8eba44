package session

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/headers"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/memory"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/questions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/serial"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
)

// Session is one MCP conversation. It lives as long as its connection and never reconnects: after its end the owner dials
// another Session. All methods are safe for concurrent use.
//
// Locks are taken in this order: a serial.Mutex; the mutex of a lists.Cache, of subscriptions.Watches, then of its Streams; the
// mutex of a serial.Queue; Session.mu; the mutex of a [CallTimeout]. So nothing is put into a queue, and no goroutine is
// spawned, while Session.mu is held.
type Session struct {
	cfg  Config
	kind messages.TransportKind
	// conn is set once, under mu, before Dial returns. Until then only the sink runs, and looks at it under mu.
	conn transports.Conn
	// poster is conn if conn can take a message without waiting until it is written, nil otherwise. It is set with conn.
	poster transports.AsyncSender
	// lifetime ends with the session. Background sends and the handlers' contexts derive from it, so that they stop with the
	// session.
	lifetime    context.Context
	endLifetime context.CancelFunc
	// caller is the one for whom the session was dialled, empty for none; lifetime carries it.
	caller string

	handshakeBegun atomic.Bool // Handshake was called
	info           atomic.Pointer[Info]
	// modern holds the fields that every request of the modern era carries; nil before the handshake and in the legacy era.
	// It is stored before info, so a goroutine that sees info sees the right era.
	modern atomic.Pointer[modernParams]
	// taskSupport maps the name of a tool to the task support that the newest list of tools declares for it.
	taskSupport atomic.Pointer[map[string]string]
	lastHeard   atomic.Int64 // the monotime of the server's last message; 0 before the first

	// mu guards the fields down to spawnClosed. Its holder neither blocks nor calls code of other packages that could.
	mu sync.Mutex
	// lastID is the id of the newest request. Ids are positive and never reused in one session, so a late answer finds no
	// request.
	lastID            int64
	pending           map[int64]*pendingRequest  // by id; nil after the end, which is how senders see it
	idleRequests      []*pendingRequest          // kept for reuse, at most maxIdleRequests
	gates             []*Gate                    // the open ones: usually one
	serverRequests    map[string]servedRequest   // the server's requests that a handler is answering, by the server's id
	requestTimer      requestTimer               // for the deadlines of pending
	followedTasks     map[*followedTask]struct{} // calls that are tasks, or may become one
	abandonedRequests []abandonedRequest         // given up by their callers and not answered, the oldest first
	// afterDeath are the functions of AfterDeath; endSession runs each in a goroutine of its own.
	afterDeath  []func()
	closing     bool            // Close was called
	endReason   *messages.Error // why the session ended; nil while it lives
	connEnded   bool            // the connection called sink.Down
	spawnClosed bool            // spawn refuses; releaseWhenDone waits for the goroutines

	// goroutines counts the goroutines of spawn. Nothing is added once spawnClosed is set, so that Wait cannot race with Add.
	goroutines sync.WaitGroup
	// endSession closes dead, releaseWhenDone closes released.
	dead     chan struct{}
	released chan struct{}

	writeQueue serial.Queue // answers and cancellations for the server
	// callbacks runs the functions of Config for logs and progress; notifications those for changes. Both run one function at
	// a time.
	callbacks     serial.Queue
	notifications notifications
	listCaches    atomic.Pointer[listCaches] // nil until a caller asks for a list
	// toolList is the newest list of tools, or Config.Listed before the first; nil if there was neither.
	toolList atomic.Pointer[ToolList]
	// toolHeaders maps a tool to the HTTP headers that repeat its arguments (x-mcp-header), by the newest list.
	toolHeaders atomic.Pointer[map[string]headers.Params]
	// relistLock is held by the caller that lists the tools again because a call was refused for its headers
	// (HeaderMismatch), so that many refused calls cost one listing.
	relistLock serial.Mutex
	// failedRelists counts the listings under relistLock that failed.
	failedRelists atomic.Int64
	// watches are the resources that the session watches; streams are the standing requests of the modern era that carry the
	// server's notifications. watchLock is held by the caller that changes the watches, while it waits for the server, so that
	// two changes cannot overtake each other.
	watchLock      serial.Mutex
	watches        subscriptions.Watches
	streams        subscriptions.Streams
	toolsRequested atomic.Bool                  // ListTools has begun to ask: changes matter from then on
	noise          atomic.Pointer[noiseCounter] // nil until the first line that is no JSON-RPC
	completions    questions.Completions        // URLs that a person was sent to
	// memory is the account of Config.Share, counts the numbers that Stats returns.
	memory memory.Account
	counts counts
}

// Dial opens a connection with t and returns a session on it that has not shaken hands; call [Session.Handshake] next. An
// error is a *messages.Error, and nothing is left open then. ctx bounds the opening only.
func Dial(ctx context.Context, t transports.Transport, cfg Config) (*Session, error) {
	s := &Session{
		cfg:      cfg.withDefaults(),
		kind:     t.Kind(),
		pending:  make(map[int64]*pendingRequest),
		dead:     make(chan struct{}),
		released: make(chan struct{}),
	}
	s.streams.Conversation = (*conversation)(s)
	s.toolList.Store(cfg.Listed)
	// The owner may go on with that list if the first one of this connection fails.
	if cfg.Listed != nil {
		s.storeTaskSupport(cfg.Listed.Tools)
	}
	s.memory.Share = s.cfg.Share
	// Without this the earlier list would live as long as the session, although toolList soon holds a newer one.
	s.cfg.Listed = nil // or it would stay for as long as the session
	// What the session sends on its own account has the caller for whom it was dialled.
	s.caller = messages.CallerOf(ctx)
	s.lifetime, s.endLifetime = context.WithCancel(messages.WithCaller(context.Background(), s.caller))
	// The bounds of both queues: a message of ours or a callback that does not fit is dropped and counted, so that the reader
	// never waits. The answers to the server's requests are mandatory, and bounded where the requests are admitted.
	s.writeQueue = serial.Queue{Spawn: s.spawn, MaxItems: 1024, MaxBytes: 1 << 20}
	s.callbacks = serial.Queue{Spawn: s.spawn, MaxItems: 256, MaxBytes: 1 << 20, Memory: &s.memory}

	conn, err := t.Dial(ctx, (*sink)(s))
	if conn == nil && err == nil {
		err = &transports.Error{Class: messages.ClassProtocol, Text: "the transport's Dial returned neither a connection nor an error"}
	}
	if err != nil {
		// The sink may have reserved memory for messages that came before the transport gave up.
		s.endLifetime()
		s.memory.ReleaseAll()
		return nil, outcome.TranslateError("connect", err)
	}
	s.mu.Lock()
	s.conn = conn
	s.poster, _ = conn.(transports.AsyncSender)
	down, failed := s.connEnded, s.endReason != nil
	s.mu.Unlock()
	// The connection may have called the sink before s.conn was set: Down and failSession then left their part to this place.
	switch {
	case down:
		s.releaseWhenDone()
	case failed:
		s.spawn(s.closeConn)
	}
	// Both queues only collected until now, because their items use s.conn.
	s.writeQueue.Open()
	s.callbacks.Open()
	return s, nil
}

// Dead returns a channel that is closed when the connection has died or was closed. By then every waiting call has its end
// and every gate is closed.
func (s *Session) Dead() <-chan struct{} { return s.dead }

// AfterDeath runs f in a goroutine of its own once Dead is closed; at once if it is. Until then it costs no goroutine, so an
// owner of many sessions should use it instead of waiting for Dead. f must recover from its own panics: its goroutine is not
// one of the session.
func (s *Session) AfterDeath(f func()) {
	s.mu.Lock()
	over := s.endReason != nil
	if !over {
		s.afterDeath = append(s.afterDeath, f)
	}
	s.mu.Unlock()
	if over {
		// endSession sets endReason a moment before it closes dead; f must not see that gap.
		go func() {
			<-s.dead
			f()
		}()
	}
}

// Err returns the reason for which the session ended, a *messages.Error, and nil before Dead. Its class is ClassCanceled
// after Close.
func (s *Session) Err() error {
	select {
	case <-s.dead:
		return s.endedError("connect")
	default:
		return nil
	}
}

// endedError returns the reason for which nothing new can be sent: nil while the session lives and is not being closed. It is
// a copy, because the callers complete the error (operation, outcome, tool).
func (s *Session) endedError(op string) *messages.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.endReason != nil:
		e := *s.endReason
		e.Op = op
		return &e
	case s.closing:
		return &messages.Error{Op: op, Class: messages.ClassCanceled, Text: "the connection is being closed"}
	}
	return nil
}

// Released returns a channel that is closed when nothing of the session is left: neither a resource of the connection nor a
// goroutine of the session. It follows Dead within the bounds of the transport, provided that the callbacks return.
func (s *Session) Released() <-chan struct{} { return s.released }

// Info returns the server's description of itself from the handshake, the zero value before it.
func (s *Session) Info() Info {
	if info := s.info.Load(); info != nil {
		return *info
	}
	return Info{}
}

// SharedInfo is Info without a copy, nil before the handshake. The caller must not change it.
func (s *Session) SharedInfo() *Info { return s.info.Load() }

// LastMessageAt returns the time of the server's last message of any kind; the zero time before the first.
func (s *Session) LastMessageAt() time.Time {
	if at := s.lastHeard.Load(); at != 0 {
		return monotime.Time(at).OnCalendar()
	}
	return time.Time{}
}

// Work returns the usage of the connection's processes since they began: see [transports.ProcessConn]. For a connection
// without processes the error is procinfo.ErrUnknown.
func (s *Session) Work() (procinfo.Usage, error) {
	if w, ok := s.conn.(transports.ProcessConn); ok {
		return w.Work()
	}
	return procinfo.Usage{}, procinfo.ErrUnknown
}

// Conn returns a description of the connection as it is now, also after its end; an empty one if the transport's method panics.
func (s *Session) Conn() (info transports.Info) {
	// Owners call it where no other panic is caught.
	defer func() { _ = recover() }()
	return s.conn.Info()
}

// Close ends the session. Every gate is closed at once; calls that wait may still get their answer while the connection
// closes, and end with it at the latest. Close returns nil when Dead is closed and the connection has released its resources,
// or a *messages.Error when ctx has ended; the closing goes on then. It is idempotent. A callback may call it, and therefore
// it does not wait for callbacks: Released does.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	gates := s.gates
	s.gates = nil
	s.mu.Unlock()
	// closing keeps OpenGate from adding another gate, so these are all.
	for _, g := range gates {
		g.markClosed()
	}
	if err := s.conn.Close(ctx); err != nil {
		return outcome.TranslateError("connect", err)
	}
	s.noteReleased()
	return nil
}

// endSession ends the conversation: it closes the gates, ends the waiting calls and closes Dead. It reports false if the
// session had ended before: the first reason counts. It takes mu and does not block.
func (s *Session) endSession(reason *messages.Error) (first bool) {
	s.mu.Lock()
	if s.endReason != nil {
		s.mu.Unlock()
		return false
	}
	s.endReason = reason
	waiting, gates, after := s.pending, s.gates, s.afterDeath
	// Every map and slice that could grow is taken away under the lock; from here on registerRequest and OpenGate refuse, so
	// the loops below meet every request and every gate.
	s.pending, s.gates, s.idleRequests, s.afterDeath = nil, nil, nil, nil
	if s.requestTimer.timer != nil {
		s.requestTimer.timer.Stop()
	}
	s.mu.Unlock()

	for _, g := range gates {
		g.markClosed()
	}
	// Those who asked first wake first, and so are first again where they ask another connection.
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		// This cannot block: the channel has room for one answer, and only the goroutine that removes a request from
		// pending sends one.
		waiting[id].answer <- outcome.Answer{Kind: outcome.AnswerSessionEnded}
	}
	s.endLifetime()
	close(s.dead)
	for _, f := range after {
		go f()
	}
	return true
}

// failSession ends the session for a reason of ours and closes the connection in the background. It does not block. cause may
// be an error that a caller gets too: the fields about that one request are left out of the reason.
func (s *Session) failSession(cause *messages.Error) {
	reason := *cause
	reason.Op, reason.Outcome, reason.Tool, reason.Code, reason.Data = "connect", "", "", 0, nil
	if !s.endSession(&reason) {
		return
	}
	s.mu.Lock()
	ready := s.conn != nil
	s.mu.Unlock()
	if ready { // otherwise Dial closes it, as soon as it has it
		s.spawn(s.closeConn)
	}
}

// closeConn closes the connection without a deadline: the transport bounds the closing itself, and Released needs its end
// anyway.
func (s *Session) closeConn() {
	_ = s.conn.Close(context.Background()) // the reason of the end is known already
	s.noteReleased()
}

// noteReleased ends the session of a connection that was closed and has not called Down, as it should have: a transport of the
// program's own could keep its server's name occupied for ever otherwise.
func (s *Session) noteReleased() {
	s.mu.Lock()
	ended := s.connEnded
	s.mu.Unlock()
	if ended {
		return
	}
	go func() { // ends with the connection's release
		defer s.recoverPanic()
		<-s.conn.Released()
		(*sink)(s).Down(&transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	}()
}

// releaseWhenDone waits for the connection's release and the session's goroutines, then closes Released. It runs once: from
// Down, or from Dial if Down came before the connection was known. Its goroutine is not one of spawn, because it waits for
// those.
func (s *Session) releaseWhenDone() {
	go func() {
		defer close(s.released)
		defer s.recoverPanic()
		<-s.conn.Released()
		// The connection calls the sink no more. Only the goroutines that run now are left to wait for.
		s.mu.Lock()
		s.spawnClosed = true
		s.mu.Unlock()
		s.goroutines.Wait()
		s.memory.ReleaseAll()
	}()
}

// spawn runs f on a goroutine of the session, whose panic ends the session. It reports false if releaseWhenDone already waits
// for the last goroutines: then f does not run.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawnClosed {
		return false
	}
	s.goroutines.Go(func() {
		defer s.recoverPanic()
		f()
	})
	return true
}

// recoverPanic is deferred where our own code, or a callback, might panic: the panic ends this session and not the program.
func (s *Session) recoverPanic() {
	if v := recover(); v != nil {
		s.failSession(&messages.Error{
			Class: messages.ClassPanic,
			Text:  "a bug was caught: " + messages.Line(fmt.Sprint(v), 200),
			Err:   &panicError{stack: debug.Stack()},
		})
	}
}

// panicError is the cause of a ClassPanic. Its text is the stack of the goroutine that panicked.
type panicError struct{ stack []byte }

func (p *panicError) Error() string { return string(p.stack) }
