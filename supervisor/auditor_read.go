package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// panickedError is how something ended that a function of the embedding program broke off: it is what is recorded, and the panic
// goes on.
func panickedError(op string) error {
	return &Error{Op: op, Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a function of the program panicked"}
}

// auditRead runs the read of a resource and records how it ended. The URI may hold what somebody filled into a template: it
// counts as an argument, and is shown without what may be a secret in it.
func (a *auditor) auditRead(
	ctx context.Context, server, uri string, read func(*actors.Trace) (*ResourceResult, error),
) (res *ResourceResult, err error) {
	if a == nil {
		return read(nil)
	}
	start, trace := time.Now(), &actors.Trace{Server: server}
	err = panickedError("read")
	defer func() {
		r := a.outcomeRecord(ctx, audit.KindRead, trace, start, err)
		if res != nil {
			r.Received = len(res.Raw)
		}
		if how := a.log.Arguments(); how == audit.Full {
			r.URI = a.redactor(r.Server)(uri)
		} else if how != audit.None {
			r.URI = a.redactor(r.Server)(auditURI(uri))
		}
		args, _ := json.Marshal(map[string]string{"uri": uri})
		a.addDenyingRule(&r, err)
		a.addArgumentsHash(&r, args)
		a.log.Add(r)
	}()
	return read(trace)
}

// auditPrompt runs the request of a prompt and records how it ended. Name is the qualified one if server is empty.
func (a *auditor) auditPrompt(
	ctx context.Context, server, name string, args map[string]string, get func(*actors.Trace) (*PromptResult, error),
) (res *PromptResult, err error) {
	if a == nil {
		return get(nil)
	}
	start, trace := time.Now(), &actors.Trace{Server: server, Tool: name}
	err = panickedError("read")
	defer func() {
		r := a.outcomeRecord(ctx, audit.KindPrompt, trace, start, err)
		r.Prompt = trace.Tool
		if res != nil {
			r.Received = len(res.Raw)
		}
		a.addDenyingRule(&r, err)
		var raw json.RawMessage
		if len(args) > 0 {
			raw, _ = json.Marshal(args)
		}
		a.addArguments(&r, raw)
		a.log.Add(r)
	}()
	return get(trace)
}

// auditURI is a URI without its query, fragment and user information, and without the parts that look like a credential.
func auditURI(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		if strings.ContainsAny(uri, "@?#=") {
			return "[no URI]"
		}
	} else if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
		uri = u.String() + " (shortened)"
	}
	parts := strings.Split(uri, "/")
	for i, p := range parts {
		parts[i] = messages.RedactTokens(p)
	}
	return strings.Join(parts, "/")
}

// addArgumentsHash puts into a record the hash of arguments that it shows in another field.
func (a *auditor) addArgumentsHash(r *audit.Record, raw json.RawMessage) {
	how := a.log.Arguments()
	if how != audit.None {
		how = audit.Hash
	}
	how.AddTo(r, raw, nil)
}

// addDenyingRule names the rule that denies everything of a server.
func (a *auditor) addDenyingRule(r *audit.Record, err error) {
	if !errors.Is(err, ErrDenied) {
		return
	}
	if d := a.m.permissions.rules.Load().Server(r.Server); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}
