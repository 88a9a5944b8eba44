package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Timing holds the durations of the shell. The zero value of a field means its default.
type Timing struct {
	// Quiet and MaxWait coalesce list_changed notifications: a re-list begins after 50 ms without another one, or 1 s
	// after the first. A longer Quiet saves lists, a shorter one shows new tools sooner. For a server that announces a
	// change whenever it is listed, and has none, Quiet doubles with each list that brought nothing, up to MaxWait.
	Quiet, MaxWait time.Duration
	// ListTimeout bounds a re-list; 30 s.
	ListTimeout time.Duration
	// Drain is how long admitted calls may go on when a server is removed, reconnected or loses its credentials; 5 s.
	Drain time.Duration
	// ProbeEvery is the silence after which a remote connection is asked for a sign of life; 15 s, negative never: any
	// message of the server counts as life. ProbeTimeout bounds the answer; 10 s. A refused connection counts at once,
	// silence after ProbeStrikes (3) questions, one after the other. So a peer that vanished is noticed within
	// ProbeEvery + ProbeStrikes × ProbeTimeout (45 s). Less notices sooner, and gives up servers that were only busy.
	ProbeEvery, ProbeTimeout time.Duration
	ProbeStrikes             int
}

// WithDefaults fills the zero fields.
func (t Timing) WithDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.Quiet, 50*time.Millisecond)
	def(&t.MaxWait, time.Second)
	def(&t.ListTimeout, 30*time.Second)
	def(&t.Drain, 5*time.Second)
	def(&t.ProbeEvery, 15*time.Second)
	def(&t.ProbeTimeout, 10*time.Second)
	if t.ProbeStrikes == 0 {
		t.ProbeStrikes = 3
	}
	return t
}

// ServerConfig is what a server actor is made of. What it points to outlives the actor.
type ServerConfig struct {
	Name string
	Spec *messages.Spec
	Init lifecycle.Init
	*Common
	// Epoch is newer than every epoch of an earlier actor of this server, and older than every epoch to come.
	Epoch uint64
	// Seen is the ticket of the newest Look that an earlier actor of this server may have been sent.
	Seen uint64
	Cell *Cell
	// Holder keeps the attempt that runs, so that it can be ended when the actor is gone.
	Holder *Holder
	// Known is a lazy server's list of tools from an earlier life, nil if there is none: the whole list.
	Known *session.ToolList
	// Rand draws for the server's sessions.
	Rand func() float64
}

// Common is what all servers of a manager are made of. Nobody writes it once a server was made.
type Common struct {
	Hub      *Hub
	Registry *Ref
	// Open makes the transport of a spec. It runs in the attempt's goroutine and may block.
	Open func(name string, spec *messages.Spec) (transports.Transport, error)
	// AwaitCredentials returns nil when there may be other credentials for a server than those it refused, and an error when ctx ends.
	// It runs in a goroutine of its own while the server needs credentials. nil: only a person helps.
	AwaitCredentials func(ctx context.Context, name string, spec *messages.Spec) error
	// Session is the template of every session's configuration.
	Session session.Config
	// Handlers, if not nil, is asked at each dial who answers what the server asks. It must not block.
	Handlers func(server string) session.Handlers
	Timing   Timing // WithDefaults
	// MaxInFlight and MaxQueued are the bounds of a spec that says none: see messages.Spec. 0 is no bound, and the default.
	MaxInFlight, MaxQueued int
	// Filter, if not nil, takes those out of a list that are not to be offered, and puts them among the quarantined with the
	// reason. It is asked for each new list, and again by Rescreen. It must not block, nor change what it is given.
	Filter func(name string, spec *messages.Spec, list *session.ToolList) *session.ToolList
	// Prepare, if not nil, gets each list that a server gives before Screen does, in the attempt's goroutine: it may block, not
	// longer than ctx, and must not change what it is given.
	Prepare func(ctx context.Context, name string, spec *messages.Spec, list *session.ToolList)
	// Remember keeps a lazy server's whole list of tools, whatever its spec offers of it, for later lives; nil to keep none.
	// It must not block.
	Remember func(name string, spec *messages.Spec, list *session.ToolList)
	// PhaseChanged, if not nil, is told of every server that moves to another phase, in the order in which that happens. It runs in
	// the turn of the server's actor, and must not block.
	PhaseChanged func(v *View, was messages.Phase)
	Log          *zap.Logger
}

// Ref points to an actor that may be replaced by a successor. Safe for concurrent use.
type Ref struct {
	mu       sync.Mutex
	pid      *actor.PID
	replaced chan struct{}
}

