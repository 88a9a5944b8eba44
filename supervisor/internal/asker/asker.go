// Package asker asks the person whether calls may be made, through the program's function. Equal calls of one caller at the same time
// are one question, and an answer may be for one call, for all that wait, or until the manager ends.
//
//	a := asker.New(asker.Options{Ask: ask, Hooks: runner, Done: closing})
//	err := a.AskPermission(ctx, decision, asker.Question{Server: "files", Tool: "write"}, &answer)   // blocks
//
// Guarantees: the error of a call that is refused says that it was not sent; at most 64 questions are open; every call that waits
// returns when its context ends or the manager closes. A panic of the program's function refuses the call.
//
// Not promised: an order of the calls that wait for one question.
//
// # How it fits
//
// Package permissions calls it for a decision that says ask. Package supervisor turns a Question into its AskRequest. Each answer is
// recorded by package auditor.
package asker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// Question asks the person whether a tool may be called. The fields are those of supervisor.AskRequest, which explains them.
type Question struct {
	Server      string
	Tool        string
	Arguments   json.RawMessage
	Annotations *messages.Annotations
	Trusted     bool
	Why         string
	Rule        string
	Waiting     int
	Count       func() int
}

// The answers of the person; every other one refuses.
const (
	AnswerNo      = "no"
	AnswerOnce    = "once"
	AnswerAll     = "all"
	AnswerSession = "session"
	AnswerAlways  = "always"
	// answerGranted stands in the audit record of a call that an earlier AnswerSession allowed.
	answerGranted = "granted"
)

// maxQuestions bounds the different questions that are open at once; a call that would open one more is refused.
const maxQuestions = 64

// maxGranted bounds the tools that are allowed until the manager ends; above it AnswerSession counts as AnswerAll.
const maxGranted = 4096

// Asker asks whether calls may be made. Equal calls of the same caller at the same time share one question, so that a person is
// not asked twice about the same thing.
type Asker struct {
	Options

	// mu guards the maps, closed, and the counters of every open question. It is not held while a question is asked.
	mu            sync.Mutex
	openQuestions map[questionKey]*openQuestion
	granted       map[grant]bool
}

// Options holds the program's function and the parts of the manager that an asker works with.
type Options struct {
	// Ask is the program's function, nil if calls can only be asked about by AskedBy.
	Ask   Func
	Audit *auditor.Auditor
	// Hooks runs Ask, and the functions of AskedBy.
	Hooks *hooks.Runner
	// Done is closed when the manager closes: every waiting call ends as not sent, and no further question is asked.
	Done <-chan struct{}
}

// grant is a tool that is allowed until the manager ends, to one caller, or to all if that is empty.
type grant struct{ caller, server, tool string }

// questionKey decides which calls share a question. caller is the one to whom an answer for the session is granted: empty if
// Config.Ask is asked.
type questionKey struct {
	caller       string
	server, tool string
	args         [sha256.Size]byte
	ownAsker     *callerAsker // who answers: compared by address; nil for Config.Ask
}

// openQuestion is a question that waits for its answer. The goroutine of the call that opened it writes answer and err, and then
// closes done; the others read them afterwards.
type openQuestion struct {
	done   chan struct{}
	answer string
	err    error
	// callerLeft says that the call that opened the question ended before there was an answer.
	callerLeft bool
	// waiting counts the calls that wait, the one that asks included. rejoining are those of them that waited for an earlier equal
	// question and have not joined this one yet: they count already, so that the person sees the true number. asker.mu guards both.
	waiting, rejoining int
}

// mustAskAnew reports whether the calls that wait need another question: the answer was about one call, or there was none.
func (f *openQuestion) mustAskAnew() bool {
	return f.callerLeft || f.err == nil && f.answer == AnswerOnce
}

// New makes an asker with no grants. It has no goroutine of its own: each question runs on that of the call which opened it.
func New(o Options) *Asker {
	return &Asker{Options: o, openQuestions: map[questionKey]*openQuestion{}, granted: map[grant]bool{}}
}

