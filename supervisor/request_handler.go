package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/output"
	"github.com/mcpvisor/mcpvisor/supervisor/sparing"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// requestHandler is where the requests of servers are answered: by the program's functions, or by the actor that has taken a kind
// which the program left. Safe for concurrent use; its methods run on goroutines of sessions.
type requestHandler struct {
	cfg *Config
	// actorHandler is the way to the actor that answers, nil before there is one; taken are the kinds that it announced.
	actorHandler atomic.Pointer[actorHandler]
	actorKinds   atomic.Pointer[requestKinds]

	// forms checks answers.
	forms output.Checker
	// elicitLimits and sampled bound how often a server may ask.
	elicitLimits, sampleLimits rateLimits
	warnLimits                 sparing.Limiter
	// publish tells watchers.
	publish func(messages.Event)
}

// requestKinds are what an actor answers.
type requestKinds struct{ sampling, samplingTools, elicitation, elicitationURL, roots bool }

func (k requestKinds) isEmpty() bool { return k == requestKinds{} }

// actorHandler hands a request to the actor that handles its kind and waits for the answer.
type actorHandler func(ctx context.Context, server, method string, params json.RawMessage, unheard int) (json.RawMessage, error)

func newRequestHandler(cfg *Config) *requestHandler {
	return &requestHandler{
		cfg: cfg, elicitLimits: rateLimits{burst: elicitBurst, every: elicitEvery}, sampleLimits: rateLimits{burst: sampleBurst, every: sampleEvery},
	}
}

// programKinds are the kinds that the program answers itself.
func (d *requestHandler) programKinds() requestKinds {
	c := d.cfg
	return requestKinds{sampling: c.Sample != nil, elicitation: c.Elicit != nil, roots: c.Roots != nil}
}

// handlersFor are what one server may ask, from its next connection on.
func (d *requestHandler) handlersFor(server string) (h session.Handlers) {
	c, byActor := d.cfg, requestKinds{}
	if k := d.actorKinds.Load(); k != nil {
		byActor = *k
	}
	switch {
	case c.Elicit != nil:
		h.Elicit, h.ElicitURL = d.elicitFunc(server, c.Elicit), c.ElicitURL
	case byActor.elicitation:
		h.Elicit, h.ElicitURL = d.elicitFunc(server, d.elicitFromActor), byActor.elicitationURL
	}
	switch {
	case c.Sample != nil:
		h.Sample, h.SampleTools = d.sampleFunc(server, c.Sample), c.SampleTools
	case byActor.sampling:
		h.Sample, h.SampleTools = d.sampleFunc(server, func(ctx context.Context, r SampleRequest) (json.RawMessage, error) {
			return d.askActor(ctx, r.Server, "sampling/createMessage", r.Params, r.Unheard)
		}), byActor.samplingTools
	}
	switch {
	case c.Roots != nil:
		h.Roots = d.rootsFunc(server, c.Roots)
	case byActor.roots:
		h.Roots = d.rootsFunc(server, d.rootsFromActor)
	}
	return h
}

func (d *requestHandler) elicitFunc(server string, ask func(context.Context, ElicitRequest) (ElicitResult, error)) func(
	context.Context, ElicitRequest) (ElicitResult, error) {
	return func(ctx context.Context, r ElicitRequest) (res ElicitResult, err error) {
		defer d.recoverPanic(server, "elicitation", &err)
		r.Server = server
		unheard, heard := d.elicitLimits.takeRequest(server, time.Now())
		if r.Unheard = unheard; !heard {
			d.warnUnheard(server, "it asks the person too often; the question was not shown")
			return ElicitResult{}, notShownError("it asks too often")
		}
		if err = d.checkUnambiguous(server, "elicit", r.Params); err != nil {
			return ElicitResult{}, err
		}
		if r.Mode == messages.ElicitForm {
			if why := d.forms.UnusableForm(r.Schema); why != "" {
				err = &Error{Op: "elicit", Class: messages.ClassProtocol, Server: server, Text: "the form cannot be used: " + why}
				d.warnLimited(server, "it asks the person for a form that cannot be used", err)
				return ElicitResult{}, err
			}
		}
		answerer := ask
		if caller := messages.AnswererOf(ctx); caller != nil && caller.Elicit != nil {
			answerer = caller.Elicit
		}
		if res, err = answerer(ctx, r); err != nil {
			return res, err
		}
		if r.Mode == messages.ElicitForm && res.Action == messages.ElicitAccept {
			if misfit := d.forms.Misfit(r.Schema, res.Content); misfit != "" {
				d.cfg.Logger.Error("the answer to a server's form does not fit it; the server did not get it",
					zap.String("server", server), zap.String("at", misfit))
				return ElicitResult{}, &Error{Op: "elicit", Class: messages.ClassInvalid, Server: server,
					Text: "the answer does not fit the form: " + misfit}
			}
		}
		actors.NoteAnswer(ctx)
		return res, nil
	}
}

