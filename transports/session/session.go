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
	poster transports.Poster
	// life ends with the session; the background sends stop with it.
	life    context.Context
	endLife context.CancelFunc

	begun atomic.Bool // Handshake was called
	info  atomic.Pointer[Info]
	// modern is what requests carry, nil before the handshake and in the legacy era. It is set before info.
	modern atomic.Pointer[modern]
	// taskSupport is what the last list of tools says about tasks, by the tool's name.
	taskSupport atomic.Pointer[map[string]string]
	heard       atomic.Int64 // when the last message came, a moment

	// mu guards what follows. Nothing blocks and nothing foreign is called while it is held.
	mu        sync.Mutex
	lastID    int64
	pending   map[int64]*flight       // nil after the end
	idle      []*flight               // for reuse
	gates     []*Gate                 // those that are open: usually one
	asks      map[string]serves       // the server's requests that are being answered, by id
	visits    map[string]*arrival     // where a person was sent, by the server's id of it
	alarm     alarm                   // for the clocks of pending
	follows   map[*following]struct{} // calls that are tasks, or may become one
	leftovers []leftover              // requests that were given up and not answered, the oldest first
	// afterDeath runs when the session has died.
	afterDeath []func()
	closing    bool            // Close was called
	reason     *messages.Error // why it ended; nil while it lives
	down       bool            // the connection reported its end
	settled    bool            // no goroutine is begun any more

	goroutines sync.WaitGroup
	dead       chan struct{}
	released   chan struct{}

	outbox    lane // answers and cancellations on their way to the server
	callbacks lane
	news      news
	offers    atomic.Pointer[offers] // nil until somebody asks for a list
	// listed is the newest tool list.
	listed atomic.Pointer[ToolList]
	// mirrored are the mirrors of the newest tool list.
	mirrored atomic.Pointer[map[string]mirror]
	// relisting is held by the one who lists the tools again because a call was refused for its headers.
	relisting turn
	// subscriptions are the resources that are watched.
	subscriptions subscriptions
	streams       streams
	listing       atomic.Bool           // ListTools has begun to ask
	noise         atomic.Pointer[noise] // nil until there is some
	memory        memory
	counts        counts
}

// Dial opens a connection and returns a session on it that has not shaken hands. An error is a *messages.Error, and
// nothing is left open then. ctx bounds the opening only.
func Dial(ctx context.Context, t transports.Transport, cfg Config) (*Session, error) {
	s := &Session{
		cfg:      cfg.withDefaults(),
		kind:     t.Kind(),
		pending:  make(map[int64]*flight),
		dead:     make(chan struct{}),
		released: make(chan struct{}),
	}
	s.listed.Store(cfg.Listed)
	s.memory.share = s.cfg.Share
	s.cfg.Listed = nil // or it would stay for as long as the session
	s.life, s.endLife = context.WithCancel(context.Background())
	s.outbox = lane{start: s.spawn, maxItems: 1024, maxBytes: 1 << 20}
	s.callbacks = lane{start: s.spawn, maxItems: 256, maxBytes: 1 << 20, memory: &s.memory}

	conn, err := t.Dial(ctx, (*sink)(s))
	if err != nil {
		s.endLife()
		s.memory.end()
		return nil, translate("connect", err)
	}
	s.mu.Lock()
	s.conn = conn
	s.poster, _ = conn.(transports.Poster)
	down, failed := s.down, s.reason != nil
	s.mu.Unlock()
	// The sink may have been busy before there was a connection to act on; now there is one.
	switch {
	case down:
		s.finish()
	case failed:
		s.spawn(s.closeConn)
	}
	s.outbox.open()
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
	over := s.reason != nil
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
		return s.ended("connect")
	default:
		return nil
	}
}

// ended is why nothing new can be asked: nil while the session lives and nobody closes it. It is a copy, because
// whoever gets an error may complete it.
func (s *Session) ended(op string) *messages.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.reason != nil:
		e := *s.reason
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

// Said is Info without a copy, nil before the handshake. Nobody changes it.
func (s *Session) Said() *Info { return s.info.Load() }

// Heard is when the last message of the server came, whatever it was; the zero time before the first.
func (s *Session) Heard() time.Time {
	if at := s.heard.Load(); at != 0 {
		return begun.Add(time.Duration(at)) // on the monotonic clock: nobody sets that
	}
	return time.Time{}
}

// Work is what the processes of the connection have done since they began: see transports.Worker. The error of a connection
// without processes is procinfo.ErrUnknown.
func (s *Session) Work() (procinfo.Work, error) {
	if w, ok := s.conn.(transports.Worker); ok {
		return w.Work()
	}
	return procinfo.Work{}, procinfo.ErrUnknown
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
		g.shut()
	}
	if err := s.conn.Close(ctx); err != nil {
		return translate("connect", err)
	}
	return nil
}

// die ends the conversation: gates closed, waiting calls ended, Dead closed. The first reason counts.
func (s *Session) die(reason *messages.Error) (first bool) {
	s.mu.Lock()
	if s.reason != nil {
		s.mu.Unlock()
		return false
	}
	s.reason = reason
	waiting, gates, after := s.pending, s.gates, s.afterDeath
	s.pending, s.gates, s.idle, s.afterDeath = nil, nil, nil, nil
	if s.alarm.timer != nil {
		s.alarm.timer.Stop()
	}
	s.mu.Unlock()

	for _, g := range gates {
		g.shut()
	}
	for _, f := range waiting {
		f.answer <- answer{kind: answerLost}
	}
	s.endLife()
	close(s.dead)
	for _, f := range after {
		go f()
	}
	return true
}

// fail ends the session for a reason of ours and lets the connection go. It does not block. cause may be an error that
// somebody else gets too: what is only about one request is left out of the reason.
func (s *Session) fail(cause *messages.Error) {
	reason := *cause
	reason.Op, reason.Outcome, reason.Tool, reason.Code, reason.Data = "connect", "", "", 0, nil
	if !s.die(&reason) {
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

// finish waits for the connection's release and the session's goroutines, then closes Released. It is called once.
func (s *Session) finish() {
	go func() {
		defer close(s.released)
		defer s.caught()
		<-s.conn.Released()
		s.mu.Lock()
		s.settled = true
		s.mu.Unlock()
		s.goroutines.Wait()
		s.memory.end()
	}()
}

// spawn runs f on a goroutine of the session. It reports false if the session has settled: then f does not run.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled {
		return false
	}
	s.goroutines.Go(func() {
		defer s.caught()
		f()
	})
	return true
}

// caught is deferred where code of ours, or a callback, might panic: that ends this session and nothing else.
func (s *Session) caught() {
	if v := recover(); v != nil {
		s.fail(&messages.Error{
			Class: messages.ClassPanic,
			Text:  "a bug was caught: " + messages.Line(fmt.Sprint(v), 200),
			Err:   &panicked{stack: debug.Stack()},
		})
	}
}

// panicked is the cause of a ClassPanic; its text is the stack, without values.
type panicked struct{ stack []byte }

func (p *panicked) Error() string { return string(p.stack) }
