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

// desk is where the requests of servers are answered: by the program's functions, or by the actor that has taken a kind
// which the program left. Safe for concurrent use; its methods run on goroutines of sessions.
type desk struct {
	cfg *Config
	// counter is the way to the actor that answers, nil before there is one; taken are the kinds that it announced.
	counter atomic.Pointer[counter]
	taken   atomic.Pointer[kinds]

	// forms checks answers.
	forms output.Checker
	// elicited and sampled bound how often a server may ask.
	elicited, sampled allowances
	warned            sparing.Remarks
	// publish tells watchers.
	publish func(messages.Event)
}

// kinds are what an actor answers.
type kinds struct{ sampling, samplingTools, elicitation, elicitationURL, roots bool }

func (k kinds) none() bool { return k == kinds{} }

// counter hands a request to the actor that handles its kind and waits for the answer.
type counter func(ctx context.Context, server, method string, params json.RawMessage, unheard int) (json.RawMessage, error)

func newDesk(cfg *Config) *desk {
	return &desk{
		cfg: cfg, elicited: allowances{burst: elicitBurst, every: elicitEvery}, sampled: allowances{burst: sampleBurst, every: sampleEvery},
	}
}

// own are the kinds that the program answers itself.
func (d *desk) own() kinds {
	c := d.cfg
	return kinds{sampling: c.Sample != nil, elicitation: c.Elicit != nil, roots: c.Roots != nil}
}

// handlers are what one server may ask, from its next connection on.
func (d *desk) handlers(server string) (h session.Handlers) {
	c, by := d.cfg, kinds{}
	if k := d.taken.Load(); k != nil {
		by = *k
	}
	switch {
	case c.Elicit != nil:
		h.Elicit, h.ElicitURL = d.elicit(server, c.Elicit), c.ElicitURL
	case by.elicitation:
		h.Elicit, h.ElicitURL = d.elicit(server, d.elicitByMessage), by.elicitationURL
	}
	switch {
	case c.Sample != nil:
		h.Sample, h.SampleTools = d.sample(server, c.Sample), c.SampleTools
	case by.sampling:
		h.Sample, h.SampleTools = d.sample(server, func(ctx context.Context, r SampleRequest) (json.RawMessage, error) {
			return d.byMessage(ctx, r.Server, "sampling/createMessage", r.Params, r.Unheard)
		}), by.samplingTools
	}
	switch {
	case c.Roots != nil:
		h.Roots = d.roots(server, c.Roots)
	case by.roots:
		h.Roots = d.roots(server, d.rootsByMessage)
	}
	return h
}

func (d *desk) elicit(server string, ask func(context.Context, ElicitRequest) (ElicitResult, error)) func(
	context.Context, ElicitRequest) (ElicitResult, error) {
	return func(ctx context.Context, r ElicitRequest) (res ElicitResult, err error) {
		defer d.guard(server, "elicitation", &err)
		r.Server = server
		unheard, heard := d.elicited.take(server, time.Now())
		if r.Unheard = unheard; !heard {
			d.unheard(server, "it asks the person too often; the question was not shown")
			return ElicitResult{}, unseen("it asks too often")
		}
		if err = d.oneReading(server, "elicit", r.Params); err != nil {
			return ElicitResult{}, err
		}
		if r.Mode == messages.ElicitForm {
			if why := d.forms.UnusableForm(r.Schema); why != "" {
				err = &Error{Op: "elicit", Class: messages.ClassProtocol, Server: server, Text: "the form cannot be used: " + why}
				d.warn(server, "it asks the person for a form that cannot be used", err)
				return ElicitResult{}, err
			}
		}
		asked := ask
		if caller := messages.AnswererOf(ctx); caller != nil && caller.Elicit != nil {
			asked = caller.Elicit
		}
		if res, err = asked(ctx, r); err != nil {
			return res, err
		}
		if r.Mode == messages.ElicitForm && res.Action == messages.ElicitAccept {
			if wrong := d.forms.Misfit(r.Schema, res.Content); wrong != "" {
				d.cfg.Logger.Error("the answer to a server's form does not fit it; the server did not get it",
					zap.String("server", server), zap.String("at", wrong))
				return ElicitResult{}, &Error{Op: "elicit", Class: messages.ClassInvalid, Server: server,
					Text: "the answer does not fit the form: " + wrong}
			}
		}
		actors.NoteAnswer(ctx)
		return res, nil
	}
}

