package actors

import (
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

// attempt owns everything that one epoch holds, from the dial to the release. Its steps run in goroutines of their own
// and post what became of them; none of them touches the server's state.
type attempt struct {
	epoch uint64
	name  string
	spec  *messages.Spec // as it was dialed; an adjusted one in force is the actor's, and is handed to the steps that need it
	// prepare is Common.Prepare.
	prepare func(ctx context.Context, name string, spec *messages.Spec, list *session.ToolList)
	// post sends to the server's actor, released to the supervisor: also when the actor is gone.
	post     func(any)
	released func(epoch uint64)

	limits opening.Limits

	mu           sync.Mutex
	ctx          context.Context // see bound
	cancel       context.CancelCauseFunc
	opening      opening.State
	checkTimer   *time.Timer          // looks again; nil once it is settled
	transport    transports.Transport // set by dial, as cfg and sess
	cfg          *session.Config      // until the handshake is done
	eraKnown     bool                 // the era was known to be the legacy one
	sess         *session.Session
	diedOnProbe  bool
	runningSteps sync.WaitGroup // the steps that run
	// gates holds the current gate last, and before it each older one through which calls still run: a server that is disabled and
	// enabled again on the same connection gets a new gate, and a drain must wait for the calls of all of them.
	gates []*session.Gate
	once  sync.Once // shut
}

// What an attempt posts to its server's actor.
type (
	dialDone struct {
		epoch uint64
		sess  *session.Session
	}
	installStarted  struct{ epoch uint64 }
	cpuTimeMeasured struct {
		epoch       uint64
		ran, waited time.Duration
	}
	handshakeDone struct {
		epoch uint64
		info  *session.Info
		sess  *session.Session // not always the one that was dialed: see attempt.greet
	}
	listDone struct {
		epoch uint64
		list  session.ToolList
		// listErr is why there is no list of a server that has something else to offer; nil if there is one.
		listErr error
	}
	stepFailed struct {
		epoch uint64
		step  string // "dial", "handshake", "list", "relist"
		err   error
		conn  transports.Info
		// diedOnProbe says that the connection did not outlive the question about the era.
		diedOnProbe bool
		// eraKnown says that the era was not asked for, because it was known to be the legacy one.
		eraKnown bool
	}
	connLost struct {
		epoch uint64
		err   error
		conn  transports.Info
	}
	connClosed struct {
		epoch uint64
		conn  transports.Info
	}
	probeDone struct {
		epoch  uint64
		sentAt time.Time
		err    error
	}
)

func newAttempt(
	name string, spec *messages.Spec, epoch uint64, limits opening.Limits, post func(any), released func(uint64),
) *attempt {
	a := &attempt{epoch: epoch, name: name, spec: spec, post: post, released: released, limits: limits}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.startBound()
	return a
}

// endedContext is a context that has ended.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// runStep performs one step in its own goroutine. A panic in it is that step's failure.
func (a *attempt) runStep(step string, f func() (any, error)) {
	a.runningSteps.Add(1)
	bound := a.boundContext()
	go func() {
		defer a.runningSteps.Done()
		labelGoroutine(a.name, a.spec)
		msg, err := func() (msg any, err error) {
			defer func() {
				if r := recover(); r != nil {
					err = &messages.Error{Op: "connect", Class: messages.ClassPanic, Text: fmt.Sprintf("panic during %s: %v", step, r)}
				}
			}()
			return f()
		}()
		if err != nil {
			failed := stepFailed{epoch: a.epoch, step: step, err: a.explainTimeout(bound, step, err)}
			a.mu.Lock()
			if a.sess != nil {
				failed.conn = a.sess.Conn()
			}
			failed.diedOnProbe = a.diedOnProbe
			failed.eraKnown = a.eraKnown
			a.mu.Unlock()
			msg = failed
		}
		a.post(msg)
	}()
}

// explainTimeout gives a bound that passed its own words: the layers below only know that a context ended.
func (a *attempt) explainTimeout(bound context.Context, step string, err error) error {
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
	e := a.tooLong(text)
	e.Err = err
	return e
}

func (a *attempt) startDial(open func() (transports.Transport, error), cfg session.Config) {
	a.runStep("dial", func() (any, error) {
		t, err := open()
		if err != nil {
			return nil, err
		}
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

// dialSession opens a session that shut will find.
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

// postConnLost posts the death of the connection, which always comes: shut closes the session.
func (a *attempt) postConnLost(sess *session.Session) {
	defer func() {
		if r := recover(); r != nil { // the end is what counts, not what could be told about it
			a.post(connLost{epoch: a.epoch, err: sess.Err()})
		}
	}()
	a.post(connLost{a.epoch, sess.Err(), sess.Conn()})
}

// startHandshake shakes hands. A server that ends on the question which era it speaks is opened a second time, at once and within
// the same attempt, and asked to initialize.
//
// The death of a connection is watched from here on: before, it is the handshake's failure.
func (a *attempt) startHandshake() {
	a.runStep("handshake", func() (any, error) {
		sess := a.currentSession()
		_, err := sess.Handshake(a.boundContext())
		if errors.Is(err, session.ErrOnProbe) && a.boundContext().Err() == nil {
			a.closeSession(sess)
			a.mu.Lock()
			a.diedOnProbe = true
			t, cfg := a.transport, *a.cfg
			a.mu.Unlock()
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
		a.cfg = nil // an idle server holds nothing that only its beginning needs
		a.mu.Unlock()
		sess.AfterDeath(func() { a.postConnLost(sess) })
		return handshakeDone{a.epoch, sess.SharedInfo(), sess}, nil
	})
}

// startListing asks for the tools: the first time within the connect timeout, later within its own bound. spec is the one in force.
func (a *attempt) startListing(spec *messages.Spec, first bool, timeout time.Duration) {
	step := "list"
	if !first {
		step = "relist"
	}
	a.runStep(step, func() (any, error) {
		ctx := a.boundContext()
		if !first {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.Background(), timeout)
			defer cancel()
		}
		list, err := a.currentSession().ListTools(ctx)
		if first && a.isWorthKeeping(err) {
			return listDone{epoch: a.epoch, listErr: a.explainTimeout(ctx, step, err)}, nil
		}
		if err == nil && a.prepare != nil {
			a.prepare(ctx, a.name, spec, offeredTools(&list, spec))
		}
		return listDone{epoch: a.epoch, list: list}, err
	})
}

// isWorthKeeping reports whether a server whose tools could not be listed is worth having without them: its connection lives, it lets
// us in, and it has resources or prompts.
func (a *attempt) isWorthKeeping(err error) bool {
	sess := a.currentSession()
	said := sess.SharedInfo()
	if err == nil || said == nil || !said.Capabilities.Resources && !said.Capabilities.Prompts {
		return false
	}
	select {
	case <-sess.Dead():
		return false
	default:
	}
	switch messages.ClassOf(err) {
	case messages.ClassRejected, messages.ClassProtocol, messages.ClassTimeout:
		return true
	}
	return false
}

// startProbe asks whether the other side still lives.
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

func (a *attempt) currentSession() *session.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sess
}

// openGate opens a new admission gate. The one before must have been closed.
func (a *attempt) openGate() *session.Gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	gate := a.sess.OpenGate()
	a.gates = append(slices.DeleteFunc(a.gates, func(g *session.Gate) bool { return g.InFlight() == 0 }), gate)
	return gate
}

// closeGate admits no more calls; those in flight go on.
func (a *attempt) closeGate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.gates); n > 0 {
		a.gates[n-1].Close()
	}
}

