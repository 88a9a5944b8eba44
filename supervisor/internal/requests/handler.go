// Package requests answers the requests of servers (elicitation, sampling, roots): with the program's functions, or through an
// actor that has announced that it answers them.
//
//	h := requests.New(requests.Answerers{Elicit: elicit, Log: log, Hooks: hooks.NewRunner(log)})
//	handlers := h.HandlersFor("files")               // what a new connection announces and uses
//
// Guarantees: an ability without an answerer is never announced; the person sees no question that can be read in two ways, no form that
// cannot be used, and at most ten of a server at once and one more every 6 s; an answer that does not fit its form is not sent; a panic
// of the program's function, and a runtime.Goexit, fails the one request at once; one that does not return is left when the request ends.
//
// # How it fits
//
// The sessions of package transports/session call the handlers. The entry actor of package supervisor sets which kinds actors answer.
//
// Not promised: an answer. A question that is not answered before its context ends is refused, and the server decides what that means.
package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/output"
	"github.com/mcpvisor/mcpvisor/supervisor/sparing"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Handler answers the requests of servers: with the program's functions, or through the actor that has announced a kind
// for which the program has no function. Safe for concurrent use; its methods run on goroutines of sessions.
type Handler struct {
	answerers Answerers
	// actorHandler passes a request to the entry actor, nil before that one has started and after its end. actorKinds are the kinds
	// that handlers have announced.
	actorHandler atomic.Pointer[ActorFunc]
	actorKinds   atomic.Pointer[Kinds]

	// forms checks forms, and the answers to them.
	forms output.Checker
	// elicitLimits and sampleLimits bound how often a server may ask; warnLimits bounds how often the log says so.
	elicitLimits, sampleLimits rateLimits
	warnLimits                 sparing.Limiter
}

// Answerers are the program's functions, and what they need beside them. A kind whose function is nil is left to actors, and
// refused where no actor has announced it.
type Answerers struct {
	Elicit func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)
	Sample func(context.Context, messages.SampleRequest) (json.RawMessage, error)
	Roots  func(ctx context.Context, server string) ([]messages.Root, error)
	// ElicitURL and SampleTools announce the extensions of the kinds.
	ElicitURL, SampleTools bool
	Log                    *zap.Logger
	// Hooks runs the functions.
	Hooks *hooks.Runner
	// Publish sends an event to the watchers; nil publishes none.
	Publish func(messages.Event)
}

// Kinds are the kinds of requests that an answerer takes; the second of each pair is an extension of the first.
type Kinds struct{ Sampling, SamplingTools, Elicitation, ElicitationURL, Roots bool }

// IsEmpty reports whether there is no kind.
func (k Kinds) IsEmpty() bool { return k == Kinds{} }

// ActorFunc hands a request to the actor that handles its kind and waits for the answer.
type ActorFunc func(ctx context.Context, server, method string, params json.RawMessage, unheard int) (json.RawMessage, error)

func New(a Answerers) *Handler {
	return &Handler{
		answerers: a, elicitLimits: rateLimits{burst: elicitBurst, every: elicitEvery}, sampleLimits: rateLimits{burst: sampleBurst, every: sampleEvery},
	}
}

// SetActor makes the handler pass requests to the entry actor; nil says that there is none.
func (d *Handler) SetActor(ask ActorFunc) {
	if ask == nil {
		d.actorHandler.Store(nil)
		return
	}
	d.actorHandler.Store(&ask)
}

// SetActorKinds says which kinds handlers have announced. Connections that are opened from now on announce them to their servers.
func (d *Handler) SetActorKinds(kinds Kinds) { d.actorKinds.Store(&kinds) }

// ProgramKinds returns the kinds for which the program has functions. No actor may announce these.
func (d *Handler) ProgramKinds() Kinds {
	a := d.answerers
	return Kinds{Sampling: a.Sample != nil, Elicitation: a.Elicit != nil, Roots: a.Roots != nil}
}

// HandlersFor returns the functions that a new connection of a server announces and uses. A kind without an answerer stays nil, is
// not announced, and is refused. A connection keeps what it began with, because the protocol negotiates abilities once.
func (d *Handler) HandlersFor(server string) (h session.Handlers) {
	// The program's functions come first; the entry actor has refused handlers of the same kinds.
	a, byActor := d.answerers, Kinds{}
	if k := d.actorKinds.Load(); k != nil {
		byActor = *k
	}
	switch {
	case a.Elicit != nil:
		h.Elicit, h.ElicitURL = d.elicitFunc(server, a.Elicit), a.ElicitURL
	case byActor.Elicitation:
		h.Elicit, h.ElicitURL = d.elicitFunc(server, d.elicitFromActor), byActor.ElicitationURL
	}
	switch {
	case a.Sample != nil:
		h.Sample, h.SampleTools = d.sampleFunc(server, a.Sample), a.SampleTools
	case byActor.Sampling:
		h.Sample, h.SampleTools = d.sampleFunc(server, func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
			return d.askActor(ctx, r.Server, "sampling/createMessage", r.Params, r.Unheard)
		}), byActor.SamplingTools
	}
	switch {
	case a.Roots != nil:
		h.Roots = d.rootsFunc(server, a.Roots)
	case byActor.Roots:
		h.Roots = d.rootsFunc(server, d.rootsFromActor)
	}
	return h
}

