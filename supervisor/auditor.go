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

// auditCall runs a call and records how it ended, also if a function of the program panics.
func (a *auditor) auditCall(
	ctx context.Context, server, tool string, raw json.RawMessage, opts []CallOption, argsErr error,
) (res *Result, err error) {
	start := time.Now()
	traced, trace := actors.WithTrace(ctx, server, tool)
	returned := false
	defer func() {
		if !returned {
			err = panickedError("call")
		}
		a.recordCall(ctx, trace, start, server, tool, raw, res, err)
	}()
	if err = argsErr; err == nil {
		res, err = a.m.runCall(traced, server, tool, raw, opts)
	}
	returned = true
	return res, err
}

func (a *auditor) recordCall(ctx context.Context, t *actors.Trace, start time.Time, server, tool string, raw json.RawMessage,
	res *Result, err error) {
	r := a.outcomeRecord(ctx, audit.KindCall, t, start, err)
	r.Tool = t.Tool
	if res != nil {
		r.Outcome, r.Received = res.Outcome(), len(res.Raw)
	}
	if errors.Is(err, ErrDenied) && r.Decision == "" {
		a.addRefusingRule(&r, server, tool, raw)
	}
	a.addArguments(&r, raw)
	a.log.Add(r)
}

// outcomeRecord is the record of how something ended that was asked of a server.
func (a *auditor) outcomeRecord(ctx context.Context, kind audit.Kind, t *actors.Trace, start time.Time, err error) audit.Record {
	r := audit.Record{Kind: kind, Time: start, Server: t.Server,
		Epoch: t.Epoch, Attempts: t.Attempts, Decision: t.Decision, Rule: t.Rule, Source: t.Source, Answer: t.Answer,
		Outcome: messages.OutcomeOf(err), Millis: millisOf(time.Since(start))}
	callerFromContext(ctx).addTo(&r)
	if err != nil {
		a.addError(&r, err)
	}
	return r
}

// addArguments puts into a record what is recorded of arguments.
func (a *auditor) addArguments(r *audit.Record, raw json.RawMessage) {
	var redact func(string) string
	if how := a.log.Arguments(); how == audit.Redacted || how == audit.Full {
		redact = a.redactor(r.Server)
	}
	a.log.Arguments().AddTo(r, raw, redact)
}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// addError puts into a record why something did not succeed.
func (a *auditor) addError(r *audit.Record, err error) {
	r.Class = messages.ClassOf(err)
	r.Error = err.Error()
	var e *Error
	if errors.As(err, &e) && e.Text != "" {
		r.Error = e.Text // the server and the tool stand beside it
	}
	r.Error = a.redactor(r.Server)(r.Error)
}

// addRefusingRule names the rule that keeps a tool from being offered.
func (a *auditor) addRefusingRule(r *audit.Record, server, tool string, raw json.RawMessage) {
	if server == "" {
		if server, tool = a.m.permissions.findHiddenTool(tool); server == "" {
			return
		}
		r.Server, r.Tool = server, tool
	}
	if d := a.m.Decide(server, tool, raw); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// redactor takes the secrets of a server out of texts.
func (a *auditor) redactor(server string) func(string) string {
	if cell := a.m.shared.cellOf(server); cell != nil {
		return cell.RedactText
	}
	return func(s string) string { return s }
}

// noteDecision notes what the rules say of a call.
func noteDecision(ctx context.Context, d access.Decision) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Decision, t.Rule, t.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// notePersonAnswer notes what was answered when the rules asked.
func notePersonAnswer(ctx context.Context, word AskAnswer) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Answer = string(word)
	}
}

// recordAnswer records what somebody answered to a question about a call.
func (a *auditor) recordAnswer(ctx context.Context, r AskRequest, d access.Decision, word AskAnswer, took time.Duration, err error) {
	if a == nil {
		return
	}
	rec := audit.Record{Kind: audit.KindAnswer, Server: r.Server, Tool: r.Tool,
		Decision: string(d.Verdict), Rule: d.Rule, Source: d.Source.String(), Answer: string(word), Millis: millisOf(took)}
	callerFromContext(ctx).addTo(&rec)
	if err != nil {
		rec.Answer = ""
		a.addError(&rec, err)
	}
	a.addArguments(&rec, r.Arguments)
	a.log.Add(rec)
}

