// Package auditor writes what a manager does into the audit log: each call and read with its outcome, the answers of persons, changes
// of servers, of rules and of phases, with who asked for them.
//
//	a := auditor.New(auditor.Options{Writer: w, Log: log, Cell: cellOf})     // nil without a writer
//	before, after := a.Begin, a.End                                          // the link of a chain that records each request
//
// Guarantees: a call that panics is recorded, and the panic goes on; no method waits for the writer but Close, which waits at most 2 s;
// the secrets of a server that is configured, and those that its requests carried, are taken out of what is recorded. A nil Auditor
// records nothing, and most methods accept it.
//
// Not promised: that the secrets of a server which is gone are known when the end of its last call is recorded.
//
// # How it fits
//
// Package supervisor and its parts hand over what happened; package supervisor/audit has the form of the records, the queue and the
// file.
package auditor

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

// Auditor writes what the manager does into the audit log. A nil auditor records nothing, so callers need not ask whether there
// is one. Its methods are safe for concurrent use and do not wait for the writer: see [audit.Log].
type Auditor struct {
	// log queues and writes the records.
	log *audit.Log
	o   Options
}

// Options holds the writer, the log and the look-up of secrets that an auditor works with.
type Options struct {
	// Writer gets the records, in the form of RecordOptions; nil records nothing.
	Writer        io.Writer
	RecordOptions audit.Options
	// Program and Project stand in the first record.
	Program, Project string
	Log              *zap.Logger

	// The auditor asks for secrets, rules and names when a record is made. Cell has the published state of a server.
	Cell  func(server string) *actors.Cell
	Rules Rules
}

// Rules are those in force.
type Rules interface {
	// FindHiddenTool finds the server and the own name of a tool that is not offered.
	FindHiddenTool(qualified string) (server, tool string)
	// Decide says what the rules decide about a call, and DecideServer about everything of a server.
	Decide(server, tool string, args json.RawMessage) access.Decision
	DecideServer(server string) access.Decision
}

// New returns nil without a writer. The first record says which program and process the following ones belong to.
func New(o Options) *Auditor {
	if o.Writer == nil {
		return nil
	}
	// The failures of the writer go to the manager's log, unless the program chose another one.
	if o.RecordOptions.Logger == nil {
		o.RecordOptions.Logger = o.Log
	}
	a := &Auditor{log: audit.New(o.Writer, o.RecordOptions), o: o}
	a.log.Add(audit.Record{Kind: audit.KindStart, PID: os.Getpid(), Program: o.Program, Project: o.Project})
	return a
}

// Stats returns how many records are written, wait, and are lost.
func (a *Auditor) Stats() audit.Stats {
	if a == nil {
		return audit.Stats{}
	}
	return a.log.Stats()
}

// Close writes the last record and waits for the writer, at most auditTime. What is not written by then is reported in the log.
func (a *Auditor) Close() {
	if a == nil {
		return
	}
	// Close of the manager may have no time left; the record gets its own.
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	a.log.Add(audit.Record{Kind: audit.KindEnd})
	if err := a.log.Close(ctx); err != nil {
		a.o.Log.Error(err.Error())
	}
}

// Begin is the Before of the link that records requests.
func (a *Auditor) Begin(_ context.Context, r *actors.Request) error {
	r.Began = time.Now()
	return nil
}

// End is its After: it records how a tool call, the read of a resource or the request of a prompt ended, also if a function of the
// program panicked.
func (a *Auditor) End(ctx context.Context, r *actors.Request, err error) error {
	switch r.Method {
	case actors.CallTool:
		a.recordCall(ctx, r, err)
	case actors.ReadResource:
		a.recordRead(ctx, r, err)
	case actors.GetPrompt:
		a.recordPrompt(ctx, r, err)
	}
	return err
}

