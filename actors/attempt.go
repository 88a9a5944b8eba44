package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/failure"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// attempt owns everything that one epoch holds, from the dial to the release: the transport, the session, the gates. Its steps run
// in goroutines of their own and post their outcome to the actor; none of them touches the server's state.
type attempt struct {
	epoch uint64
	// name is the server's id, for labels and errors.
	name string
	// spec is the one that was dialled. The actor may adjust its own meanwhile, and hands it to the steps that need it.
	spec *messages.Spec
	// prepare is Common.Prepare.
	prepare func(ctx context.Context, name string, spec *messages.Spec, list *session.ToolList)
	// post sends to the server's actor, and released to the supervisor, which is there also when the actor is gone.
	post     func(any)
	released func(epoch uint64)

	limits opening.Limits

	// mu guards the fields below it. It is never held during I/O.
	mu         sync.Mutex
	ctx        context.Context // see boundContext
	cancel     context.CancelCauseFunc
	opening    opening.State
	checkTimer *time.Timer // calls checkProgress; nil once the bound has ended
	// cfg is kept until the handshake is done, because a second connection may be needed until then.
	transport    transports.Transport // nil until dialled
	cfg          *session.Config
	eraKnown     bool // the session knew in advance that the server speaks the legacy era
	sess         *session.Session
	diedOnProbe  bool
	runningSteps sync.WaitGroup // shutDown waits for them
	// gates holds the current gate last, and before it each older one through which calls still run: a server that is disabled and
	// enabled again on the same connection gets a new gate, and a drain must wait for the calls of all of them.
	gates []*session.Gate
	once  sync.Once // makes shutDown run once
}

// The messages that an attempt posts to its server's actor.
type (
	// dialDone says that the transport is open; sess is the session on it.
	dialDone struct {
		epoch uint64
		sess  *session.Session
	}
	// installStarted says that a runner of packages is at work, and cpuTimeMeasured how busy its processes were.
	installStarted  struct{ epoch uint64 }
	cpuTimeMeasured struct {
		epoch       uint64
		ran, waited time.Duration
	}
	// stepOverdue says that a step has not returned although the bound has ended: a transport does not obey its context.
	stepOverdue struct{ epoch uint64 }
	// handshakeDone brings what the server said of itself.
	handshakeDone struct {
		epoch uint64
		info  *session.Info
		sess  *session.Session // a second one if the first died on the question about the era: see startHandshake
	}
	// listDone brings a whole list of tools.
	listDone struct {
		epoch uint64
		list  session.ToolList
		// listErr is set, without a list, for a server that is worth keeping without tools: see isWorthKeeping.
		listErr error
	}
	// stepFailed ends the attempt, unless the step was a later list.
	stepFailed struct {
		epoch uint64
		step  string // "dial", "handshake", "list", "relist"
		err   error
		conn  transports.Info
		// diedOnProbe says that the connection ended on the question about the era.
		diedOnProbe bool
		// eraKnown says that the session did not ask for the era, because an earlier one had found the legacy era.
		eraKnown bool
	}
	// connLost says that the connection died after the handshake; conn describes its end.
	connLost struct {
		epoch uint64
		err   error
		conn  transports.Info
	}
	// connClosed says that everything is released. It is the last message of an attempt.
	connClosed struct {
		epoch uint64
		conn  transports.Info
	}
	// probeDone is the outcome of a ping that was sent at sentAt; err is nil for an answer.
	probeDone struct {
		epoch  uint64
		sentAt time.Time
		err    error
	}
)

// ErrNotReturned is in the error of a step for which a function of the program had not returned when the step's time was over.
var ErrNotReturned = errors.New("a function of the program has not returned")

// newAttempt makes an attempt whose bound begins now: the connect timeout starts when the start gate grants.
func newAttempt(
	name string, spec *messages.Spec, epoch uint64, limits opening.Limits, post func(any), released func(uint64),
) *attempt {
	a := &attempt{epoch: epoch, name: name, spec: spec, post: post, released: released, limits: limits}
	// All requests of an instance are its principal's.
	a.ctx, a.cancel = context.WithCancelCause(messages.WithCaller(context.Background(), spec.Principal))
	a.startBound()
	return a
}