// Set replaces the actor.
func (r *Ref) Set(pid *actor.PID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced != nil {
		close(r.replaced)
	}
	r.pid, r.replaced = pid, make(chan struct{})
}

// PID is the actor now, and a channel that is closed when another takes its place.
func (r *Ref) PID() (*actor.PID, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid, r.replaced
}

// Holder points to the attempt of a server's current actor, and keeps what outlives one actor.
type Holder struct {
	current atomic.Pointer[attempt]
	// era is what the server turned out to speak, EraAuto before it is known. Only the current actor writes it.
	era atomic.Value
}

// Era is the era that the server was found to speak, EraAuto if that is not known.
func (h *Holder) Era() messages.Era {
	era, _ := h.era.Load().(messages.Era)
	return era
}

// Abandon ends the attempt that an actor left behind, without draining. The release is reported to the supervisor.
func (h *Holder) Abandon() {
	if a := h.current.Load(); a != nil {
		a.shutDown(0)
	}
}

// Epoch is that of the newest attempt, 0 if there was none. A grant that no attempt followed has nothing to release.
func (h *Holder) Epoch() uint64 {
	if a := h.current.Load(); a != nil {
		return a.epoch
	}
	return 0
}

// Words of a server actor to its supervisor, its parent. Effect is one of lifecycle.Ask, Unask, Report, Answer, Up,
// Decline, Gone.
//
// Life is the ServerConfig.Epoch of the actor that says it: the library hands an actor's last words over after it has told of
// its end, when another actor may bear the name. Attempt is the newest attempt that the actor knew of when it spoke, so
// that what it asks for without knowing of a grant on its way can be told from what it asks for after it.
type FromServer struct {
	Name       string
	ActorEpoch uint64
	Attempt    uint64
	Effect     lifecycle.Effect
}

// AttemptReleased tells the supervisor that everything an epoch held is gone.
type AttemptReleased struct {
	Name  string
	Epoch uint64
}

// CPUTimeMeasured tells the supervisor what the processes of an attempt that has not answered have done since they began: how long they
// were on a processor, and how long they wanted one and had none.
type CPUTimeMeasured struct {
	Name        string
	Epoch       uint64
	Ran, Waited time.Duration
}

// Scheduled is the supervisor's answer to a Report, with the count of failures that it keeps.
type Scheduled struct {
	lifecycle.Scheduled
	Attempts int
}

// Stop is lifecycle.Remove with a bound for the calls that are in flight.
type Stop struct{ Drain time.Duration }

// Displace ends the attempt Epoch if its handshake has not been answered: the start gate gives its place to servers that
// have not been tried. Released and a Report of ClassExhausted follow. An attempt that has answered goes on.
type Displace struct{ Epoch uint64 }

// Barrier is handled after everything that was sent before it: View.Seen tells.
type Barrier struct{ Ticket uint64 }

// ProbeNow asks a connected remote server for a sign of life at once: the machine has slept.
type ProbeNow struct{}

type (
	toolsChanged struct{ epoch uint64 }
	relistDue    struct {
		epoch uint64
		round int
	}
	idleDue    struct{ epoch uint64 }
	probeDue   struct{ epoch uint64 }
	linkFailed struct {
		epoch uint64
		err   error
	}
	// linkRegistered says that the catalog shows the tools that the link leads to.
	linkRegistered struct{ link *Link }
)

// Server is the actor that owns one server.
type Server struct {
	cfg   ServerConfig
	spec  *messages.Spec
	state lifecycle.State
	root  *actor.RootContext
	self  *actor.PID
	sup   *actor.PID

	att     *attempt
	attSpec *messages.Spec // the spec that the attempt is one of: as it was dialed, or adjusted since
	sess    *session.Session
	info    *session.Info     // nil before the handshake
	list    *session.ToolList // as the server gave it
	// unlisted is why the tools could not be listed when they were asked for last; empty if they could.
	unlisted  string
	tools     *session.ToolList // as offered: after the spec's allow and deny lists, and Screen
	shownHash [32]byte          // hash of what the registry was last told
	link      *Link             // the way to the gate that is open
	last      transports.Info

	// A server is seen as connected when its tools are in the catalog and not before, so that whoever sees the one may
	// rely on the other. registering says that the registry has not published them yet; while withheld, unseen is the
	// state that was seen last.
	registering, withheld bool
	lastSeenState         *lifecycle.State

	since        time.Time
	connectCount int
	attempts     int
	timeouts     int // attempts in a row that took too long
	// initializeFirst is in which order the next attempt asks. It says nothing about the era, which an attempt that timed out has
	// not found: the machine may have been busy.
	initializeFirst bool
	drainTime       time.Duration
	seen            uint64

	dirtySince      time.Time // of the burst that is being coalesced
	futileLists     int       // lists in a row that were announced and brought nothing
	listed          time.Time // when the last list was there
	relistRound     int
	relist          *time.Timer
	changeNoted     *atomic.Bool // a toolsChanged of this epoch waits in the mailbox
	lastUse         atomic.Int64
	idle            *time.Timer
	probe           *time.Timer
	probing         bool
	strikes         int
	lastProbeAnswer time.Time // when a question was last answered, by whatever

	cancelAwait context.CancelFunc // ends the wait for other credentials; nil while there is none
	awaitCount  int                // numbers the waits
}

