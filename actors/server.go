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

// Timing holds the durations by which server actors work. The zero value of a field means its default.
type Timing struct {
	// Quiet and MaxWait coalesce list_changed notifications: a re-list begins after 50 ms without another one, or 1 s
	// after the first. A longer Quiet saves lists, a shorter one shows new tools sooner. For a server that announces a
	// change whenever it is listed, and has none, Quiet doubles with each list that brought nothing, up to MaxWait.
	Quiet, MaxWait time.Duration
	// ListTimeout bounds a list after the first one, which the connect timeout bounds; 30 s.
	ListTimeout time.Duration
	// Drain bounds the time for which admitted calls continue when a server is removed, reconnected or loses its credentials; 5 s.
	Drain time.Duration
	// ProbeEvery is the silence after which a remote connection is pinged; 15 s, negative never. Any message of the server ends
	// the silence. ProbeTimeout bounds the answer; 10 s. A refused connection is lost at once, a silent one after ProbeStrikes (3)
	// pings in a row. So a peer that vanished is noticed within ProbeEvery + ProbeStrikes × ProbeTimeout (45 s). Smaller values
	// notice it sooner, and give up servers that were only busy.
	ProbeEvery, ProbeTimeout time.Duration
	ProbeStrikes             int
}

// WithDefaults returns the durations with the defaults in the place of zero fields.
func (t Timing) WithDefaults() Timing {
	// A negative duration is kept: it has a meaning of its own, such as "never".
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

// ServerConfig has what NewServer needs for one server. What it points to outlives the actor.
type ServerConfig struct {
	Name string
	Spec *messages.Spec
	// Init is the first event; it has the spec's flags and the ticket of the callers that wait.
	Init lifecycle.Init
	*Common
	// Epoch is higher than every epoch of an earlier actor of this server, and lower than every epoch to come.
	Epoch uint64
	// Seen is the ticket of the newest Barrier that an earlier actor of this server may have been sent.
	Seen uint64
	Cell *Cell
	// Holder keeps the attempt that runs, so that it can be ended when the actor is gone.
	Holder *Holder
	// Known is a lazy server's whole list of tools from an earlier run, nil if there is none.
	Known *session.ToolList
	// Rand draws the jitter of the server's sessions.
	Rand func() float64
}

// Common has what all servers of a manager share. It is not written after the first server was made.
type Common struct {
	Hub      *Hub
	Registry *Ref
	// Open makes the transport of a spec. It runs in the attempt's goroutine and may block.
	Open func(ctx context.Context, name string, spec *messages.Spec) (transports.Transport, error)
	// AwaitCredentials returns nil when there may be other credentials for a server than those that it refused, and an error when
	// ctx ends. It runs in a goroutine of its own while the server needs credentials. nil: only a command of a person helps.
	AwaitCredentials func(ctx context.Context, name string, spec *messages.Spec) error
	// Session is the template of every session's configuration; startAttempt fills in the rest.
	Session session.Config
	// Handlers, if not nil, is called at each dial and returns the functions that answer the server's requests. It must not block.
	Handlers func(server string) session.Handlers
	Timing   Timing // WithDefaults
	// MaxInFlight and MaxQueued are the bounds for a spec that has none: see messages.Spec. 0 is no bound, and the default.
	MaxInFlight, MaxQueued int
	// Filter, if not nil, moves the tools that may not be offered from the list to the quarantined ones, with the reason. It is
	// called for each new list, and again after RefilterTools. It must not block, nor change its argument.
	Filter func(name string, spec *messages.Spec, list *session.ToolList) *session.ToolList
	// Prepare, if not nil, gets each list that a server gives before Filter does, in the attempt's goroutine: it may block until ctx
	// ends, and must not change its argument.
	Prepare func(ctx context.Context, name string, spec *messages.Spec, list *session.ToolList)
	// Remember stores a lazy server's whole list of tools, before the spec's filters, for later runs; nil to store none. It must
	// not block.
	Remember func(name string, spec *messages.Spec, list *session.ToolList)
	// RememberAll has Remember called for every server.
	RememberAll bool
	// PhaseChanged, if not nil, is called for every server that changes its phase, in order. It runs in the turn of the server's
	// actor, and must not block.
	PhaseChanged func(v *View, was messages.Phase)
	Log          *zap.Logger
}

// Ref points to an actor that may be replaced by a successor. Safe for concurrent use.
type Ref struct {
	mu       sync.Mutex
	pid      *actor.PID
	replaced chan struct{}
}

// Set replaces the actor, and closes the channel that PID returned with the one before.
func (r *Ref) Set(pid *actor.PID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.replaced != nil {
		close(r.replaced)
	}
	// Callers that wait for an answer of the old actor begin again with the new one.
	r.pid, r.replaced = pid, make(chan struct{})
}

// PID returns the present actor, and a channel that is closed when another one takes its place.
func (r *Ref) PID() (*actor.PID, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid, r.replaced
}

// Holder points to the attempt of a server's current actor, and keeps what outlives one actor.
type Holder struct {
	current atomic.Pointer[attempt]
	// era is the protocol era that the server was found to speak, EraAuto before it is known. Only the current actor writes it.
	era atomic.Value
}

// Era returns the era that the server was found to speak, EraAuto if that is not known.
func (h *Holder) Era() messages.Era {
	era, _ := h.era.Load().(messages.Era)
	return era
}

// Abandon ends the attempt that a dead actor left behind, without draining. The release is reported to the supervisor.
func (h *Holder) Abandon() {
	if a := h.current.Load(); a != nil {
		a.shutDown(0)
	}
}

// Epoch returns the epoch of the newest attempt, 0 if there was none. A grant that no attempt followed has nothing to release.
func (h *Holder) Epoch() uint64 {
	if a := h.current.Load(); a != nil {
		return a.epoch
	}
	return 0
}

// FromServer carries an effect of a server's actor to the supervisor, its parent. Effect is one of lifecycle.Ask, Unask, Report,
// Answer, Install, Up, Decline, Gone.
//
// ActorEpoch is the ServerConfig.Epoch of the sender: the library may deliver an actor's last messages after it has reported the
// actor's end, when a successor has the same server. Attempt is the newest epoch that the sender knew of: the supervisor can
// tell a request that was sent in ignorance of a grant on its way from one that was sent after it.
type FromServer struct {
	Name       string
	ActorEpoch uint64
	Attempt    uint64
	Effect     lifecycle.Effect
}

// AttemptReleased reports to the supervisor that everything that an epoch held is gone: process, connection, goroutines.
type AttemptReleased struct {
	Name  string
	Epoch uint64
}

// CPUTimeMeasured reports to the supervisor how long the processes of an attempt without an answer have run on a processor since
// they began, and how long they waited for one. The start gate uses it to see whether the machine is overloaded.
type CPUTimeMeasured struct {
	Name        string
	Epoch       uint64
	Ran, Waited time.Duration
}

// Scheduled answers a Report: the supervisor's decision, with the count of failures that it keeps.
type Scheduled struct {
	lifecycle.Scheduled
	Attempts int
}

// Stop removes the server, like lifecycle.Remove; Drain bounds the calls that still run.
type Stop struct{ Drain time.Duration }

// Displace ends the attempt Epoch if its handshake has not been answered, because the start gate needs its place for servers that
// have not been tried. AttemptReleased and a Report of ClassExhausted follow. An attempt that was answered continues.
type Displace struct{ Epoch uint64 }

// Barrier is handled after everything that was sent to the actor before it; View.Seen then shows its ticket.
type Barrier struct{ Ticket uint64 }

// ProbeNow makes the actor ping a connected remote server at once, because the machine has slept and the peer may be gone.
type ProbeNow struct{}

// The messages that the actor's timers, sessions and calls send to it. Each has the epoch that it belongs to.
type (
	toolsChanged struct{ epoch uint64 }
	relistDue    struct {
		epoch uint64
		round int
	}
	idleDue  struct{ epoch uint64 }
	probeDue struct{ epoch uint64 }
	// linkFailed carries an error of a call that may concern the whole connection.
	linkFailed struct {
		epoch uint64
		err   error
	}
	// linkRegistered says that the catalog now shows the tools to which the link leads.
	linkRegistered struct{ link *Link }
)

// Server is the actor of one server. Its fields belong to the actor: only its turns touch them, unless a line says otherwise.
type Server struct {
	cfg   ServerConfig
	spec  *messages.Spec
	state lifecycle.State
	root  *actor.RootContext
	self  *actor.PID
	sup   *actor.PID

	att *attempt
	// attSpec is the spec that the attempt was dialled with, or the one that was adjusted around it since.
	attSpec *messages.Spec
	sess    *session.Session
	// info is nil before the handshake. list is the whole list as the server gave it.
	info *session.Info
	list *session.ToolList
	// unlisted is why the newest attempt to list the tools failed; empty if it succeeded.
	unlisted string
	// overdue is set when the time of the present attempt has passed and its transport has not returned: the text names the call that the
	// attempt waits for. The next attempt empties it.
	overdue   string
	tools     *session.ToolList // as offered: after the spec's allow and deny lists, and Filter
	shownHash [32]byte          // the hash of the list that the registry got last
	link      *Link             // leads to the open gate
	last      transports.Info

	// A server is published as connected only when its tools are in the catalog, so that a caller that sees the phase finds the
	// tools. registering says that the registry has not published them yet. While withheld is set, lastSeenState is the state that
	// was published last.
	registering, withheld bool
	lastSeenState         *lifecycle.State

	// since is the beginning of the phase; connectCount counts the connections, attempts the failures as the supervisor reports them.
	since        time.Time
	connectCount int
	attempts     int
	// timeouts counts the attempts in a row that took too long: each makes the next bound longer.
	timeouts int
	// initializeFirst makes the next attempt send initialize before it asks for the era. It is no statement about the era, which an
	// attempt that timed out has not found: the machine may have been busy.
	initializeFirst bool
	drainTime       time.Duration
	seen            uint64

	dirtySince  time.Time // when the burst of changes began that is being coalesced; zero if none is
	futileLists int       // lists in a row that the server announced and that brought nothing new
	listed      time.Time // when the last list came
	// relistRound numbers the relist timers: a message of an older one is ignored.
	relistRound int
	relist      *time.Timer
	changeNoted *atomic.Bool // a toolsChanged of this epoch is in the mailbox; the session's goroutine sets it
	// lastUse is written by calls and read by the actor: see Link.lastUse.
	lastUse atomic.Int64
	idle    *time.Timer
	probe   *time.Timer
	probing bool
	// probing says that a ping runs; strikes counts the pings in a row without any sign of life.
	strikes         int
	lastProbeAnswer time.Time // the time at which a ping was last answered, by a result or an error

	cancelAwait context.CancelFunc // ends the goroutine that waits for other credentials; nil while there is none
	awaitCount  int                // numbers those waits, so that a late message of an earlier one is ignored
}

// NewServer makes the actor; its parent must be the supervisor. A list from an earlier run is filtered at once, so that a lazy
// server can show it before any connection.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{cfg: cfg, spec: cfg.Spec, list: cfg.Known, drainTime: cfg.Timing.Drain, seen: cfg.Seen}
	s.filterTools()
	return s
}