// endedContext stands for the context of a bound that has ended, so that none need be kept.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// runStep performs one step in a goroutine of its own and posts its message, or a stepFailed. A panic counts as the step's failure.
func (a *attempt) runStep(step string, f func() (any, error)) {
	// The bound is read once: a step that begins within it is judged by it.
	a.runningSteps.Add(1)
	bound := a.boundContext()
	go func() {
		defer a.runningSteps.Done()
		labelGoroutine(a.name, a.spec)
		var msg any
		var err error
		hasReturned := false
		// Deferred, because a function of the program may end the goroutine (runtime.Goexit): the attempt would else never end.
		defer func() {
			if r := recover(); r != nil {
				err = &messages.Error{Op: "connect", Class: messages.ClassPanic, Text: fmt.Sprintf("panic during %s: %v", step, r)}
			} else if !hasReturned {
				err = &messages.Error{Op: "connect", Class: messages.ClassPanic,
					Text: "the goroutine was ended during " + step + " (runtime.Goexit)", Fix: "return an error instead"}
			}
			if err != nil {
				msg = a.failureOf(step, a.explainTimeout(bound, step, err))
			}
			a.post(msg)
		}()
		// An error of the program's own, whose method panics, would end the actor that reads it.
		if msg, err = f(); err != nil {
			_ = err.Error()
		}
		hasReturned = true
	}()
}

// failureOf returns the message about a step that failed: the actor learns with it what the next attempt should do differently.
func (a *attempt) failureOf(step string, err error) stepFailed {
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := stepFailed{epoch: a.epoch, step: step, err: err, diedOnProbe: a.diedOnProbe, eraKnown: a.eraKnown}
	if a.sess != nil {
		failed.conn = a.sess.Conn()
	}
	return failed
}

// explainTimeout replaces the error of a step that the bound ended: the layers below only know that a context ended, and the person
// wants to know what had not happened by when.
func (a *attempt) explainTimeout(bound context.Context, step string, err error) error {
	// Another error came first, and says more than the bound.
	if !errors.Is(context.Cause(bound), context.DeadlineExceeded) || messages.ClassOf(err) != messages.ClassTimeout &&
		messages.ClassOf(err) != messages.ClassCanceled {
		return err
	}
	text := map[string]string{
		"dial":      "the connection could not be opened",
		"handshake": "no answer to initialize",
		"list":      "no answer to tools/list",
	}[step]
	if text == "" {
		return err
	}
	function := notReturnedText(err)
	e := a.tooLong(cmp.Or(function, text))
	e.Err = err
	if function != "" {
		e.Fix = "make it return when its time is over"
	}
	return e
}

// notReturnedText returns which function of the program had not returned, "Config.Wrap had not returned"; empty if err is not about one.
func notReturnedText(err error) string {
	var own *messages.Error
	var below *transports.Error
	switch {
	case !errors.Is(err, ErrNotReturned):
	case errors.As(err, &own):
		return own.Text
	case errors.As(err, &below):
		return below.Text
	}
	return ""
}

// startDial makes the transport and dials it. Making it may block as well: a program's own transport, or the files of a TLS
// configuration.
func (a *attempt) startDial(open func(context.Context) (transports.Transport, error), cfg session.Config) {
	a.runStep("dial", func() (any, error) {
		t, err := open(a.boundContext())
		if err != nil {
			return nil, err
		}
		// The transport is kept for a second dial within this attempt; eraKnown decides what a failure means.
		a.mu.Lock()
		a.transport, a.cfg, a.eraKnown = t, &cfg, cfg.Known == messages.EraLegacy
		a.mu.Unlock()
		sess, err := a.dialSession(t, cfg)
		if err != nil {
			return nil, err
		}
		return dialDone{a.epoch, sess}, nil
	})
}

// dialSession dials and stores the session, where shutDown finds it.
func (a *attempt) dialSession(t transports.Transport, cfg session.Config) (*session.Session, error) {
	sess, err := session.Dial(a.boundContext(), t, cfg)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sess = sess
	return sess, nil
}

// postConnLost posts the death of the connection. It always comes, because shutDown closes the session at the latest.
func (a *attempt) postConnLost(sess *session.Session) {
	defer func() {
		// The end itself must be posted, even if its details cannot be read.
		if r := recover(); r != nil {
			a.post(connLost{epoch: a.epoch, err: sess.Err()})
		}
	}()
	a.post(connLost{a.epoch, sess.Err(), sess.Conn()})
}