// takeUnlessRelayed counts a question, unless another client gets it: one shared server may ask for all its clients, and each of them
// bounds what its own person sees.
func takeUnlessRelayed(limits *rateLimits, caller *messages.Answerer, server string) (unheard int, heard bool) {
	if caller != nil && caller.Relays {
		return 0, true
	}
	return limits.takeRequest(server, time.Now())
}

// elicitFunc returns the function that answers a server's questions to the person. It refuses what the person must not see: too
// many questions, requests that can be read in two ways, and forms that cannot be used. The answer is checked before it is sent.
func (d *Handler) elicitFunc(server string, ask func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)) func(
	context.Context, messages.ElicitRequest) (messages.ElicitResult, error) {
	return func(ctx context.Context, r messages.ElicitRequest) (res messages.ElicitResult, err error) {
		// The request carries no name of its server; the program shall show one.
		r.Server = server
		caller := messages.AnswererOf(ctx)
		unheard, heard := takeUnlessRelayed(&d.elicitLimits, caller, server)
		if r.Unheard = unheard; !heard {
			d.warnUnheard(server, "it asks the person too often; the question was not shown")
			return messages.ElicitResult{}, notShownError("it asks too often")
		}
		// From here on only well-formed requests are shown.
		if err = d.checkUnambiguous(server, "elicit", r.Params); err != nil {
			return messages.ElicitResult{}, err
		}
		if r.Mode == messages.ElicitForm {
			if why := d.forms.UnusableForm(r.Schema); why != "" {
				err = &messages.Error{Op: "elicit", Class: messages.ClassProtocol, Server: server, Text: "the form cannot be used: " + why}
				d.warnLimited(server, "it asks the person for a form that cannot be used", err)
				return messages.ElicitResult{}, err
			}
		}
		// A caller of ElicitedBy answers for its own requests; the session has put it into the context.
		answerer, function := ask, "Config.Elicit"
		if caller != nil && caller.Elicit != nil {
			answerer, function = caller.Elicit, "the function given to ElicitedBy"
		}
		res, err = runAnswerer(ctx, d, hooks.Call{Function: function, Op: "elicitation", Server: server},
			func() (messages.ElicitResult, error) { return answerer(ctx, r) })
		if err != nil {
			return res, err
		}
		// 2025-11-25, Elicitation: "Clients SHOULD validate all responses against the provided schema".
		if r.Mode == messages.ElicitForm && res.Action == messages.ElicitAccept {
			// The content comes from the person or from a program; the server must not get it if it violates the form.
			if misfit := d.forms.Misfit(r.Schema, res.Content); misfit != "" {
				d.answerers.Log.Error("the answer to a server's form does not fit it; the server did not get it",
					zap.String("server", server), zap.String("at", misfit))
				return messages.ElicitResult{}, &messages.Error{Op: "elicit", Class: messages.ClassInvalid, Server: server,
					Text: "the answer does not fit the form: " + misfit}
			}
		}
		// A call that a person has answered about must not be sent again: it would ask the person twice.
		actors.NoteAnswer(ctx)
		return res, nil
	}
}

// sampleFunc returns the function that answers a server's requests for the model, with a bound and a check as in elicitFunc. The
// result is the program's own and is not checked.
func (d *Handler) sampleFunc(server string, ask func(context.Context, messages.SampleRequest) (json.RawMessage, error)) func(
	context.Context, messages.SampleRequest) (json.RawMessage, error) {
	return func(ctx context.Context, r messages.SampleRequest) (raw json.RawMessage, err error) {
		r.Server = server
		caller := messages.AnswererOf(ctx)
		unheard, heard := takeUnlessRelayed(&d.sampleLimits, caller, server)
		if r.Unheard = unheard; !heard {
			d.warnUnheard(server, "it asks for the model too often; it was refused")
			return nil, RefusedError("too many requests for the model")
		}
		if err = d.checkUnambiguous(server, "sample", r.Params); err != nil {
			return nil, err
		}
		// An answer of the model counts as one too: the request that caused it is not sent a second time.
		answerer := ask
		if caller != nil && caller.Sample != nil {
			answerer = caller.Sample
		}
		raw, err = runAnswerer(ctx, d, hooks.Call{Function: "Config.Sample", Op: "sampling", Server: server},
			func() (json.RawMessage, error) { return answerer(ctx, r) })
		if err == nil {
			actors.NoteAnswer(ctx)
		}
		return raw, err
	}
}

