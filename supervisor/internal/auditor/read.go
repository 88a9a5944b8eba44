package auditor

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

// errPanicked is recorded for a call or read that a panic of a program's function broke off. It is not returned to the caller: the
// panic continues. It is one value for all of them, because every call begins with it and few panic.
var errPanicked error = &messages.Error{Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a function of the program panicked"}

// AuditRead runs the read of a resource and records how it ended. The URI may hold values that were filled into a template, so it
// counts as an argument: it is recorded without its query, and without parts that look like secrets, unless the log asks for all.
func (a *Auditor) AuditRead(ctx context.Context, server, uri string, read func(*actors.Trace) (json.RawMessage, error)) {
	if a == nil {
		_, _ = read(nil)
		return
	}
	start, trace := time.Now(), &actors.Trace{Server: server}
	// The error stands until read returns, so that a panic is recorded as one.
	var answer json.RawMessage
	err := errPanicked
	defer func() {
		r := a.outcomeRecord(ctx, audit.KindRead, trace, start, err)
		r.Received = len(answer)
		if how := a.log.Arguments(); how == audit.Full {
			// Even a full record has the server's known secrets removed.
			r.URI = a.redactor(r.Server)(uri)
		} else if how != audit.None {
			r.URI = a.redactor(r.Server)(auditURI(uri))
		}
		// The hash is that of the request's params, so that a reader can recompute it.
		args, _ := json.Marshal(map[string]string{"uri": uri})
		a.addDenyingRule(&r, err)
		a.addArgumentsHash(&r, args)
		a.log.Add(r)
	}()
	answer, err = read(trace)
}

// AuditPrompt runs the request of a prompt and records how it ended. name is the qualified one if server is empty; the trace has
// the server's own name once it is known.
func (a *Auditor) AuditPrompt(
	ctx context.Context, server, name string, args map[string]string, get func(*actors.Trace) (json.RawMessage, error),
) {
	if a == nil {
		_, _ = get(nil)
		return
	}
	// The read writes into the trace which server answered, and over which connection.
	start, trace := time.Now(), &actors.Trace{Server: server, Tool: name}
	var answer json.RawMessage
	err := errPanicked
	defer func() {
		r := a.outcomeRecord(ctx, audit.KindPrompt, trace, start, err)
		r.Prompt = trace.Tool
		r.Received = len(answer)
		a.addDenyingRule(&r, err)
		// A prompt without arguments has no hash of an empty object.
		var raw json.RawMessage
		if len(args) > 0 {
			raw, _ = json.Marshal(args)
		}
		a.addArguments(&r, raw)
		a.log.Add(r)
	}()
	answer, err = get(trace)
}

// auditURI returns a URI without its query, fragment and user information, and without path elements that look like a credential.
// A text that is no URI is kept only if it holds none of the characters that begin such parts.
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

// addArgumentsHash adds the hash of arguments whose text stands in another field of the record, so that equal reads can be found.
func (a *Auditor) addArgumentsHash(r *audit.Record, raw json.RawMessage) {
	how := a.log.Arguments()
	if how != audit.None {
		how = audit.Hash
	}
	how.AddTo(r, raw, nil)
}

// addDenyingRule adds the rule that denies everything of a server to the record of a read that was denied.
func (a *Auditor) addDenyingRule(r *audit.Record, err error) {
	if !errors.Is(err, messages.ErrDenied) {
		return
	}
	if d := a.o.DecideServer(r.Server); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}