// startHandshake performs the handshake. If the server ends on the question which era it speaks, the transport is dialled a second
// time, at once and within the same attempt, and the session begins with initialize.
//
// From the end of the handshake on the death of the connection is posted; before, it is the handshake's failure.
func (a *attempt) startHandshake() {
	a.runStep("handshake", func() (any, error) {
		sess := a.currentSession()
		_, err := sess.Handshake(a.boundContext())
		// The process has ended or the connection is closed: it must be released before another one begins.
		if errors.Is(err, session.ErrOnProbe) && a.boundContext().Err() == nil {
			a.closeSession(sess)
			a.mu.Lock()
			a.diedOnProbe = true
			t, cfg := a.transport, *a.cfg
			a.mu.Unlock()
			// Told that the server is of the legacy era, the session does not ask the question again.
			cfg.Known = messages.EraLegacy
			if sess, err = a.dialSession(t, cfg); err != nil {
				return nil, err
			}
			_, err = sess.Handshake(a.boundContext())
		}
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		// A connected server keeps nothing that only its beginning needs.
		a.cfg = nil
		a.mu.Unlock()
		sess.AfterDeath(func() { a.postConnLost(sess) })
		return handshakeDone{a.epoch, sess.SharedInfo(), sess}, nil
	})
}

// startListing lists the tools: the first time within the connect timeout, later within its own. spec is the one in force.
func (a *attempt) startListing(spec *messages.Spec, first bool, timeout time.Duration) {
	step := "list"
	if !first {
		step = "relist"
	}
	a.runStep(step, func() (any, error) {
		ctx := a.boundContext()
		if !first {
			// A later list is not part of the attempt's bound, which has ended.
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.Background(), timeout)
			defer cancel()
		}
		// The list covers all pages; the session bounds their number and size.
		list, err := a.currentSession().ListTools(ctx)
		if !first {
			err = explainListTimeout(ctx, timeout, err)
		}
		// Without tools the server is still of use. Otherwise the failure of the first list ends the attempt.
		if first && a.isWorthKeeping(err) {
			return listDone{epoch: a.epoch, listErr: a.explainTimeout(ctx, step, err)}, nil
		}
		if err == nil && a.prepare != nil {
			a.prepare(ctx, serverOf(a.name, spec), spec, offeredTools(&list, spec))
		}
		return listDone{epoch: a.epoch, list: list}, err
	})
}

// explainListTimeout is explainTimeout for a list after the first one, which has a timeout of its own.
func explainListTimeout(ctx context.Context, timeout time.Duration, err error) error {
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) || messages.ClassOf(err) != messages.ClassTimeout {
		return err
	}
	return &messages.Error{Op: "list", Class: messages.ClassTimeout, Text: fmt.Sprintf("no answer to tools/list within %s", timeout),
		Fix: "see whether it works", Err: err}
}

// isWorthKeeping reports whether a server whose first list failed is worth a connection without tools: the connection lives, the
// server did not refuse our credentials, and it declares resources or prompts.
func (a *attempt) isWorthKeeping(err error) bool {
	sess := a.currentSession()
	// The server's capabilities are those of its answer to the handshake.
	said := sess.SharedInfo()
	if err == nil || said == nil || !said.Capabilities.Resources && !said.Capabilities.Prompts {
		return false
	}
	// A dead connection is no server to keep.
	select {
	case <-sess.Dead():
		return false
	default:
	}
	switch messages.ClassOf(err) {
	// These errors are about the list alone; others, such as refused credentials, concern the whole connection.
	case messages.ClassRejected, messages.ClassProtocol, messages.ClassTimeout:
		return true
	}
	return false
}

// startProbe pings the server once, in a goroutine, and posts the outcome.
func (a *attempt) startProbe(timeout time.Duration) {
	a.runningSteps.Add(1)
	go func() {
		defer a.runningSteps.Done()
		labelGoroutine(a.name, a.spec)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		var err error
		sentAt := time.Now()
		func() {
			defer func() {
				if r := recover(); r != nil {
					err = &messages.Error{Class: messages.ClassPanic, Text: fmt.Sprintf("panic during ping: %v", r)}
				}
			}()
			err = a.currentSession().Ping(ctx)
		}()
		a.post(probeDone{a.epoch, sentAt, err})
	}()
}