// recordCall records a tool call.
func (a *Auditor) recordCall(ctx context.Context, r *actors.Request, err error) {
	rec := a.outcomeRecord(ctx, audit.KindCall, r, err)
	rec.Tool = r.Name
	if err == nil && r.Answer.IsError {
		rec.Outcome = messages.OutcomeToolError
	}
	// A denied call without a decision was refused before the rules were asked. A call of a tool that is not offered passes no
	// rule on its way, so the rule that hides the tool is looked up here: a reader of the log wants to know why.
	if errors.Is(err, messages.ErrDenied) && rec.Decision == "" {
		a.addRefusingRule(&rec, r.Server, r.Name, r.Args)
	}
	a.addArguments(&rec, r.Args)
	a.log.Add(rec)
}

// outcomeRecord begins the record of a request that has ended, with the fields that all kinds share. The time of the record is that
// of the beginning.
func (a *Auditor) outcomeRecord(ctx context.Context, kind audit.Kind, r *actors.Request, err error) audit.Record {
	t := &r.Trace
	rec := audit.Record{Kind: kind, Time: r.Began, Server: r.Server,
		Epoch: t.Epoch, Attempts: t.Attempts, Decision: t.Decision, Rule: t.Rule, Source: t.Source, Answer: t.Answer,
		Outcome: messages.OutcomeOf(err), Millis: millisOf(time.Since(r.Began))}
	CallerFromContext(ctx).addTo(&rec)
	if err != nil {
		a.addError(&rec, err)
	} else {
		rec.Received = len(r.Result)
	}
	return rec
}