// isClosed reports whether the manager closes.
func (a *Asker) isClosed() bool {
	select {
	case <-a.Done:
		return true
	default:
		return false
	}
}

// AskPermission returns nil if the call may be made, and otherwise the error that it ends with. It blocks until the person has
// answered, ctx has ended, or the manager closes. noted gets the answer, for the record of the call.
func (a *Asker) AskPermission(ctx context.Context, d access.Decision, r Question, noted *string) error {
	ask := a.Ask
	caller, _ := ctx.Value(scopeKey{}).(string)
	ownAsker, _ := ctx.Value(callerAskerKey{}).(*callerAsker)
	key := questionKey{server: r.Server, tool: r.Tool, args: sha256.Sum256(r.Arguments), ownAsker: ownAsker}
	if ownAsker != nil {
		ask, key.caller = ownAsker.ask, caller
	}
	// A rule is only proposed where it would change the verdict: a deny or an ask of the organisation stays in any case.
	if !d.Settled {
		r.Rule = access.Exact(r.Server, r.Tool)
	}
	waited := 0
	// The loop runs again only after AnswerOnce for another call, or when the call that had asked went away.
	for {
		f, first, err := a.joinQuestion(caller, key, ask != nil, waited, r, d)
		if err != nil || f == nil {
			if err == nil {
				*noted = answerGranted
			}
			return err
		}
		if first {
			return a.putQuestion(ctx, key, f, ask, r, d, noted)
		}
		select {
		case <-f.done:
			if !f.mustAskAnew() {
				*noted = f.answer
				return a.outcomeError(f, r, d)
			}
			// The number is passed to the next question, whose first caller counts those that still have to join.
			a.mu.Lock()
			waited = f.waiting - 1
			a.mu.Unlock()
		case <-ctx.Done():
			a.mu.Lock()
			f.waiting--
			a.mu.Unlock()
			return callerGoneError(ctx, r)
		}
	}
}

// joinQuestion returns the open question of the key, or opens it (first: the caller must then ask). f and err are both nil if the
// tool is granted already. waited is how many equal calls have waited for an earlier question and still wait.
func (a *Asker) joinQuestion(caller string, key questionKey, able bool, waited int, r Question, d access.Decision) (
	f *openQuestion, first bool, err error,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A grant to all counts before one to the caller; neither is ever taken back while the manager runs.
	if a.granted[grant{"", r.Server, r.Tool}] || a.granted[grant{caller, r.Server, r.Tool}] {
		return nil, false, nil
	}
	if f := a.openQuestions[key]; f != nil {
		if f.rejoining > 0 {
			f.rejoining--
		} else {
			f.waiting++
		}
		return f, false, nil
	}
	switch {
	case a.isClosed():
		return nil, false, refusal.ClosedError("call")
	case !able:
		return nil, false, unansweredError(r, d, "and nobody can be asked here")
	case len(a.openQuestions) >= maxQuestions:
		return nil, false, unansweredError(r, d, "and 64 questions wait for an answer already")
	}
	// With waited calls on their way, the first of them opens the question and the others are counted as rejoining.
	f = &openQuestion{done: make(chan struct{}), waiting: max(waited, 1), rejoining: max(waited-1, 0)}
	a.openQuestions[key] = f
	return f, true, nil
}

