package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// auditTime bounds how long Close waits for the writer of the audit log, which the program gave and which may block for ever.
const auditTime = 2 * time.Second

// auditor writes what the manager does into the audit log. A nil auditor records nothing, so callers need not ask whether there
// is one. Its methods are safe for concurrent use and do not wait for the writer: see [audit.Log].
type auditor struct {
	// log queues and writes the records.
	log *audit.Log
	o   auditorOptions
}

// auditorOptions are what an auditor is made of.
type auditorOptions struct {
	// writer gets the records, in the form of options. nil records nothing.
	writer  io.Writer
	options audit.Options
	// program and project stand in the first record.
	program, project string
	log              *zap.Logger

	// The auditor asks for rules, secrets and names when a record is made. cell has the published state of a server;
	// findHiddenTool finds the server and the own name of a tool that is not offered, decide says what the rules decide about
	// a call, and decideServer about everything of a server.
	cell           func(server string) *actors.Cell
	findHiddenTool func(qualified string) (server, tool string)
	decide         func(server, tool string, args json.RawMessage) access.Decision
	decideServer   func(server string) access.Decision
}

// newAuditor returns nil without a writer. The first record says which program and process the following ones belong to.
func newAuditor(o auditorOptions) *auditor {
	if o.writer == nil {
		return nil
	}
	// The failures of the writer go to the manager's log, unless the program chose another one.
	if o.options.Logger == nil {
		o.options.Logger = o.log
	}
	a := &auditor{log: audit.New(o.writer, o.options), o: o}
	a.log.Add(audit.Record{Kind: audit.KindStart, PID: os.Getpid(), Program: o.program, Project: o.project})
	return a
}

// stats returns how many records are written, wait, and are lost.
func (a *auditor) stats() audit.Stats {
	if a == nil {
		return audit.Stats{}
	}
	return a.log.Stats()
}

// close writes the last record and waits for the writer, at most auditTime. What is not written by then is reported in the log.
func (a *auditor) close() {
	if a == nil {
		return
	}
	// Close of the manager may have no time left; the record gets its own.
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	a.log.Add(audit.Record{Kind: audit.KindEnd})
	if err := a.log.Close(ctx); err != nil {
		a.o.log.Error(err.Error())
	}
}

// auditCall runs a call and records how it ended, also if a function of the program panics: the record says so, and the panic
// continues to the caller. call gets a context with a trace, and returns the server's answer as it came.
func (a *auditor) auditCall(
	ctx context.Context, server, tool string, args json.RawMessage, call func(context.Context) (messages.Outcome, json.RawMessage, error),
) {
	start := time.Now()
	// The call writes into the trace what only it learns: the connection that served it, and the decision of the rules.
	traced, trace := actors.WithTrace(ctx, server, tool)
	// The error stands until call returns, so that a panic of Config.Allow or Config.Sanitize is recorded as one.
	var outcome messages.Outcome
	var answer json.RawMessage
	err := panickedError("call")
	defer func() {
		r := a.outcomeRecord(ctx, audit.KindCall, trace, start, err)
		r.Tool = trace.Tool
		if err == nil {
			r.Outcome, r.Received = outcome, len(answer)
		}
		// A denied call without a decision was refused before the rules were asked. A call of a tool that is not offered passes no
		// rule on its way, so the rule that hides the tool is looked up here: a reader of the log wants to know why.
		if errors.Is(err, messages.ErrDenied) && r.Decision == "" {
			a.addRefusingRule(&r, server, tool, args)
		}
		a.addArguments(&r, args)
		a.log.Add(r)
	}()
	outcome, answer, err = call(traced)
}

// outcomeRecord begins the record of a call or read that has ended, with the fields that all kinds share. The time of the record
// is that of the beginning.
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

// addArguments adds the arguments in the form that Options.Arguments chose: nothing, a hash, or the text without secrets.
func (a *auditor) addArguments(r *audit.Record, raw json.RawMessage) {
	var redact func(string) string
	// Finding the secrets costs a look at the server, so it is done only where texts are recorded.
	if how := a.log.Arguments(); how == audit.Redacted || how == audit.Full {
		redact = a.redactor(r.Server)
	}
	a.log.Arguments().AddTo(r, raw, redact)
}