// addArguments adds the arguments in the form that Options.Arguments chose: nothing, a hash, or the text without secrets.
func (a *Auditor) addArguments(r *audit.Record, raw json.RawMessage) {
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
func (a *Auditor) addError(r *audit.Record, err error) {
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
func (a *Auditor) addRefusingRule(r *audit.Record, server, tool string, raw json.RawMessage) {
	if server == "" {
		if server, tool = a.o.Rules.FindHiddenTool(tool); server == "" {
			return
		}
		r.Server, r.Tool = server, tool
	}
	// The rules are asked again, because the refusal itself carries only a text.
	if d := a.o.Rules.Decide(server, tool, raw); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}

// redactor returns a function that removes the server's secrets from a text: those of its spec and those that its requests
// carried. For a server that is gone no secret is known, and the text stays.
func (a *Auditor) redactor(server string) func(string) string {
	if cell := a.o.Cell(server); cell != nil {
		return cell.RedactText
	}
	return func(s string) string { return s }
}

// NoteDecision writes what the rules decided into the trace of a call.
func NoteDecision(t *actors.Trace, d access.Decision) {
	t.Decision, t.Rule, t.Source = string(d.Verdict), d.Rule, d.Source.String()
}

// RecordAnswer records an answer to a permission question at the time of the answer. It is a record of its own, because the call
// that asked may run for long afterwards, and other calls may have waited for the same answer.
func (a *Auditor) RecordAnswer(
	ctx context.Context, server, tool string, args json.RawMessage, d access.Decision, word string, took time.Duration, err error,
) {
	if a == nil {
		return
	}
	rec := audit.Record{Kind: audit.KindAnswer, Server: server, Tool: tool,
		Decision: string(d.Verdict), Rule: d.Rule, Source: d.Source.String(), Answer: word, Millis: millisOf(took)}
	CallerFromContext(ctx).addTo(&rec)
	if err != nil {
		rec.Answer = ""
		a.addError(&rec, err)
	}
	a.addArguments(&rec, args)
	a.log.Add(rec)
}

// RecordPhase records that a server has changed its phase. The server's actor calls it in its turn, so it must not block. A new
// server that becomes pending is no change worth a record.
func (a *Auditor) RecordPhase(v *actors.View, was messages.Phase) {
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

// Caller says who asks for something and by which way: the caller's name, the way (program, message, file, socket), and the
// address of the actor that sent the message. All are empty for the embedding program itself.
type Caller struct {
	who, Via, Sender string
	pid              int    // of the process on the control socket, 0 for others
	program          string // that process's program
}

// CallerFromContext collects what WithCaller and package audit put into the context.
func CallerFromContext(ctx context.Context) Caller {
	b := Caller{who: messages.CallerOf(ctx)}
	b.Via, b.Sender = audit.ViaOf(ctx)
	b.pid, b.program = audit.PeerOf(ctx)
	return b
}

// CallerFromSender describes the sender of the message that the actor handles now. For a message from another machine it is the
// identity of the peer's certificate, because an address can be claimed.
func CallerFromSender(ctx actor.Context) Caller {
	b := Caller{Via: "message"}
	peer := ""
	// A message that was sent without a sender has no envelope, and then the library returns no header at all.
	if header := ctx.MessageHeader(); header != nil {
		peer = header.Get(messages.PeerHeader)
	}
	// The remote package sets this header from the peer's certificate; the address in the message is only a claim.
	if peer != "" {
		b.Sender = peer
	} else if ctx.Sender() != nil {
		b.Sender = ctx.Sender().String()
	}
	return b
}

// addTo copies the caller into a record.
func (b Caller) addTo(r *audit.Record) {
	r.Who, r.Via, r.From, r.PeerPID, r.PeerProgram = b.who, b.Via, b.Sender, b.pid, b.program
}

// RecordChange records a change, or the attempt at one that was refused (err).
func (a *Auditor) RecordChange(b Caller, r audit.Record, err error) {
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

// RecordingReply returns a reply function that records the change before it replies, so that the record stands in the log before
// the caller sees the effect. A record without a Change is none: to wake a server, or to list again, changes nothing.
func (a *Auditor) RecordingReply(b Caller, r audit.Record, reply func(error)) func(error) {
	if a == nil {
		return reply
	}
	if r.Change == "" {
		return reply
	}
	return func(err error) {
		a.RecordChange(b, r, err)
		reply(err)
	}
}

// RecordingSetReply does the same for the reply of SetServers.
func (a *Auditor) RecordingSetReply(b Caller, reply func(messages.SetServersResult, error)) func(messages.SetServersResult, error) {
	if a == nil {
		return reply
	}
	return func(res messages.SetServersResult, err error) {
		if err != nil {
			a.RecordChange(b, audit.Record{Change: "set-servers"}, err)
		} else {
			a.RecordConfigured(b, "set-servers", res)
		}
		reply(res, err)
	}
}

// AddedRecord describes the command that adds a server. The spec is described without its secrets.
func AddedRecord(name string, spec messages.Spec) audit.Record {
	return audit.Record{Change: "add", Server: name, Detail: describeSpec(spec)}
}

// CommandRecord describes a command to one server; its Change is empty for a command that changes nothing.
func CommandRecord(name string, e lifecycle.Event) audit.Record {
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

// RecordConfigured records what a new set of servers changed; nothing if nothing did. word names the command.
func (a *Auditor) RecordConfigured(b Caller, word string, res messages.SetServersResult) {
	if a == nil || len(res.Added)+len(res.Removed)+len(res.Adjusted)+len(res.Errors) == 0 {
		return
	}
	r := audit.Record{Change: word, Added: res.Added, Removed: res.Removed, Adjusted: res.Adjusted}
	// The names suffice: the errors' texts may hold parts of the specs.
	if len(res.Errors) > 0 {
		r.Detail = "cannot be used: " + strings.Join(slices.Sorted(maps.Keys(res.Errors)), ", ")
	}
	a.RecordChange(b, r, nil)
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

// RuleCount returns how many rules a set has: the record says that rules were replaced, and their texts may be long.
func RuleCount(r access.Rules) string {
	text := fmt.Sprintf("%d managed rules, %d others", len(r.Managed.Rules), len(r.Own.Rules))
	if r.Own.Default != "" {
		text += ", default " + string(r.Own.Default)
	}
	return text
}
