package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// auditTime bounds the wait of Close for a writer of the audit log that does not return.
const auditTime = 2 * time.Second

// auditor puts what happens into the audit log. A nil one does nothing.
type auditor struct {
	log *audit.Log
	m   *Manager
}

// newAuditor is nil if nobody wants a record.
func newAuditor(m *Manager) *auditor {
	cfg := m.cfg
	if cfg.Audit == nil {
		return nil
	}
	o := cfg.AuditOptions
	if o.Logger == nil {
		o.Logger = cfg.Logger
	}
	a := &auditor{log: audit.New(cfg.Audit, o), m: m}
	a.log.Add(audit.Record{Kind: audit.KindStart, PID: os.Getpid(), Program: cfg.ClientName + " " + cfg.ClientVersion,
		Project: cfg.AuditProject})
	return a
}

// AuditStats tell what became of the records of Config.Audit: how many are written, wait, and are lost. Without one all are
// zero.
func (m *Manager) AuditStats() audit.Stats {
	if m.audit == nil {
		return audit.Stats{}
	}
	return m.audit.log.Stats()
}

// close writes the end of the record.
func (a *auditor) close() {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	a.log.Add(audit.Record{Kind: audit.KindEnd})
	if err := a.log.Close(ctx); err != nil {
		a.m.cfg.Logger.Error(err.Error())
	}
}

// call runs a call and records how it ended, also if a function of the program panics.
func (a *auditor) call(
	ctx context.Context, server, tool string, raw json.RawMessage, opts []CallOption, wrong error,
) (res *Result, err error) {
	start := time.Now()
	traced, trace := actors.WithTrace(ctx, server, tool)
	returned := false
	defer func() {
		if !returned {
			err = panicked("call")
		}
		a.ended(ctx, trace, start, server, tool, raw, res, err)
	}()
	if err = wrong; err == nil {
		res, err = a.m.run(traced, server, tool, raw, opts)
	}
	returned = true
	return res, err
}

func (a *auditor) ended(ctx context.Context, t *actors.Trace, start time.Time, server, tool string, raw json.RawMessage,
	res *Result, err error) {
	r := a.outcome(ctx, audit.KindCall, t, start, err)
	r.Tool = t.Tool
	if res != nil {
		r.Outcome, r.Received = res.Outcome(), len(res.Raw)
	}
	if errors.Is(err, ErrDenied) && r.Decision == "" {
		a.whyRefused(&r, server, tool, raw)
	}
	a.given(&r, raw)
	a.log.Add(r)
}

// outcome is the record of how something ended that was asked of a server.
func (a *auditor) outcome(ctx context.Context, kind audit.Kind, t *actors.Trace, start time.Time, err error) audit.Record {
	r := audit.Record{Kind: kind, Time: start, Server: t.Server,
		Epoch: t.Epoch, Attempts: t.Attempts, Decision: t.Decision, Rule: t.Rule, Source: t.Source, Answer: t.Answer,
		Outcome: messages.OutcomeOf(err), Millis: millis(time.Since(start))}
	byContext(ctx).sign(&r)
	if err != nil {
		a.failed(&r, err)
	}
	return r
}

// given puts into a record what is recorded of arguments.
func (a *auditor) given(r *audit.Record, raw json.RawMessage) {
	var hide func(string) string
	if how := a.log.Arguments(); how == audit.Redacted || how == audit.Full {
		hide = a.hider(r.Server)
	}
	a.log.Arguments().Of(r, raw, hide)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// failed puts into a record why something did not succeed.
func (a *auditor) failed(r *audit.Record, err error) {
	r.Class = messages.ClassOf(err)
	r.Error = err.Error()
	var e *Error
	if errors.As(err, &e) && e.Text != "" {
		r.Error = e.Text // the server and the tool stand beside it
	}
	r.Error = a.hider(r.Server)(r.Error)
}

// whyRefused names the rule that keeps a tool from being offered.
func (a *auditor) whyRefused(r *audit.Record, server, tool string, raw json.RawMessage) {
	if server == "" {
		if server, tool = a.m.permissions.hidden(tool); server == "" {
			return
		}
		r.Server, r.Tool = server, tool
	}
	if d := a.m.Decide(server, tool, raw); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// hider takes the secrets of a server out of texts.
func (a *auditor) hider(server string) func(string) string {
	if cell := a.m.shared.cell(server); cell != nil {
		return cell.Hide
	}
	return func(s string) string { return s }
}

// decidedBy notes what the rules say of a call.
func decidedBy(ctx context.Context, d access.Decision) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Decision, t.Rule, t.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// answeredBy notes what was answered when the rules asked.
func answeredBy(ctx context.Context, word AskAnswer) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Answer = string(word)
	}
}

