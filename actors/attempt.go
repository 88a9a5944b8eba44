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

	mu        sync.Mutex
	ctx       context.Context // see bound
	cancel    context.CancelCauseFunc
	opening   opening.State
	alarm     *time.Timer          // looks again; nil once it is settled
	transport transports.Transport // set by dial, as cfg and sess
	cfg       *session.Config      // until the handshake is done
	known     bool                 // the era was known to be the legacy one
	sess      *session.Session
	stumbled  bool
	busy      sync.WaitGroup // the steps that run
	// gates holds the current gate last, and before it each older one through which calls still run: a server that is disabled and
	// enabled again on the same connection gets a new gate, and a drain must wait for the calls of all of them.
	gates []*session.Gate
	once  sync.Once // shut
}

// What an attempt posts to its server's actor.
type (
	dialed struct {
		epoch uint64
		sess  *session.Session
	}
	installing struct{ epoch uint64 }
	waited     struct {
		epoch       uint64
		ran, waited time.Duration
	}
	greeted struct {
		epoch uint64
		info  *session.Info
		sess  *session.Session // not always the one that was dialed: see attempt.greet
	}
	listed struct {
		epoch uint64
		list  session.ToolList
		// refused is why there is no list of a server that has something else to offer; nil if there is one.
		refused error
	}
	stepFailed struct {
		epoch uint64
		step  string // "dial", "handshake", "list", "relist"
		err   error
		conn  transports.Info
		// stumbled says that the connection did not outlive the question about the era.
		stumbled bool
		// known says that the era was not asked for, because it was known to be the legacy one.
		known bool
	}
	lost struct {
		epoch uint64
		err   error
		conn  transports.Info
	}
	closed struct {
		epoch uint64
		conn  transports.Info
	}
	probed struct {
		epoch uint64
		asked time.Time
		err   error
	}
)

func newAttempt(
	name string, spec *messages.Spec, epoch uint64, limits opening.Limits, post func(any), released func(uint64),
) *attempt {
	a := &attempt{epoch: epoch, name: name, spec: spec, post: post, released: released, limits: limits}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	a.await()
	return a
}

// over is a context that has ended.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// run performs one step in its own goroutine. A panic in it is that step's failure.
func (a *attempt) run(step string, f func() (any, error)) {
	a.busy.Add(1)
	bound := a.bound()
	go func() {
		defer a.busy.Done()
		labelled(a.name, a.spec)
		msg, err := func() (msg any, err error) {
			defer func() {
				if r := recover(); r != nil {
					err = &messages.Error{Op: "connect", Class: messages.ClassPanic, Text: fmt.Sprintf("panic during %s: %v", step, r)}
				}
			}()
			return f()
		}()
		if err != nil {
			failed := stepFailed{epoch: a.epoch, step: step, err: a.explain(bound, step, err)}
			a.mu.Lock()
			if a.sess != nil {
				failed.conn = a.sess.Conn()
			}
			failed.stumbled = a.stumbled
			failed.known = a.known
			a.mu.Unlock()
			msg = failed
		}
		a.post(msg)
	}()
}