// Receive implements actor.Actor. A panic is not caught here: the supervisor replaces the actor, because its state may be broken.
// Every message with an epoch is compared with the present attempt, or handed to lifecycle.Step, which drops stale ones.
func (s *Server) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.root, s.self, s.sup = ctx.ActorSystem().Root, ctx.Self(), ctx.Parent()
		s.since = time.Now()
		s.state.Epoch = s.cfg.Epoch
		s.applyEvent(s.cfg.Init)
	case *actor.Stopped:
		s.releaseAll()
	// The count is stored before the event, so that the history's sentence has the new number.
	case Scheduled:
		s.attempts = m.Attempts
		s.applyEvent(m.Scheduled)
	case ReplaceSpec:
		s.replaceSpec(m)
	case RefilterTools:
		s.refilterTools()
	// The message may arrive after the answer to the handshake: displaceAttempt checks.
	case Displace:
		s.displaceAttempt(m.Epoch)
	case Barrier:
		s.seen = m.Ticket
		s.publishView(s.state)
	// The bound of the drain must be known before the machine orders the end.
	case Stop:
		s.drainTime = m.Drain
		s.applyEvent(lifecycle.Remove{})
	// A new registry knows nothing, so the list is sent again even if it is unchanged.
	case lifecycle.Announce:
		s.shownHash = [32]byte{}
		s.applyEvent(m)
	// Commands and grants need no preparation: the machine decides about them in its present state.
	case lifecycle.Event:
		s.applyEvent(m)
	// The session belongs to the actor from here on; a stale one is closed by its attempt.
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
	case stepOverdue:
		s.noteOverdue(m)
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
	// The attempt has released everything; lifecycle may now request the next start.
	case connClosed:
		// A connection that was never opened has no process to report about: the last one's stays visible.
		if s.isCurrent(m.epoch) {
			if s.sess != nil {
				s.last = m.conn
			}
			s.sess, s.att = nil, nil
		}
		s.applyEvent(lifecycle.Closed{Epoch: m.epoch})
	// From here on another notification may be queued.
	case toolsChanged:
		if s.isCurrent(m.epoch) {
			s.changeNoted.Store(false)
		}
		s.applyEvent(lifecycle.ToolsChanged{Epoch: m.epoch})
	// A timer that was replaced may have fired already: its round is old.
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
	// The number distinguishes this wait from earlier ones.
	case credentialsChanged:
		s.retryCredentials(m)
	// Only now is the server published as connected, because its tools can be found.
	case linkRegistered:
		if s.registering && m.link == s.link {
			s.registering = false
			s.publishView(s.state)
		}
	}
}