func (d *requestHandler) sampleFunc(server string, ask func(context.Context, SampleRequest) (json.RawMessage, error)) func(
	context.Context, SampleRequest) (json.RawMessage, error) {
	return func(ctx context.Context, r SampleRequest) (raw json.RawMessage, err error) {
		defer d.recoverPanic(server, "sampling", &err)
		r.Server = server
		unheard, heard := d.sampleLimits.takeRequest(server, time.Now())
		if r.Unheard = unheard; !heard {
			d.warnUnheard(server, "it asks for the model too often; it was refused")
			return nil, refusedError("too many requests for the model")
		}
		if err = d.checkUnambiguous(server, "sample", r.Params); err != nil {
			return nil, err
		}
		if raw, err = ask(ctx, r); err == nil {
			actors.NoteAnswer(ctx)
		}
		return raw, err
	}
}

func (d *requestHandler) rootsFunc(server string, ask func(context.Context, string) ([]Root, error)) func(context.Context) ([]Root, error) {
	return func(ctx context.Context) (roots []Root, err error) {
		defer d.recoverPanic(server, "roots", &err)
		return ask(ctx, server)
	}
}

// recoverPanic makes a panic of the program's function the failure of one request.
func (d *requestHandler) recoverPanic(server, kind string, err *error) {
	if r := recover(); r != nil {
		d.cfg.Logger.Error("panic in a function that answers servers", zap.String("server", server), zap.String("kind", kind),
			zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
		*err = &Error{Op: kind, Class: messages.ClassPanic, Server: server, Text: "the function that answers panicked"}
	}
}

// checkUnambiguous refuses a request that a person decides on and that programs read differently: two names of one of its objects
// are equal, or alike but for case.
func (d *requestHandler) checkUnambiguous(server, kind string, params json.RawMessage) error {
	if len(params) == 0 {
		return nil
	}
	err := rawjson.CheckNames(params)
	if err == nil {
		return nil
	}
	err = &Error{Op: kind, Class: messages.ClassProtocol, Server: server,
		Text: "the request cannot be read in one way: " + err.Error(), Err: err}
	d.warnLimited(server, "it asks what cannot be read in one way; it was refused", err)
	return err
}

// warnUnheard says that a server was refused without being heard, to the log and to watchers.
func (d *requestHandler) warnUnheard(server, text string) {
	if times := d.warnLimited(server, text, nil); times > 0 && d.publish != nil {
		d.publish(messages.Event{Kind: messages.EventUnheard, Server: server, Missed: uint64(times)})
	}
}

// warnLimited says of each server and text once a minute that something was refused, and of how many times: a server asks as often
// as it likes. It returns 0 if it was not said.
func (d *requestHandler) warnLimited(server, text string, err error) (times int) {
	skipped, say := d.warnLimits.Allow(server+"\x00"+text, time.Now())
	if !say {
		return 0
	}
	fields := []zap.Field{zap.String("server", server), zap.Error(err)}
	if skipped > 0 {
		fields = append(fields, zap.Int("timesBefore", skipped))
	}
	d.cfg.Logger.Warn(text, fields...)
	return skipped + 1
}

func refusedError(text string) error {
	return &Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrDenied}
}

// notShownError is the error of a question that no person was shown.
func notShownError(text string) error {
	return &Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrNotShown}
}

// askActor asks the actor that handles the kind.
func (d *requestHandler) askActor(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	ask := d.actorHandler.Load()
	if ask == nil {
		return nil, refusedError("nobody answers")
	}
	return (*ask)(ctx, server, method, params, unheard)
}

func (d *requestHandler) elicitFromActor(ctx context.Context, r ElicitRequest) (res ElicitResult, err error) {
	raw, err := d.askActor(ctx, r.Server, "elicitation/create", r.Params, r.Unheard)
	if err != nil {
		return res, err
	}
	if err := rawjson.Unmarshal(raw, &res); err != nil {
		return res, fmt.Errorf("the actor's answer is no elicitation result: %w", err)
	}
	return res, nil
}

func (d *requestHandler) rootsFromActor(ctx context.Context, server string) ([]Root, error) {
	raw, err := d.askActor(ctx, server, "roots/list", nil, 0)
	if err != nil {
		return nil, err
	}
	var res struct{ Roots []Root }
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("the actor's answer is no list of roots: %w", err)
	}
	return res.Roots, nil
}

// RootsChanged tells every connected server of the legacy era that Config.Roots gives another list than before. Those of
// the modern era ask anew with each call.
func (m *Manager) RootsChanged() {
	for _, name := range m.Servers() {
		if cell := m.shared.cellOf(name); cell != nil {
			if s := cell.View().Session; s != nil {
				s.RootsChanged()
			}
		}
	}
}