func (d *desk) sample(server string, ask func(context.Context, SampleRequest) (json.RawMessage, error)) func(
	context.Context, SampleRequest) (json.RawMessage, error) {
	return func(ctx context.Context, r SampleRequest) (raw json.RawMessage, err error) {
		defer d.guard(server, "sampling", &err)
		r.Server = server
		unheard, heard := d.sampled.take(server, time.Now())
		if r.Unheard = unheard; !heard {
			d.unheard(server, "it asks for the model too often; it was refused")
			return nil, refusedBy("too many requests for the model")
		}
		if err = d.oneReading(server, "sample", r.Params); err != nil {
			return nil, err
		}
		if raw, err = ask(ctx, r); err == nil {
			actors.NoteAnswer(ctx)
		}
		return raw, err
	}
}

func (d *desk) roots(server string, ask func(context.Context, string) ([]Root, error)) func(context.Context) ([]Root, error) {
	return func(ctx context.Context) (roots []Root, err error) {
		defer d.guard(server, "roots", &err)
		return ask(ctx, server)
	}
}

// guard makes a panic of the program's function the failure of one request.
func (d *desk) guard(server, kind string, err *error) {
	if r := recover(); r != nil {
		d.cfg.Logger.Error("panic in a function that answers servers", zap.String("server", server), zap.String("kind", kind),
			zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
		*err = &Error{Op: kind, Class: messages.ClassPanic, Server: server, Text: "the function that answers panicked"}
	}
}

// oneReading refuses a request that a person decides on and that programs read differently: two names of one of its objects
// are equal, or alike but for case.
func (d *desk) oneReading(server, kind string, params json.RawMessage) error {
	if len(params) == 0 {
		return nil
	}
	err := rawjson.CheckNames(params)
	if err == nil {
		return nil
	}
	err = &Error{Op: kind, Class: messages.ClassProtocol, Server: server,
		Text: "the request cannot be read in one way: " + err.Error(), Err: err}
	d.warn(server, "it asks what cannot be read in one way; it was refused", err)
	return err
}

// unheard says that a server was refused without being heard, to the log and to watchers.
func (d *desk) unheard(server, text string) {
	if times := d.warn(server, text, nil); times > 0 && d.publish != nil {
		d.publish(messages.Event{Kind: messages.EventUnheard, Server: server, Missed: uint64(times)})
	}
}

// warn says of each server and text once a minute that something was refused, and of how many times: a server asks as often
// as it likes. It returns 0 if it was not said.
func (d *desk) warn(server, text string, err error) (times int) {
	skipped, say := d.warned.Take(server+"\x00"+text, time.Now())
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

func refusedBy(text string) error {
	return &Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrDenied}
}

// unseen is the error of a question that no person was shown.
func unseen(text string) error {
	return &Error{Op: "answer", Class: messages.ClassDenied, Text: text, Err: messages.ErrNotShown}
}

// byMessage asks the actor that handles the kind.
func (d *desk) byMessage(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	ask := d.counter.Load()
	if ask == nil {
		return nil, refusedBy("nobody answers")
	}
	return (*ask)(ctx, server, method, params, unheard)
}

func (d *desk) elicitByMessage(ctx context.Context, r ElicitRequest) (res ElicitResult, err error) {
	raw, err := d.byMessage(ctx, r.Server, "elicitation/create", r.Params, r.Unheard)
	if err != nil {
		return res, err
	}
	if err := rawjson.Unmarshal(raw, &res); err != nil {
		return res, fmt.Errorf("the actor's answer is no elicitation result: %w", err)
	}
	return res, nil
}

func (d *desk) rootsByMessage(ctx context.Context, server string) ([]Root, error) {
	raw, err := d.byMessage(ctx, server, "roots/list", nil, 0)
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
		if cell := m.shared.cell(name); cell != nil {
			if s := cell.View().Session; s != nil {
				s.RootsChanged()
			}
		}
	}
}
