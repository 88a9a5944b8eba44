package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// AskRequest asks whether a tool may be called.
type AskRequest struct {
	// Server and Tool name the tool, Arguments are those of the call, as they are: they may hold secrets, and what a model
	// has made up. Neutralise them (messages.Printable) before a terminal sees them.
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Annotations are what the server says of the tool. They are claims, unless the server is Trusted.
	Annotations *messages.Annotations `json:"annotations,omitempty"`
	Trusted     bool                  `json:"trusted,omitempty"`
	// Why says what asks: "the rule ask mcp__github (…)", "the default is ask".
	Why string `json:"why"`
	// Rule is the allow rule that would answer for ever: for this tool and no other. It is empty if no rule of the
	// person's would change anything, because a rule asks, or the managed default does.
	Rule string `json:"rule,omitempty"`
	// Waiting is how many calls with the same arguments wait for this question, this one included, when it is put. More may
	// come while it is open: Count is their number now; nil where the question came from another process.
	Waiting int        `json:"waiting,omitempty"`
	Count   func() int `json:"-"`
}

// Equal is how many calls with the same arguments wait for the question now, this one included.
func (r AskRequest) Equal() int {
	if r.Count != nil {
		return r.Count()
	}
	return max(r.Waiting, 1)
}

// AskAnswer is what a person answers. The zero value is no.
type AskAnswer string

const (
	// AskNo refuses this call and those with the same arguments that wait with it, and says nothing of the next one.
	AskNo AskAnswer = "no"
	// AskOnce allows this call and no other: those with the same arguments that wait are asked about after it.
	AskOnce AskAnswer = "once"
	// AskAll allows this call, and those with the same arguments that wait with it.
	AskAll AskAnswer = "all"
	// AskSession allows the tool, with whatever arguments, until the manager ends: to every caller, and where the call was
	// made with AskedBy and ScopeGrants, to that caller alone.
	AskSession AskAnswer = "session"
	// AskAlways is AskSession, and whoever asked writes AskRequest.Rule down.
	AskAlways AskAnswer = "always"
	// askGranted is what a record of a call says that an earlier answer allowed.
	askGranted AskAnswer = "granted"
)

// maxQuestions bounds the different questions that wait for an answer; a call that would ask one more is refused.
const maxQuestions = 64

// maxGranted bounds the tools that are allowed until the manager ends.
const maxGranted = 4096

// asker asks whether calls may be made: equal calls of the same caller at the same time are one question.
type asker struct {
	cfg   *Config
	audit *auditor

	mu            sync.Mutex
	openQuestions map[questionKey]*openQuestion
	granted       map[grant]bool
	done          chan struct{} // closed with the manager
	closed        bool
}

// grant is a tool that is allowed until the manager ends, to one caller, or to all if that is empty.
type grant struct{ caller, server, tool string }

// questionKey is what makes two questions one. caller is who it grants a session to: empty if Config.Ask is asked.
type questionKey struct {
	caller       string
	server, tool string
	args         [sha256.Size]byte
	ownAsker     *callerAsker // whom it is put to; nil for Config.Ask
}

// openQuestion is a question that somebody has been asked. The one who asks writes answer and err, and closes done.
type openQuestion struct {
	done   chan struct{}
	answer AskAnswer
	err    error
	// callerLeft says that the caller who asked went away before there was an answer.
	callerLeft bool
	// waiting is how many calls wait, the one that asks included. awaited are those of them that are about to join: they
	// have waited for the question before. asker.mu guards both.
	waiting, rejoining int
}

// mustAskAnew says that those who wait must be asked about anew: the answer was about one call, or there was none.
func (f *openQuestion) mustAskAnew() bool { return f.callerLeft || f.err == nil && f.answer == AskOnce }

func (a *asker) initAsker(cfg *Config) {
	a.cfg, a.openQuestions, a.granted, a.done = cfg, map[questionKey]*openQuestion{}, map[grant]bool{}, make(chan struct{})
}

// close ends every question.
func (a *asker) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		close(a.done)
	}
}