// millisOf returns milliseconds with three decimals: short calls take less than one.
func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// addError adds the class and the text of an error. The text is the server's in part, so the secrets of the server are removed.
func (a *auditor) addError(r *audit.Record, err error) {
	r.Class = messages.ClassOf(err)
	r.Error = err.Error()
	// The prefix of an *Error repeats the server and the tool, which are fields of the record.
	var e *messages.Error
	if errors.As(err, &e) && e.Text != "" {
		r.Error = e.Text // the server and the tool stand beside it
	}
	r.Error = a.redactor(r.Server)(r.Error)
}

// addRefusingRule adds the rule that keeps a tool from being offered, and the names of the tool if the call used a qualified name
// that the catalog does not have.
func (a *auditor) addRefusingRule(r *audit.Record, server, tool string, raw json.RawMessage) {
	if server == "" {
		if server, tool = a.o.findHiddenTool(tool); server == "" {
			return
		}
		r.Server, r.Tool = server, tool
	}
	// The rules are asked again, because the refusal itself carries only a text.
	if d := a.o.decide(server, tool, raw); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// redactor returns a function that removes the server's secrets from a text: those of its spec and those that its requests
// carried. For a server that is gone no secret is known, and the text stays.
func (a *auditor) redactor(server string) func(string) string {
	if cell := a.o.cell(server); cell != nil {
		return cell.RedactText
	}
	return func(s string) string { return s }
}

// noteDecision writes what the rules decided into the trace of the call, if the call has one.
func noteDecision(ctx context.Context, d access.Decision) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Decision, t.Rule, t.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// notePersonAnswer writes the person's answer into the trace of the call, if the call has one.
func notePersonAnswer(ctx context.Context, word string) {
	if t := actors.TraceOf(ctx); t != nil {
		t.Answer = word
	}
}

// recordAnswer records an answer to a permission question at the time of the answer. It is a record of its own, because the call
// that asked may run for long afterwards, and other calls may have waited for the same answer.
func (a *auditor) recordAnswer(
	ctx context.Context, server, tool string, args json.RawMessage, d access.Decision, word string, took time.Duration, err error,
) {
	if a == nil {
		return
	}
	rec := audit.Record{Kind: audit.KindAnswer, Server: server, Tool: tool,
		Decision: string(d.Verdict), Rule: d.Rule, Source: d.Source.String(), Answer: word, Millis: millisOf(took)}
	callerFromContext(ctx).addTo(&rec)
	if err != nil {
		rec.Answer = ""
		a.addError(&rec, err)
	}
	a.addArguments(&rec, args)
	a.log.Add(rec)
}

// recordPhase records that a server has changed its phase. The server's actor calls it in its turn, so it must not block. A new
// server that becomes pending is no change worth a record.
func (a *auditor) recordPhase(v *actors.View, was messages.Phase) {
	// Every server begins so; the record of its addition says it already.
	if was == "" && v.State.Phase == messages.Pending {
		return
	}
	r := audit.Record{Kind: audit.KindPhase, Server: v.Name, Epoch: v.State.Epoch, Phase: v.State.Phase, Was: was, Reason: v.Reason()}
	if c := v.State.Cause; c != nil && v.State.Phase != messages.Connected {
		r.Class, r.Error = c.Class, c.Text
	}
	a.log.Add(r)
}

// callerInfo says who asks for something and by which way: the caller's name, the way (program, message, file, socket), and the
// address of the actor that sent the message. All are empty for the embedding program itself.
type callerInfo struct {
	who, via, sender string
	pid              int    // of the process on the control socket, 0 for others
	program          string // that process's program
}

// callerFromContext collects what WithCaller and package audit put into the context.
func callerFromContext(ctx context.Context) callerInfo {
	b := callerInfo{who: messages.CallerOf(ctx)}
	b.via, b.sender = audit.ViaOf(ctx)
	b.pid, b.program = audit.PeerOf(ctx)
	return b
}

// callerFromSender describes the sender of the message that the actor handles now. For a message from another machine it is the
// identity of the peer's certificate, because an address can be claimed.
func callerFromSender(ctx actor.Context) callerInfo {
	b := callerInfo{via: "message"}
	peer := ""
	// A message that was sent without a sender has no envelope, and then the library returns no header at all.
	if header := ctx.MessageHeader(); header != nil {
		peer = header.Get(messages.PeerHeader)
	}
	// The remote package sets this header from the peer's certificate; the address in the message is only a claim.
	if peer != "" {
		b.sender = peer
	} else if ctx.Sender() != nil {
		b.sender = ctx.Sender().String()
	}
	return b
}

// addTo copies the caller into a record.
func (b callerInfo) addTo(r *audit.Record) {
	r.Who, r.Via, r.From, r.PeerPID, r.PeerProgram = b.who, b.via, b.sender, b.pid, b.program
}

// recordChange records a change, or the attempt at one that was refused (err).
func (a *auditor) recordChange(b callerInfo, r audit.Record, err error) {
	if a == nil {
		return
	}
	// Most changes are of one kind; approvals say so themselves.
	if r.Kind == "" {
		r.Kind = audit.KindChange
	}
	b.addTo(&r)
	if err != nil {
		a.addError(&r, err)
	}
	a.log.Add(r)
}

// recordingReply returns a reply function that records the change before it replies, so that the record stands in the log before
// the caller sees the effect. A record without a Change is none: to wake a server, or to list again, changes nothing.
func (a *auditor) recordingReply(b callerInfo, r audit.Record, reply func(error)) func(error) {
	if a == nil {
		return reply
	}
	if r.Change == "" {
		return reply
	}
	return func(err error) {
		a.recordChange(b, r, err)
		reply(err)
	}
}

// recordingSetReply does the same for the reply of SetServers.
func (a *auditor) recordingSetReply(b callerInfo, reply func(messages.SetServersResult, error)) func(messages.SetServersResult, error) {
	if a == nil {
		return reply
	}
	return func(res messages.SetServersResult, err error) {
		if err != nil {
			a.recordChange(b, audit.Record{Change: "set-servers"}, err)
		} else {
			a.recordConfigured(b, "set-servers", res)
		}
		reply(res, err)
	}
}

// addedRecord describes the command that adds a server. The spec is described without its secrets.
func addedRecord(name string, spec messages.Spec) audit.Record {
	return audit.Record{Change: "add", Server: name, Detail: describeSpec(spec)}
}

// commandRecord describes a command to one server; its Change is empty for a command that changes nothing.
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

// recordConfigured records what a new set of servers changed; nothing if nothing did. word names the command.
func (a *auditor) recordConfigured(b callerInfo, word string, res messages.SetServersResult) {
	if a == nil || len(res.Added)+len(res.Removed)+len(res.Adjusted)+len(res.Errors) == 0 {
		return
	}
	r := audit.Record{Change: word, Added: res.Added, Removed: res.Removed, Adjusted: res.Adjusted}
	// The names suffice: the errors' texts may hold parts of the specs.
	if len(res.Errors) > 0 {
		r.Detail = "cannot be used: " + strings.Join(slices.Sorted(maps.Keys(res.Errors)), ", ")
	}
	a.recordChange(b, r, nil)
}

// describeSpec returns what a spec starts or dials, without secrets.
func describeSpec(s messages.Spec) string {
	// Arguments and URLs may hold secrets; headers and the environment are left out whole.
	s = s.Redacted()
	if s.URL != "" {
		return string(s.Kind()) + " " + s.URL
	}
	return strings.TrimSpace(string(s.Kind()) + " " + strings.Join(append([]string{s.Command}, s.Args...), " "))
}

// ruleCount returns how many rules a set has: the record says that rules were replaced, and their texts may be long.
func ruleCount(r access.Rules) string {
	text := fmt.Sprintf("%d managed rules, %d others", len(r.Managed.Rules), len(r.Own.Rules))
	if r.Own.Default != "" {
		text += ", default " + string(r.Own.Default)
	}
	return text
}
