package session

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Config says how to hold a conversation. The zero value works.
type Config struct {
	// ClientName and ClientVersion are what the server is told about us; "mcpvisor" and "0" if empty.
	ClientName, ClientVersion string
	// Versions are the versions of the legacy era to speak, newest first. The default is 2025-11-25, 2025-06-18, 2025-03-26,
	// 2024-11-05. The server is asked for the first; it may choose any other of them.
	Versions []string
	// ModernVersions are the versions of the modern era to speak, newest first. The default is 2026-07-28.
	ModernVersions []string
	// Era pins the era; EraAuto finds it out. Known is what was found out about this server before: it is tried first and
	// given up if it is wrong.
	Era, Known messages.Era
	// InitializeFirst asks initialize before server/discover, for a server that gave no answer in the other order: some wait for
	// ever if their first message is another. The era is found out all the same.
	InitializeFirst bool
	// Listed is what the server listed over an earlier connection, nil if there was none: what it lists again, byte for byte,
	// is not read again and shares its memory.
	Listed *ToolList
	// ProbeWait is how long a server may be silent about server/discover before it is asked initialize as well; 1 s if 0.
	// Longer makes silent servers of the legacy era start later, shorter asks slow servers of the modern era twice.
	ProbeWait time.Duration
	// Handlers answer what the server asks of us.
	Handlers Handlers
	// LogLevel is the least severe level of log messages to ask for, one of messages.LogLevels; empty leaves it to the
	// server.
	LogLevel string
	// Share is what the server may hold of the memory for all servers, and what its floods cost; nil is no bound. The list of
	// tools stays counted when the session has ended: see budget.Share.Keep.
	Share *budget.Share
	// MaxPages bounds the pages of one list, 1,000 if 0; MaxTools its entries, of whatever kind, 100,000 if 0. A list beyond
	// either fails as ClassProtocol. They stop a server that invents pages for ever; no real list comes near.
	MaxPages, MaxTools int
	// NoiseLimit is how many lines that are no JSON-RPC message are ignored per second, 1,000 if 0. One more ends the
	// session as ClassProtocol: such a server logs to its standard output and costs more than it gives.
	NoiseLimit int
	// Rand draws the random part of pauses, numbers in [0,1); nil uses the runtime's generator. It is called from several
	// goroutines at once.
	Rand func() float64
	// OnToolsChanged is called after the server said that its tool list changed, or when that may have been missed. Several
	// changes that arrive before the call begins are one call; the last one is never lost. nil: nobody is told. The same
	// for the prompts, and for the resources and their templates, whose kept lists are forgotten before the call.
	OnToolsChanged, OnPromptsChanged, OnResourcesChanged func()
	// OnResourceUpdated is called after the server said that a resource was updated that it was asked to watch
	// (Subscribe), or one inside it, or when that may have been missed. Several updates of one resource that arrive before
	// the call begins are one call; the last one is never lost. Beyond 1,024 resources at a time, those that are not
	// subscribed to are dropped. nil: nobody is told.
	OnResourceUpdated func(uri string)
	// OnLog is called for each log message of the server, in order: level, logger (may be empty) and data as the server
	// sent them, so neutralise them before showing them. What arrives faster than OnLog returns is dropped beyond 256
	// messages or 1 MiB, and counted. nil: they are ignored.
	//
	// These functions run one at a time, never on the goroutine that reads, and may use the session. They should return
	// soon: Released waits for them. A panic of one ends the session as ClassPanic.
	OnLog func(level, logger string, data json.RawMessage)
}

// DefaultVersions are the protocol versions that are spoken if Config.Versions is empty, newest first.
func DefaultVersions() []string { return slices.Clone(defaultVersions) }

// All sessions share these; nobody writes them.
var (
	defaultVersions       = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
	defaultModernVersions = []string{"2026-07-28"}
)