// shutDown ends the attempt wherever it is, and posts closed, to the actor and the supervisor, when everything is released.
// drain > 0 lets admitted calls finish for so long. Only the first call counts.
func (a *attempt) shutDown(drain time.Duration) {
	a.once.Do(func() {
		a.closeGate()
		go func() {
			labelGoroutine(a.name, a.spec)
			var conn transports.Info
			defer func() {
				if r := recover(); r != nil {
					conn.Exit = fmt.Sprintf("panic while closing: %v", r)
				}
				a.released(a.epoch)
				a.post(connClosed{a.epoch, conn})
			}()
			if drain > 0 {
				a.drainGates(drain)
			}
			a.endBound()
			// A dial that is under way ends with its context, and may still have produced a session: closing that one
			// ends every other step.
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

// drainGates waits for the calls of all gates, for at most so long.
func (a *attempt) drainGates(most time.Duration) {
	a.mu.Lock()
	gates := slices.Clone(a.gates)
	a.mu.Unlock()
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

// closeSession runs the stop ladder. The transport bounds it; Released follows always.
func (a *attempt) closeSession(sess *session.Session) {
	_ = sess.Close(context.Background()) // why it ended is told by Err, and there is nothing to do about a bad end
	<-sess.Released()
}

// causeOf is an error as the state machine sees it.
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
	said := failure.Cause{}
	switch {
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

// endedItself reports whether a child has ended by its own decision: one that was killed did not say why. abort(3), which Node and
// C++ call after they have said it, is a signal, too.
func endedItself(exit string) bool {
	return !strings.HasPrefix(exit, "signal") || strings.HasPrefix(exit, "signal: aborted") || strings.HasPrefix(exit, "signal: trace")
}

// inFlight counts the calls of all gates.
func (a *attempt) inFlight() (calls int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, gate := range a.gates {
		calls += gate.InFlight()
	}
	return calls
}