// explain gives a bound that passed its own words: the layers below only know that a context ended.
func (a *attempt) explain(bound context.Context, step string, err error) error {
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

func (a *attempt) dial(open func() (transports.Transport, error), cfg session.Config) {
	a.run("dial", func() (any, error) {
		t, err := open()
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		a.transport, a.cfg, a.known = t, &cfg, cfg.Known == messages.EraLegacy
		a.mu.Unlock()
		sess, err := a.open(t, cfg)
		if err != nil {
			return nil, err
		}
		return dialed{a.epoch, sess}, nil
	})
}

// open opens a session that shut will find.
func (a *attempt) open(t transports.Transport, cfg session.Config) (*session.Session, error) {
	sess, err := session.Dial(a.bound(), t, cfg)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sess = sess
	return sess, nil
}

// died posts the death of the connection, which always comes: shut closes the session.
func (a *attempt) died(sess *session.Session) {
	defer func() {
		if r := recover(); r != nil { // the end is what counts, not what could be told about it
			a.post(lost{epoch: a.epoch, err: sess.Err()})
		}
	}()
	a.post(lost{a.epoch, sess.Err(), sess.Conn()})
}

// greet shakes hands. A server that ends on the question which era it speaks is opened a second time, at once and within
// the same attempt, and asked to initialize.
//
// The death of a connection is watched from here on: before, it is the handshake's failure.
func (a *attempt) greet() {
	a.run("handshake", func() (any, error) {
		sess := a.session()
		_, err := sess.Handshake(a.bound())
		if errors.Is(err, session.ErrOnProbe) && a.bound().Err() == nil {
			a.closeSession(sess)
			a.mu.Lock()
			a.stumbled = true
			t, cfg := a.transport, *a.cfg
			a.mu.Unlock()
			cfg.Known = messages.EraLegacy
			if sess, err = a.open(t, cfg); err != nil {
				return nil, err
			}
			_, err = sess.Handshake(a.bound())
		}
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		a.cfg = nil // an idle server holds nothing that only its beginning needs
		a.mu.Unlock()
		sess.AfterDeath(func() { a.died(sess) })
		return greeted{a.epoch, sess.Said(), sess}, nil
	})
}

// list asks for the tools: the first time within the connect timeout, later within its own bound. spec is the one in force.
func (a *attempt) list(spec *messages.Spec, first bool, timeout time.Duration) {
	step := "list"
	if !first {
		step = "relist"
	}
	a.run(step, func() (any, error) {
		ctx := a.bound()
		if !first {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.Background(), timeout)
			defer cancel()
		}
		list, err := a.session().ListTools(ctx)
		if first && a.serves(err) {
			return listed{epoch: a.epoch, refused: a.explain(ctx, step, err)}, nil
		}
		if err == nil && a.prepare != nil {
			a.prepare(ctx, a.name, spec, offered(&list, spec))
		}
		return listed{epoch: a.epoch, list: list}, err
	})
}

// serves reports whether a server whose tools could not be listed is worth having without them: its connection lives, it lets
// us in, and it has resources or prompts.
func (a *attempt) serves(err error) bool {
	sess := a.session()
	said := sess.Said()
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

// probe asks whether the other side still lives.
func (a *attempt) probe(timeout time.Duration) {
	a.busy.Add(1)
	go func() {
		defer a.busy.Done()
		labelled(a.name, a.spec)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		var err error
		asked := time.Now()
		func() {
			defer func() {
				if r := recover(); r != nil {
					err = &messages.Error{Class: messages.ClassPanic, Text: fmt.Sprintf("panic during ping: %v", r)}
				}
			}()
			err = a.session().Ping(ctx)
		}()
		a.post(probed{a.epoch, asked, err})
	}()
}

func (a *attempt) session() *session.Session {
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

// shut ends the attempt wherever it is, and posts closed, to the actor and the supervisor, when everything is released.
// drain > 0 lets admitted calls finish for so long. Only the first call counts.
func (a *attempt) shut(drain time.Duration) {
	a.once.Do(func() {
		a.closeGate()
		go func() {
			labelled(a.name, a.spec)
			var conn transports.Info
			defer func() {
				if r := recover(); r != nil {
					conn.Exit = fmt.Sprintf("panic while closing: %v", r)
				}
				a.released(a.epoch)
				a.post(closed{a.epoch, conn})
			}()
			if drain > 0 {
				a.drain(drain)
			}
			a.settle()
			// A dial that is under way ends with its context, and may still have produced a session: closing that one
			// ends every other step.
			if sess := a.session(); sess != nil {
				a.closeSession(sess)
			}
			a.busy.Wait()
			if sess := a.session(); sess != nil {
				a.closeSession(sess)
				conn = sess.Conn()
			}
		}()
	})
}

// drain waits for the calls of all gates, for at most so long.
func (a *attempt) drain(most time.Duration) {
	a.mu.Lock()
	gates := slices.Clone(a.gates)
	a.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, gate := range gates {
		select {
		case <-gate.Drained():
		case <-a.session().Dead():
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
	case c.Class == messages.ClassExited && gaveUp(conn.Exit):
		said = failure.Explain(conn.StderrTail)
	}
	if text := said.String(); text != "" {
		c.Text += "; " + text
	}
	return c
}

// gaveUp reports whether a child has ended by its own decision: one that was killed did not say why. abort(3), which Node and
// C++ call after they have said it, is a signal, too.
func gaveUp(exit string) bool {
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