// answer records what somebody answered to a question about a call.
func (a *auditor) answer(ctx context.Context, r AskRequest, d access.Decision, word AskAnswer, took time.Duration, err error) {
	if a == nil {
		return
	}
	rec := audit.Record{Kind: audit.KindAnswer, Server: r.Server, Tool: r.Tool,
		Decision: string(d.Verdict), Rule: d.Rule, Source: d.Source.String(), Answer: string(word), Millis: millis(took)}
	byContext(ctx).sign(&rec)
	if err != nil {
		rec.Answer = ""
		a.failed(&rec, err)
	}
	a.given(&rec, r.Arguments)
	a.log.Add(rec)
}

// moved records that a server is in another phase.
func (a *auditor) moved(v *actors.View, was messages.Phase) {
	if was == "" && v.State.Phase == messages.Pending { // it has begun to exist
		return
	}
	r := audit.Record{Kind: audit.KindPhase, Server: v.Name, Epoch: v.State.Epoch, Phase: v.State.Phase, Was: was, Reason: v.Reason()}
	if c := v.State.Cause; c != nil && v.State.Phase != messages.Connected {
		r.Class, r.Error = c.Class, c.Text
	}
	a.log.Add(r)
}

// by is who asks for something, and by which way.
type by struct {
	who, via, from string
	pid            int    // of the process on the control socket
	program        string // the same
}

func byContext(ctx context.Context) by {
	b := by{who: messages.CallerOf(ctx)}
	b.via, b.from = audit.ViaOf(ctx)
	b.pid, b.program = audit.PeerOf(ctx)
	return b
}

// bySender is whoever sent the message of an actor's turn.
func bySender(ctx actor.Context) by {
	b := by{via: "message"}
	if peer := ctx.MessageHeader().Get(messages.PeerHeader); peer != "" {
		b.from = peer
	} else if ctx.Sender() != nil {
		b.from = ctx.Sender().String()
	}
	return b
}

func (b by) sign(r *audit.Record) {
	r.Who, r.Via, r.From, r.PeerPID, r.PeerProgram = b.who, b.via, b.from, b.pid, b.program
}

// change records a change that somebody made, or was refused.
func (a *auditor) change(b by, r audit.Record, err error) {
	if a == nil {
		return
	}
	if r.Kind == "" {
		r.Kind = audit.KindChange
	}
	b.sign(&r)
	if err != nil {
		a.failed(&r, err)
	}
	a.log.Add(r)
}

// told is reply, which records the change as well.
func (a *auditor) told(b by, r audit.Record, reply func(error)) func(error) {
	if a == nil {
		return reply
	}
	if r.Change == "" { // to be woken, or to list again, changes nothing
		return reply
	}
	return func(err error) {
		a.change(b, r, err)
		reply(err)
	}
}

// replaced is reply, which records the change as well.
func (a *auditor) replaced(b by, reply func(SetServersResult, error)) func(SetServersResult, error) {
	if a == nil {
		return reply
	}
	return func(res SetServersResult, err error) {
		if err != nil {
			a.change(b, audit.Record{Change: "set-servers"}, err)
		} else {
			a.configured(b, "set-servers", res)
		}
		reply(res, err)
	}
}

// added and wished are the records of changes to one server.
func added(name string, spec Spec) audit.Record {
	return audit.Record{Change: "add", Server: name, Detail: written(spec)}
}

func wished(name string, e lifecycle.Event) audit.Record {
	r := audit.Record{Server: name}
	switch e := e.(type) {
	case lifecycle.Enable:
		r.Change = "enable"
	case lifecycle.Disable:
		r.Change = "disable"
		if e.Cold {
			r.Detail = "its connection ends"
		}
	case lifecycle.Reconnect:
		r.Change = "reconnect"
	}
	return r
}

// configured records what a new configuration changed.
func (a *auditor) configured(b by, word string, res SetServersResult) {
	if a == nil || len(res.Added)+len(res.Removed)+len(res.Adjusted)+len(res.Errors) == 0 {
		return
	}
	r := audit.Record{Change: word, Added: res.Added, Removed: res.Removed, Adjusted: res.Adjusted}
	if len(res.Errors) > 0 {
		r.Detail = "cannot be used: " + strings.Join(slices.Sorted(maps.Keys(res.Errors)), ", ")
	}
	a.change(b, r, nil)
}

// written says of a spec what it starts or dials, without secrets.
func written(s Spec) string {
	s = s.Redacted()
	if s.URL != "" {
		return string(s.Kind()) + " " + s.URL
	}
	return strings.TrimSpace(string(s.Kind()) + " " + strings.Join(append([]string{s.Command}, s.Args...), " "))
}

// ruleCount says how many rules there are.
func ruleCount(r access.Rules) string {
	text := fmt.Sprintf("%d managed rules, %d others", len(r.Managed.Rules), len(r.Own.Rules))
	if r.Own.Default != "" {
		text += ", default " + string(r.Own.Default)
	}
	return text
}