// currentSession returns the newest session, nil before the dial has ended.
func (a *attempt) currentSession() *session.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sess
}

// openGate opens a new admission gate; the one before must have been closed. Gates without calls are forgotten here.
func (a *attempt) openGate() *session.Gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	// Gates whose calls have ended need no drain.
	gate := a.sess.OpenGate()
	a.gates = append(slices.DeleteFunc(a.gates, func(g *session.Gate) bool { return g.InFlight() == 0 }), gate)
	return gate
}

// closeGate closes the newest gate: no further calls are admitted, and those that run continue.
func (a *attempt) closeGate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.gates); n > 0 {
		// Only the newest gate can be open.
		a.gates[n-1].Close()
	}
}

// shutDown ends the attempt at any point. It returns at once; when everything is released, it reports to the supervisor
// and posts connClosed. drain > 0 lets admitted calls finish for so long. Only the first call counts.
func (a *attempt) shutDown(drain time.Duration) {
	a.once.Do(func() {
		a.closeGate()
		go func() {
			labelGoroutine(a.name, a.spec)
			var conn transports.Info
			// Both reports are sent even after a panic: without them the server's name would be occupied for ever.
			defer func() {
				if r := recover(); r != nil {
					conn.Exit = fmt.Sprintf("panic while closing: %v", r)
				}
				a.released(a.epoch)
				a.post(connClosed{a.epoch, conn})
			}()
			// The calls of older gates are waited for as well: see gates.
			if drain > 0 {
				a.drainGates(drain)
			}
			// The calls are drained; from here on every step is to end.
			a.endBound()
			// A dial that still runs ends with the bound, and may have produced a session all the same: closing that one ends every
			// other step, and the second look below finds one that came later.
			if sess := a.currentSession(); sess != nil {
				a.closeSession(sess)
			}
			a.runningSteps.Wait()
			if sess := a.currentSession(); sess != nil {
				a.closeSession(sess)
				conn = sess.Conn()
			}
		}()
	})
}

// drainGates waits until the calls of all gates have ended, for at most so long, or until the connection dies.
func (a *attempt) drainGates(most time.Duration) {
	a.mu.Lock()
	gates := slices.Clone(a.gates)
	a.mu.Unlock()
	// One bound for all gates together.
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, gate := range gates {
		select {
		case <-gate.Drained():
		case <-a.currentSession().Dead():
			return
		case <-timer.C:
			return
		}
	}
}

// closeSession closes a session through the stop ladder of its transport, which is bounded, so Released always follows.
func (a *attempt) closeSession(sess *session.Session) {
	// Err tells why it ended; a bad end changes nothing here.
	_ = sess.Close(context.Background())
	<-sess.Released()
}

// causeOf translates an error for the state machine. For a child that ended or never answered, the end of its stderr may name the
// reason: package failure looks for it.
func causeOf(err error, conn transports.Info) lifecycle.Cause {
	c := lifecycle.Cause{Class: messages.ClassOf(err), Text: "the connection ended"}
	if err == nil {
		c.Class = messages.ClassNetwork
		return c
	}
	c.Text = messages.Line(err.Error(), 600)
	var e *messages.Error
	if errors.As(err, &e) {
		c.RetryAfter, c.Challenge = e.RetryAfter, e.Challenge
	}
	// A child that was killed, or a server without stderr, has written nothing that explains the error.
	said := failure.Cause{}
	switch {
	// A program that runs and is silent: other rows of the table apply than to one that ended.
	case c.Class == messages.ClassTimeout:
		said = failure.ExplainSilence(conn.StderrTail)
	case c.Class == messages.ClassExited && endedItself(conn.Exit):
		said = failure.Explain(conn.StderrTail)
	}
	if text := said.String(); text != "" {
		c.Text += "; " + text
	}
	return c
}

// endedItself reports whether a child ended by its own decision; one that was killed had no chance to write why. abort(3) and
// trap instructions are signals too: Node and C++ programs use them after they have written the reason.
func endedItself(exit string) bool {
	return !strings.HasPrefix(exit, "signal") || strings.HasPrefix(exit, "signal: aborted") || strings.HasPrefix(exit, "signal: trace")
}

// inFlight returns the number of calls in all gates.
func (a *attempt) inFlight() (calls int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, gate := range a.gates {
		calls += gate.InFlight()
	}
	return calls
}