// NewServer makes the actor. Its parent must be the supervisor.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{cfg: cfg, spec: cfg.Spec, list: cfg.Known, drainTime: cfg.Timing.Drain, seen: cfg.Seen}
	s.filterTools()
	return s
}

// Receive implements actor.Actor.
func (s *Server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.root, s.self, s.sup = ctx.ActorSystem().Root, ctx.Self(), ctx.Parent()
		s.since = time.Now()
		s.state.Epoch = s.cfg.Epoch
		s.applyEvent(s.cfg.Init)
	case *actor.Stopped:
		s.releaseAll()
	case Scheduled:
		s.attempts = m.Attempts
		s.applyEvent(m.Scheduled)
	case ReplaceSpec:
		s.replaceSpec(m)
	case RefilterTools:
		s.refilterTools()
	case Displace:
		s.displaceAttempt(m.Epoch)
	case Barrier:
		s.seen = m.Ticket
		s.publishView(s.state)
	case Stop:
		s.drainTime = m.Drain
		s.applyEvent(lifecycle.Remove{})
	case lifecycle.Announce:
		s.shownHash = [32]byte{}
		s.applyEvent(m)
	case lifecycle.Event:
		s.applyEvent(m)
	case dialDone:
		if s.isCurrent(m.epoch) {
			s.sess = m.sess
		}
		s.applyEvent(lifecycle.Dialed{Epoch: m.epoch})
	case installStarted:
		s.applyEvent(lifecycle.Installing{Epoch: m.epoch})
	case cpuTimeMeasured:
		if s.isCurrent(m.epoch) {
			s.root.Send(s.sup, CPUTimeMeasured{s.cfg.Name, m.epoch, m.ran, m.waited})
		}
	case handshakeDone:
		if s.isCurrent(m.epoch) {
			s.info, s.sess = m.info, m.sess
			s.rememberEra(m.info.Era)
			s.initializeFirst = false
		}
		s.applyEvent(lifecycle.Greeted{Epoch: m.epoch})
	case listDone:
		s.handleListDone(m)
	case stepFailed:
		s.handleStepFailed(m)
	case connLost:
		if s.isCurrent(m.epoch) {
			s.last = m.conn
		}
		s.applyEvent(lifecycle.Lost{Epoch: m.epoch, Cause: s.causeOf(m.err, m.conn)})
	case connClosed:
		if s.isCurrent(m.epoch) {
			if s.sess != nil {
				s.last = m.conn
			}
			s.sess, s.att = nil, nil
		}
		s.applyEvent(lifecycle.Closed{Epoch: m.epoch})
	case toolsChanged:
		if s.isCurrent(m.epoch) {
			s.changeNoted.Store(false)
		}
		s.applyEvent(lifecycle.ToolsChanged{Epoch: m.epoch})
	case relistDue:
		if m.round == s.relistRound {
			s.dirtySince = time.Time{}
			s.applyEvent(lifecycle.RelistDue{Epoch: m.epoch})
		}
	case idleDue:
		s.idleDue(m.epoch)
	case probeDue:
		s.probeDue(m.epoch)
	case ProbeNow:
		if s.isRemote() {
			s.probeNow(s.state.Epoch)
		}
	case probeDone:
		s.handleProbeDone(m)
	case linkFailed:
		s.handleLinkFailed(m)
	case credentialsChanged:
		s.retryCredentials(m)
	case linkRegistered:
		if s.registering && m.link == s.link {
			s.registering = false
			s.publishView(s.state)
		}
	}
}

func (s *Server) isCurrent(epoch uint64) bool { return s.att != nil && s.att.epoch == epoch }