// recordPhase records that a server is in another phase.
func (a *auditor) recordPhase(v *actors.View, was messages.Phase) {
	if was == "" && v.State.Phase == messages.Pending { // it has begun to exist
		return
	}
	r := audit.Record{Kind: audit.KindPhase, Server: v.Name, Epoch: v.State.Epoch, Phase: v.State.Phase, Was: was, Reason: v.Reason()}
	if c := v.State.Cause; c != nil && v.State.Phase != messages.Connected {
		r.Class, r.Error = c.Class, c.Text
	}
	a.log.Add(r)
}

// callerInfo is who asks for something, and by which way.
type callerInfo struct {
	who, via, sender string
	pid              int    // of the process on the control socket
	program          string // the same
}

func callerFromContext(ctx context.Context) callerInfo {
	b := callerInfo{who: messages.CallerOf(ctx)}
	b.via, b.sender = audit.ViaOf(ctx)
	b.pid, b.program = audit.PeerOf(ctx)
	return b
}

// callerFromSender is whoever sent the message of an actor's turn.
func callerFromSender(ctx actor.Context) callerInfo {
	b := callerInfo{via: "message"}
	if peer := ctx.MessageHeader().Get(messages.PeerHeader); peer != "" {
		b.sender = peer
	} else if ctx.Sender() != nil {
		b.sender = ctx.Sender().String()
	}
	return b
}

func (b callerInfo) addTo(r *audit.Record) {
	r.Who, r.Via, r.From, r.PeerPID, r.PeerProgram = b.who, b.via, b.sender, b.pid, b.program
}

// recordChange records a change that somebody made, or was refused.
func (a *auditor) recordChange(b callerInfo, r audit.Record, err error) {
	if a == nil {
		return
	}
	if r.Kind == "" {
		r.Kind = audit.KindChange
	}
	b.addTo(&r)
	if err != nil {
		a.addError(&r, err)
	}
	a.log.Add(r)
}

// recordingReply is reply, which records the change as well.
func (a *auditor) recordingReply(b callerInfo, r audit.Record, reply func(error)) func(error) {
	if a == nil {
		return reply
	}
	if r.Change == "" { // to be woken, or to list again, changes nothing
		return reply
	}
	return func(err error) {
		a.recordChange(b, r, err)
		reply(err)
	}
}

// recordingSetReply is reply, which records the change as well.
func (a *auditor) recordingSetReply(b callerInfo, reply func(SetServersResult, error)) func(SetServersResult, error) {
	if a == nil {
		return reply
	}
	return func(res SetServersResult, err error) {
		if err != nil {
			a.recordChange(b, audit.Record{Change: "set-servers"}, err)
		} else {
			a.recordConfigured(b, "set-servers", res)
		}
		reply(res, err)
	}
}

// addedRecord and wished are the records of changes to one server.
func addedRecord(name string, spec Spec) audit.Record {
	return audit.Record{Change: "add", Server: name, Detail: describeSpec(spec)}
}

func commandRecord(name string, e lifecycle.Event) audit.Record {
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

// recordConfigured records what a new configuration changed.
func (a *auditor) recordConfigured(b callerInfo, word string, res SetServersResult) {
	if a == nil || len(res.Added)+len(res.Removed)+len(res.Adjusted)+len(res.Errors) == 0 {
		return
	}
	r := audit.Record{Change: word, Added: res.Added, Removed: res.Removed, Adjusted: res.Adjusted}
	if len(res.Errors) > 0 {
		r.Detail = "cannot be used: " + strings.Join(slices.Sorted(maps.Keys(res.Errors)), ", ")
	}
	a.recordChange(b, r, nil)
}

// describeSpec says of a spec what it starts or dials, without secrets.
func describeSpec(s Spec) string {
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