// isCurrent reports whether an epoch is that of the present attempt.
func (s *Server) isCurrent(epoch uint64) bool { return s.att != nil && s.att.epoch == epoch }

// applyEvent is the only place where the state changes: lifecycle.Step decides, performEffect acts, and the result is published.
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
	// The wait for credentials follows the phase, whichever event changed it.
	s.awaitCredentials()
	s.publishView(before)
}

// handleStepFailed draws conclusions for the next attempt from a step that failed, and reports the failure to the state machine.
func (s *Server) handleStepFailed(m stepFailed) {
	if s.isCurrent(m.epoch) {
		s.last = m.conn
		// Timeouts in a row make the next default bound longer: see opening.Grown.
		if m.step != "relist" && messages.ClassOf(m.err) == messages.ClassTimeout {
			s.timeouts++
		}
		switch {
		case m.step != "handshake":
		// A server that was updated may speak the modern era now: the next attempt asks for it again.
		case m.eraKnown:
			s.rememberEra(messages.EraAuto)
		// Some servers end on a question that they do not know; the next attempt begins with initialize.
		case m.diedOnProbe:
			s.rememberEra(messages.EraLegacy)
		// Some servers never answer if they are asked for the era first, others fail in the other order: each timeout switches it.
		default:
			s.initializeFirst = !s.initializeFirst && messages.ClassOf(m.err) == messages.ClassTimeout
		}
	}
	// The cause is shown to people and models, so it has no secrets.
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

// handleListDone takes a list into use. If the first list of a server failed and the server has other things to offer, it is
// connected without tools: an earlier list stays in use, and the list is tried again as if it had changed.
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
	// Even an empty list is one: the server is connected with what it has.
	if s.list == nil {
		s.list = &m.list
		s.filterTools()
	}
	s.noteUnlisted(s.causeOf(m.listErr, s.sess.Conn()))
	s.applyEvent(lifecycle.Listed{Epoch: m.epoch})
	s.applyEvent(lifecycle.ToolsChanged{Epoch: m.epoch})
}