// askPermission returns nil if the call may be made.
func (a *asker) askPermission(ctx context.Context, d access.Decision, r AskRequest) error {
	ask := a.cfg.Ask
	caller, _ := ctx.Value(scopeKey{}).(string)
	ownAsker, _ := ctx.Value(callerAskerKey{}).(*callerAsker)
	key := questionKey{server: r.Server, tool: r.Tool, args: sha256.Sum256(r.Arguments), ownAsker: ownAsker}
	if ownAsker != nil {
		ask, key.caller = ownAsker.ask, caller
	}
	if !d.Settled {
		r.Rule = access.Exact(r.Server, r.Tool)
	}
	waited := 0
	for {
		f, first, err := a.joinQuestion(caller, key, ask != nil, waited, r, d)
		if err != nil || f == nil {
			if err == nil {
				a.noteAnswer(ctx, askGranted)
			}
			return err
		}
		if first {
			return a.putQuestion(ctx, key, f, ask, r, d)
		}
		select {
		case <-f.done:
			if !f.mustAskAnew() {
				a.noteAnswer(ctx, f.answer)
				return a.outcomeError(f, r, d)
			}
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

// joinQuestion finds the question that is open already, or opens it. Without one and without an error the tool is allowed. waited
// is how many equal calls wait that have waited for a question before.
func (a *asker) joinQuestion(caller string, key questionKey, able bool, waited int, r AskRequest, d access.Decision) (
	f *openQuestion, first bool, err error,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
	case a.closed:
		return nil, false, closedError("call")
	case !able:
		return nil, false, unansweredError(r, d, "and nobody can be asked here")
	case len(a.openQuestions) >= maxQuestions:
		return nil, false, unansweredError(r, d, "and 64 questions wait for an answer already")
	}
	f = &openQuestion{done: make(chan struct{}), waiting: max(waited, 1), rejoining: max(waited-1, 0)}
	a.openQuestions[key] = f
	return f, true, nil
}

// putQuestion asks, and tells everybody who waits for the same answer.
func (a *asker) putQuestion(ctx context.Context, key questionKey, f *openQuestion, ask askFunc, r AskRequest, d access.Decision) error {
	askCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		word AskAnswer
		err  error
	}
	r.Count = func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return f.waiting
	}
	r.Waiting = r.Count()
	got, start := make(chan answer, 1), time.Now()
	go func() { // ends with the program's function, which is told when nobody waits any more
		var v answer
		defer func() {
			if p := recover(); p != nil {
				a.cfg.Logger.Error("panic in the function that is asked about calls", zap.String("server", r.Server),
					zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
				v = answer{AskNo, &Error{Op: "ask", Class: messages.ClassPanic, Text: "the function that asks panicked"}}
			}
			got <- v
		}()
		v.word, v.err = ask(askCtx, r)
	}()
	select {
	case v := <-got:
		f.answer, f.err = v.word, v.err
		f.callerLeft = v.err != nil && ctx.Err() != nil
	case <-ctx.Done():
		f.callerLeft = true
	case <-a.done:
		f.err = closedError("call")
	}
	if f.callerLeft {
		a.audit.recordAnswer(ctx, r, d, "", time.Since(start), callerGoneError(ctx, r))
	} else {
		a.audit.recordAnswer(ctx, r, d, f.answer, time.Since(start), f.err)
		a.noteAnswer(ctx, f.answer)
	}
	a.mu.Lock()
	delete(a.openQuestions, key)
	if f.err == nil && !f.callerLeft && (f.answer == AskSession || f.answer == AskAlways) && len(a.granted) < maxGranted {
		a.granted[grant{key.caller, r.Server, r.Tool}] = true
	}
	a.mu.Unlock()
	close(f.done)
	if f.callerLeft {
		return callerGoneError(ctx, r)
	}
	return a.outcomeError(f, r, d)
}

// noteAnswer writes the answer down where a record of the call is kept.
func (a *asker) noteAnswer(ctx context.Context, word AskAnswer) {
	if a.audit != nil {
		notePersonAnswer(ctx, word)
	}
}

// outcomeError is what an answer means for a call.
func (a *asker) outcomeError(f *openQuestion, r AskRequest, d access.Decision) error {
	if f.err != nil {
		select {
		case <-a.done:
			return f.err
		default:
		}
		e := unansweredError(r, d, messages.Line(f.err.Error(), 300))
		var own *Error
		if errors.As(f.err, &own) {
			if e = unansweredError(r, d, own.Text); own.Fix != "" {
				e.Fix = own.Fix
			}
		}
		e.Err = f.err
		return e
	}
	switch f.answer {
	case AskOnce, AskAll, AskSession, AskAlways:
		return nil
	case AskNo, askGranted:
	}
	return unansweredError(r, d, "and the answer was no")
}

// unansweredError is the error of a call that was not allowed when it was asked about.
func unansweredError(r AskRequest, d access.Decision, what string) *Error {
	e := &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Server: r.Server, Tool: r.Tool,
		Text: "it must be asked for, because " + d.Why + ", " + what, Err: messages.ErrDenied}
	if r.Rule != "" {
		e.Fix = "allow it with the rule " + r.Rule
	}
	return e
}

func callerGoneError(ctx context.Context, r AskRequest) error {
	return &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassOf(ctx.Err()), Server: r.Server,
		Tool: r.Tool, Text: "the caller gave up before there was an answer to whether it may be called", Err: ctx.Err()}
}

type (
	askFunc        = func(context.Context, AskRequest) (AskAnswer, error)
	callerAskerKey struct{}
	// callerAsker is compared by its address: each call of AskedBy makes another caller.
	callerAsker struct{ ask askFunc }
	scopeKey    struct{}
)

// AskedBy makes ask answer whether the calls that are made with the result may be made, in the place of Config.Ask: for a
// program whose callers each have a person of their own. What one caller is asked answers nothing for another one.
func AskedBy(ctx context.Context, ask func(context.Context, AskRequest) (AskAnswer, error)) context.Context {
	return context.WithValue(ctx, callerAskerKey{}, &callerAsker{ask})
}

// ScopeGrants names the caller that the answers AskSession and AskAlways count for, if the function of AskedBy gives them to
// a call that is made with the result. Without it, and with an empty name, they count for every caller.
func ScopeGrants(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, scopeKey{}, caller)
}