func (c Config) withDefaults() Config {
	if c.ClientName == "" {
		c.ClientName = "mcpvisor"
	}
	if c.ClientVersion == "" {
		c.ClientVersion = "0"
	}
	if len(c.Versions) == 0 {
		c.Versions = defaultVersions
	}
	if len(c.ModernVersions) == 0 {
		c.ModernVersions = defaultModernVersions
	}
	if c.ProbeWait <= 0 {
		c.ProbeWait = time.Second
	}
	if c.MaxPages <= 0 {
		c.MaxPages = 1_000
	}
	if c.MaxTools <= 0 {
		c.MaxTools = 100_000
	}
	if c.NoiseLimit <= 0 {
		c.NoiseLimit = 1_000
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// Session is one MCP conversation. It lives as long as its connection and never reconnects: what comes after its end is
// another Session. All methods are safe for concurrent use.
type Session struct {
	cfg  Config
	kind messages.TransportKind
	conn transports.Conn // set once, before Dial returns
	// poster is conn if that can be sent to without waiting, nil otherwise. It is set with conn.
	poster transports.AsyncSender
	// lifetime ends with the session; the background sends stop with it.
	lifetime    context.Context
	endLifetime context.CancelFunc

	handshakeBegun atomic.Bool // Handshake was called
	info           atomic.Pointer[Info]
	// modern is what requests carry, nil before the handshake and in the legacy era. It is set before info.
	modern atomic.Pointer[modernParams]
	// taskSupport is what the last list of tools says about tasks, by the tool's name.
	taskSupport atomic.Pointer[map[string]string]
	lastHeard   atomic.Int64 // when the last message came, a moment

	// mu guards what follows. Nothing blocks and nothing foreign is called while it is held.
	mu                sync.Mutex
	lastID            int64
	pending           map[int64]*pendingRequest         // nil after the end
	idleRequests      []*pendingRequest                 // for reuse
	gates             []*Gate                           // those that are open: usually one
	serverRequests    map[string]servedRequest          // the server's requests that are being answered, by id
	completions       map[string]*elicitationCompletion // where a person was sent, by the server's id of it
	requestTimer      requestTimer                      // for the clocks of pending
	followedTasks     map[*followedTask]struct{}        // calls that are tasks, or may become one
	abandonedRequests []abandonedRequest                // requests that were given up and not answered, the oldest first
	// afterDeath runs when the session has died.
	afterDeath  []func()
	closing     bool            // Close was called
	endReason   *messages.Error // why it ended; nil while it lives
	connEnded   bool            // the connection reported its end
	spawnClosed bool            // no goroutine is begun any more

	goroutines sync.WaitGroup
	dead       chan struct{}
	released   chan struct{}

	writeQueue    serialQueue // answers and cancellations on their way to the server
	callbacks     serialQueue
	notifications notifications
	listCaches    atomic.Pointer[listCaches] // nil until somebody asks for a list
	// toolList is the newest tool list.
	toolList atomic.Pointer[ToolList]
	// toolHeaders are the mirrors of the newest tool list.
	toolHeaders atomic.Pointer[map[string]paramHeaders]
	// relistLock is held by the one who lists the tools again because a call was refused for its headers.
	relistLock contextMutex
	// subscriptions are the resources that are watched.
	subscriptions  subscriptions
	streams        subscriptionStreams
	toolsRequested atomic.Bool                  // ListTools has begun to ask
	noise          atomic.Pointer[noiseCounter] // nil until there is some
	memory         memory
	counts         counts
}

// Dial opens a connection and returns a session on it that has not shaken hands. An error is a *messages.Error, and
// nothing is left open then. ctx bounds the opening only.
func Dial(ctx context.Context, t transports.Transport, cfg Config) (*Session, error) {
	s := &Session{
		cfg:      cfg.withDefaults(),
		kind:     t.Kind(),
		pending:  make(map[int64]*pendingRequest),
		dead:     make(chan struct{}),
		released: make(chan struct{}),
	}
	s.toolList.Store(cfg.Listed)
	s.memory.share = s.cfg.Share
	s.cfg.Listed = nil // or it would stay for as long as the session
	s.lifetime, s.endLifetime = context.WithCancel(context.Background())
	s.writeQueue = serialQueue{spawn: s.spawn, maxItems: 1024, maxBytes: 1 << 20}
	s.callbacks = serialQueue{spawn: s.spawn, maxItems: 256, maxBytes: 1 << 20, memory: &s.memory}

	conn, err := t.Dial(ctx, (*sink)(s))
	if err != nil {
		s.endLifetime()
		s.memory.releaseAll()
		return nil, translateError("connect", err)
	}
	s.mu.Lock()
	s.conn = conn
	s.poster, _ = conn.(transports.AsyncSender)
	down, failed := s.connEnded, s.endReason != nil
	s.mu.Unlock()
	// The sink may have been busy before there was a connection to act on; now there is one.
	switch {
	case down:
		s.releaseWhenDone()
	case failed:
		s.spawn(s.closeConn)
	}
	s.writeQueue.open()
	s.callbacks.open()
	return s, nil
}

// Dead is closed when the connection has died or was closed. Every waiting call has its end then and every gate is
// closed.
func (s *Session) Dead() <-chan struct{} { return s.dead }

// AfterDeath runs f in a goroutine of its own once Dead is closed; at once if it is. Until then it costs no goroutine, which
// is why whoever watches many sessions asks for it instead of waiting for Dead. f must recover from its own panics.
func (s *Session) AfterDeath(f func()) {
	s.mu.Lock()
	over := s.endReason != nil
	if !over {
		s.afterDeath = append(s.afterDeath, f)
	}
	s.mu.Unlock()
	if over {
		go func() {
			<-s.dead
			f()
		}()
	}
}

// Err is why the session ended, a *messages.Error, and nil before Dead. Its class is ClassCanceled after Close.
func (s *Session) Err() error {
	select {
	case <-s.dead:
		return s.endedError("connect")
	default:
		return nil
	}
}

// endedError is why nothing new can be asked: nil while the session lives and nobody closes it. It is a copy, because
// whoever gets an error may complete it.
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

// Released is closed when everything that the session held is gone: what the connection held, and every goroutine of
// the session. It follows Dead within the bounds of the transport, provided that the callbacks return.
func (s *Session) Released() <-chan struct{} { return s.released }

// Info is what the handshake brought, the zero value before it.
func (s *Session) Info() Info {
	if info := s.info.Load(); info != nil {
		return *info
	}
	return Info{}
}

// SharedInfo is Info without a copy, nil before the handshake. Nobody changes it.
func (s *Session) SharedInfo() *Info { return s.info.Load() }

// LastMessageAt is when the last message of the server came, whatever it was; the zero time before the first.
func (s *Session) LastMessageAt() time.Time {
	if at := s.lastHeard.Load(); at != 0 {
		return clockStart.Add(time.Duration(at)) // on the monotonic clock: nobody sets that
	}
	return time.Time{}
}

// Work is what the processes of the connection have done since they began: see transports.Worker. The error of a connection
// without processes is procinfo.ErrUnknown.
func (s *Session) Work() (procinfo.Usage, error) {
	if w, ok := s.conn.(transports.ProcessConn); ok {
		return w.Work()
	}
	return procinfo.Usage{}, procinfo.ErrUnknown
}

// Conn is what can be told about the connection now, also after its end.
func (s *Session) Conn() transports.Info { return s.conn.Info() }

// Close ends the session. Every gate is closed at once; calls that wait may still get their answer while the
// connection closes, and end with it at the latest. Close returns nil when Dead is closed and the connection has
// released what it held, or a *messages.Error when ctx has ended; the closing goes on then. It is idempotent. It may be
// called from a callback, and therefore does not wait for callbacks: Released does.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	gates := s.gates
	s.gates = nil
	s.mu.Unlock()
	for _, g := range gates {
		g.markClosed()
	}
	if err := s.conn.Close(ctx); err != nil {
		return translateError("connect", err)
	}
	return nil
}

// endSession ends the conversation: gates closed, waiting calls ended, Dead closed. The first reason counts.
func (s *Session) endSession(reason *messages.Error) (first bool) {
	s.mu.Lock()
	if s.endReason != nil {
		s.mu.Unlock()
		return false
	}
	s.endReason = reason
	waiting, gates, after := s.pending, s.gates, s.afterDeath
	s.pending, s.gates, s.idleRequests, s.afterDeath = nil, nil, nil, nil
	if s.requestTimer.timer != nil {
		s.requestTimer.timer.Stop()
	}
	s.mu.Unlock()

	for _, g := range gates {
		g.markClosed()
	}
	for _, f := range waiting {
		f.answer <- answer{kind: answerSessionEnded}
	}
	s.endLifetime()
	close(s.dead)
	for _, f := range after {
		go f()
	}
	return true
}

// failSession ends the session for a reason of ours and lets the connection go. It does not block. cause may be an error that
// somebody else gets too: what is only about one request is left out of the reason.
func (s *Session) failSession(cause *messages.Error) {
	reason := *cause
	reason.Op, reason.Outcome, reason.Tool, reason.Code, reason.Data = "connect", "", "", 0, nil
	if !s.endSession(&reason) {
		return
	}
	s.mu.Lock()
	ready := s.conn != nil
	s.mu.Unlock()
	if ready { // otherwise Dial does it
		s.spawn(s.closeConn)
	}
}

func (s *Session) closeConn() {
	// No deadline: the transport has its own bounds, and Released needs the end of it anyway.
	_ = s.conn.Close(context.Background()) // the reason of the end is known already
}

// releaseWhenDone waits for the connection's release and the session's goroutines, then closes Released. It is called once.
func (s *Session) releaseWhenDone() {
	go func() {
		defer close(s.released)
		defer s.recoverPanic()
		<-s.conn.Released()
		s.mu.Lock()
		s.spawnClosed = true
		s.mu.Unlock()
		s.goroutines.Wait()
		s.memory.releaseAll()
	}()
}

// spawn runs f on a goroutine of the session. It reports false if the session has settled: then f does not run.
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

// recoverPanic is deferred where code of ours, or a callback, might panic: that ends this session and nothing else.
func (s *Session) recoverPanic() {
	if v := recover(); v != nil {
		s.failSession(&messages.Error{
			Class: messages.ClassPanic,
			Text:  "a bug was caught: " + messages.Line(fmt.Sprint(v), 200),
			Err:   &panicError{stack: debug.Stack()},
		})
	}
}

// panicError is the cause of a ClassPanic; its text is the stack, without values.
type panicError struct{ stack []byte }

func (p *panicError) Error() string { return string(p.stack) }