// rootsFunc returns the function that lists the roots. A server may ask for them at any time; there is nothing to protect.
func (d *Handler) rootsFunc(server string, ask func(context.Context, string) ([]messages.Root, error)) func(context.Context) ([]messages.Root, error) {
	return func(ctx context.Context) ([]messages.Root, error) {
		answerer := ask
		if caller := messages.AnswererOf(ctx); caller != nil && caller.Roots != nil {
			answerer = caller.Roots
		}
		return runAnswerer(ctx, d, hooks.Call{Function: "Config.Roots", Op: "roots", Server: server},
			func() ([]messages.Root, error) { return answerer(ctx, server) })
	}
}

// runAnswerer runs the program's function that answers a server, until ctx ends: the session, and what waits for its end, waits for no
// function that does not return.
func runAnswerer[T any](ctx context.Context, d *Handler, c hooks.Call, answer func() (T, error)) (T, error) {
	type answered struct {
		value T
		err   error
	}
	got, err := hooks.Do(ctx, d.answerers.Hooks, nil, c, func() (a answered) {
		a.value, a.err = answer()
		return a
	})
	var broken *hooks.Broken
	switch {
	case errors.As(err, &broken):
		return got.value, &messages.Error{Op: c.Op, Class: messages.ClassPanic, Server: c.Server, Text: "the function that answers " + broken.Error()}
	case ctx.Err() != nil && err != nil:
		return got.value, &messages.Error{Op: c.Op, Class: messages.ClassOf(err), Server: c.Server,
			Text: "the function that answers had not returned when the request ended", Err: err}
	case err != nil:
		return got.value, err
	}
	return got.value, got.err
}

// checkUnambiguous refuses a request with two member names in one object that are equal, or equal but for case. The person decides
// by what one reader shows, and another program might read the other member.
func (d *Handler) checkUnambiguous(server, kind string, params json.RawMessage) error {
	if len(params) == 0 {
		return nil
	}
	// The check is by the bytes that the server sent, before anything is decoded.
	err := rawjson.CheckNames(params)
	if err == nil {
		return nil
	}
	err = &messages.Error{Op: kind, Class: messages.ClassProtocol, Server: server,
		Text: "the request cannot be read in one way: " + err.Error(), Err: err}
	d.warnLimited(server, "it asks what cannot be read in one way; it was refused", err)
	return err
}

// warnUnheard reports that a server was refused for its rate, to the log and to watchers, at most once a minute.
func (d *Handler) warnUnheard(server, text string) {
	if times := d.warnLimited(server, text, nil); times > 0 && d.answerers.Publish != nil {
		d.answerers.Publish(messages.Event{Kind: messages.EventUnheard, Server: server, Missed: uint64(times)})
	}
}

// warnLimited logs a refusal once a minute for each server and text, with the number of those in between, because a server may ask
// as often as it likes. It returns how many refusals the line stands for; 0 if nothing was logged.
func (d *Handler) warnLimited(server, text string, err error) (times int) {
	// The subject is the server and the text, so one server cannot silence the warnings about another.
	skipped, say := d.warnLimits.Allow(server+"\x00"+text, time.Now())
	if !say {
		return 0
	}
	fields := []zap.Field{zap.String("server", server), zap.Error(err)}
	if skipped > 0 {
		fields = append(fields, zap.Int("timesBefore", skipped))
	}
	d.answerers.Log.Warn(text, fields...)
	return skipped + 1
}

// RefusedError is the error of a request that was refused by a decision of the program or its actor.
func RefusedError(text string) error {
	return &messages.Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrDenied}
}

// notShownError is the error of a question that no person has seen: it must not be reported as the person's refusal.
func notShownError(text string) error {
	return &messages.Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrNotShown}
}

// askActor passes a request to the handler of its kind. Without an entry actor there is none.
func (d *Handler) askActor(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	ask := d.actorHandler.Load()
	if ask == nil {
		return nil, RefusedError("nobody answers")
	}
	return (*ask)(ctx, server, method, params, unheard)
}

// elicitFromActor answers a question through a handler. The answer is read with the strict reader, because a person decided on it.
func (d *Handler) elicitFromActor(ctx context.Context, r messages.ElicitRequest) (res messages.ElicitResult, err error) {
	// The handler gets the server's params as they came, so it sees members that this version does not know.
	raw, err := d.askActor(ctx, r.Server, "elicitation/create", r.Params, r.Unheard)
	if err != nil {
		return res, err
	}
	if err := rawjson.Unmarshal(raw, &res); err != nil {
		return res, fmt.Errorf("the actor's answer is no elicitation result: %w", err)
	}
	return res, nil
}

// rootsFromActor lists the roots through a handler.
func (d *Handler) rootsFromActor(ctx context.Context, server string) ([]messages.Root, error) {
	raw, err := d.askActor(ctx, server, "roots/list", nil, 0)
	if err != nil {
		return nil, err
	}
	var res struct{ Roots []messages.Root }
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("the actor's answer is no list of roots: %w", err)
	}
	return res.Roots, nil
}