// noteUnlisted records why the tools of a connected server cannot be listed, for its status and its history.
func (s *Server) noteUnlisted(c lifecycle.Cause) {
	s.unlisted = c.Text
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: s.state.Epoch, Phase: s.state.Phase, Step: s.state.Step,
		Text: "its tools cannot be listed: " + c.Text})
}

// overdueText says what has not returned, by the step of the attempt.
var overdueText = map[messages.Step]string{
	messages.Dialing:     "the Dial of its transport has not returned",
	messages.Handshaking: "its transport has not returned from the handshake",
	messages.Listing:     "its transport has not returned from the request for the tools",
}

// noteOverdue says, in the server's status, its history and the log, what an attempt waits for whose time is over. What it may hold is not known,
// so that the next attempt has to wait for it.
func (s *Server) noteOverdue(m stepOverdue) {
	if !s.isCurrent(m.epoch) || overdueText[s.state.Step] == "" {
		return
	}
	s.overdue = overdueText[s.state.Step] + ", though its time is over: the next attempt waits for it"
	s.cfg.Cell.History.Add(Entry{Time: time.Now(), Epoch: m.epoch, Phase: s.state.Phase, Step: s.state.Step, Text: s.overdue})
	s.cfg.Log.Warn(s.overdue, zap.String("server", s.cfg.Name), zap.Uint64("epoch", m.epoch))
	s.publishView(s.state)
}

// displaceAttempt gives up an attempt whose place in the start gate is needed. Once the handshake is answered the attempt has no
// place to give.
func (s *Server) displaceAttempt(epoch uint64) {
	if s.state.Step != messages.Dialing && s.state.Step != messages.Handshaking {
		return
	}
	s.applyEvent(lifecycle.Failed{Epoch: epoch, Cause: lifecycle.Cause{Class: messages.ClassExhausted, Displaced: true, Text: "the handshake was " +
		"not answered yet, and too many servers are as silent: the attempt gave its place to servers that had none; the next " +
		"one is left alone until connectTimeout. Disable servers that never answer"}})
}

// rememberEra stores the era that the present attempt has found, unless the spec was replaced since: then it may be another server.
func (s *Server) rememberEra(era messages.Era) {
	// Eras belong to a server; the Holder keeps them over actors, and replaceSpec clears them.
	if s.attSpec == s.spec {
		s.cfg.Holder.era.Store(era)
	}
}

// releaseAll releases what the actor holds when it ends without lifecycle.Gone: it panicked, or the actor system stops.
func (s *Server) releaseAll() {
	// A panic in Stopped would hang the parent for ever.
	defer func() { _ = recover() }()
	s.stopTimers()
	// The goroutine that waits for credentials would otherwise outlive the actor.
	if s.cancelAwait != nil {
		s.cancelAwait()
	}
	s.cfg.Holder.Abandon()
}

// causeOf returns the cause of an error without the server's secrets: a server that refuses credentials tends to quote them, and
// the cause is shown, kept and logged.
func (s *Server) causeOf(err error, conn transports.Info) lifecycle.Cause {
	c := causeOf(err, conn)
	c.Text = s.cfg.Cell.redactFor(s.spec, c.Text)
	return c
}