// applyEvent is the one place where the state changes: the pure machine decides, the performer acts, the result is published.
func (s *Server) applyEvent(e lifecycle.Event) {
	before := s.state
	var effects []lifecycle.Effect
	s.state, effects = lifecycle.Step(s.state, e)
	if s.state.Phase != before.Phase {
		s.since = time.Now()
	}
	for _, effect := range effects {
		s.performEffect(effect)
	}
	s.awaitCredentials()
	s.publishView(before)
}

func (s *Server) handleStepFailed(m stepFailed) {
	if s.isCurrent(m.epoch) {
		s.last = m.conn
		if m.step != "relist" && messages.ClassOf(m.err) == messages.ClassTimeout {
			s.timeouts++
		}
		switch {
		case m.step != "handshake":
		case m.eraKnown: // wrongly, perhaps: the next attempt asks
			s.rememberEra(messages.EraAuto)
		case m.diedOnProbe: // the question about the era may be what it does not stand
			s.rememberEra(messages.EraLegacy)
		default: // some wait for ever if they are asked that first, and others do not stand the other order
			s.initializeFirst = !s.initializeFirst && messages.ClassOf(m.err) == messages.ClassTimeout
		}
	}
	cause := s.causeOf(m.err, m.conn)
	switch m.step {
	case "relist":
		if s.isCurrent(m.epoch) {
			s.noteUnlisted(cause)
		}
		s.applyEvent(lifecycle.ListFailed{Epoch: m.epoch, Cause: cause})
	default:
		s.applyEvent(lifecycle.Failed{Epoch: m.epoch, Cause: cause})
	}
}

// handleListDone takes a list. A server that could not give its first one is connected for what else it has: the list that was
// known before stands, and the next one is asked for as if it had changed.
func (s *Server) handleListDone(m listDone) {
	if !s.isCurrent(m.epoch) {
		s.applyEvent(lifecycle.Listed{Epoch: m.epoch})
		return
	}
	if m.listErr == nil {
		s.unlisted = ""
		s.list = &m.list
		s.filterTools()
		s.applyEvent(lifecycle.Listed{Epoch: m.epoch})
		return
	}
	if s.list == nil {
		s.list = &m.list
		s.filterTools()
	}
	s.noteUnlisted(s.causeOf(m.listErr, s.sess.Conn()))
	s.applyEvent(lifecycle.Listed{Epoch: m.epoch})
	s.applyEvent(lifecycle.ToolsChanged{Epoch: m.epoch})
}

// noteUnlisted notes why the tools of a server that lives cannot be listed.
func (s *Server) noteUnlisted(c lifecycle.Cause) {
	s.unlisted = c.Text
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: s.state.Epoch, Phase: s.state.Phase, Step: s.state.Step,
		Text: "its tools cannot be listed: " + c.Text})
}

// displaceAttempt gives the place of an attempt to others. Once the handshake is answered the place is free anyway.
func (s *Server) displaceAttempt(epoch uint64) {
	if s.state.Step != messages.Dialing && s.state.Step != messages.Handshaking {
		return
	}
	s.applyEvent(lifecycle.Failed{Epoch: epoch, Cause: lifecycle.Cause{Class: messages.ClassExhausted, Text: "the handshake was " +
		"not answered yet, and too many servers are as silent: the attempt gave its place to servers that had none; the next " +
		"one is left alone until connectTimeout. Disable servers that never answer"}})
}

// rememberEra remembers the era that the current attempt has found, unless the spec is another one by now.
func (s *Server) rememberEra(era messages.Era) {
	if s.attSpec == s.spec {
		s.cfg.Holder.era.Store(era)
	}
}

// releaseAll releases what the actor held when it ends without having closed it: it panicked, or the system stops.
func (s *Server) releaseAll() {
	defer func() { _ = recover() }() // a panic in Stopped would hang the parent for ever
	for _, t := range []*time.Timer{s.relist, s.idle, s.probe} {
		if t != nil {
			t.Stop()
		}
	}
	if s.cancelAwait != nil {
		s.cancelAwait()
	}
	s.cfg.Holder.Abandon()
}

// causeOf is causeOf without the server's secrets. A server that cannot log in tends to say with what it tried, and the
// cause is shown, kept and logged.
func (s *Server) causeOf(err error, conn transports.Info) lifecycle.Cause {
	c := causeOf(err, conn)
	c.Text = s.cfg.Cell.redactFor(s.spec, c.Text)
	return c
}