// putQuestion calls the program's function and passes its answer to every call that waits for it. If the caller's context ends
// first, the program's function is cancelled and the others ask anew.
func (a *Asker) putQuestion(
	ctx context.Context, key questionKey, f *openQuestion, ask Func, r Question, d access.Decision, noted *string,
) error {
	askCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		word string
		err  error
	}
	r.Count = func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return f.waiting
	}
	r.Waiting = r.Count()
	start := time.Now()
	v, err := hooks.Do(ctx, a.Hooks, a.Done, hooks.Call{Function: "Config.Ask", Server: r.Server, Tool: r.Tool}, func() (v answer) {
		if v.word, v.err = ask(askCtx, r); v.err != nil {
			v.err = refusal.Readable(v.err)
		}
		return v
	})
	var broken *hooks.Broken
	switch {
	case err == nil:
		f.answer, f.err = v.word, v.err
		// An error after the end of ctx comes from the cancelled function: it says nothing about the person's answer.
		f.callerLeft = v.err != nil && ctx.Err() != nil
	case errors.As(err, &broken):
		f.answer, f.err = AnswerNo, &messages.Error{Op: "ask", Class: messages.ClassPanic, Text: "the function that asks " + broken.Error()}
	case errors.Is(err, hooks.ErrOver):
		f.err = refusal.ClosedError("call")
	case ctx.Err() != nil:
		f.callerLeft = true
	default:
		f.err = err
	}
	// A question whose caller left is recorded without an answer; the calls that waited for it open another one.
	if f.callerLeft {
		a.Audit.RecordAnswer(ctx, r.Server, r.Tool, r.Arguments, d, "", time.Since(start), callerGoneError(ctx, r))
	} else {
		a.Audit.RecordAnswer(ctx, r.Server, r.Tool, r.Arguments, d, f.answer, time.Since(start), f.err)
		*noted = f.answer
	}
	// The question is taken out before done is closed: a call that comes in between opens a new one or finds the grant.
	a.mu.Lock()
	delete(a.openQuestions, key)
	if f.err == nil && !f.callerLeft && (f.answer == AnswerSession || f.answer == AnswerAlways) && len(a.granted) < maxGranted {
		a.granted[grant{key.caller, r.Server, r.Tool}] = true
	}
	a.mu.Unlock()
	close(f.done)
	if f.callerLeft {
		return callerGoneError(ctx, r)
	}
	return a.outcomeError(f, r, d)
}

// outcomeError returns what an answer means for a call: nil, or why it is refused. Only the text of a *messages.Error is passed on
// whole; another error's text is cut to one line of 300 characters.
func (a *Asker) outcomeError(f *openQuestion, r Question, d access.Decision) error {
	if f.err != nil {
		if a.isClosed() {
			return f.err
		}
		e := unansweredError(r, d, "asking failed: "+messages.Line(f.err.Error(), 300))
		var own *messages.Error
		if errors.As(f.err, &own) {
			if e = unansweredError(r, d, own.Text); own.Fix != "" {
				e.Fix = own.Fix
			}
		}
		e.Err = f.err
		return e
	}
	switch f.answer {
	case AnswerOnce, AnswerAll, AnswerSession, AnswerAlways:
		return nil
	}
	return unansweredError(r, d, "the answer was no")
}

// unansweredError returns the error of a call that the rules ask about and that was not allowed. The fix names the rule that would
// allow it.
func unansweredError(r Question, d access.Decision, what string) *messages.Error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: r.Server, Tool: r.Tool,
		Text: "it must be asked for, because " + d.Why + ", and " + what, Err: messages.ErrDenied}
	if r.Rule != "" {
		e.Fix = "allow it with the rule " + r.Rule
	}
	return e
}

// callerGoneError returns the error of a call whose context ended while its question was open: it was not sent.
func callerGoneError(ctx context.Context, r Question) error {
	return &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassOf(ctx.Err()), Server: r.Server,
		Tool: r.Tool, Text: "the caller gave up before there was an answer to whether it may be called", Err: ctx.Err()}
}

type (
	Func           = func(context.Context, Question) (answer string, err error)
	callerAskerKey struct{}
	// callerAsker is the function of one AskedBy. It is compared by its address: each call of AskedBy makes another caller.
	callerAsker struct{ ask Func }
	scopeKey    struct{}
)

// AskedBy makes ask decide about the calls that are made with the result.
func AskedBy(ctx context.Context, ask Func) context.Context {
	return context.WithValue(ctx, callerAskerKey{}, &callerAsker{ask})
}

// ScopeGrants names the caller to whom AnswerSession and AnswerAlways are granted; every one if it is empty.
func ScopeGrants(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, scopeKey{}, caller)
}
