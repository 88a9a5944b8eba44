package auditor

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// recordRead records the read of a resource. The URI may hold values that were filled into a template, so it counts as an argument:
// it is recorded without its query, and without parts that look like secrets, unless the log asks for all.
func (a *Auditor) recordRead(ctx context.Context, r *actors.Request, err error) {
	rec := a.outcomeRecord(ctx, audit.KindRead, r, err)
	if how := a.log.Arguments(); how == audit.Full {
		// Even a full record has the server's known secrets removed.
		rec.URI = a.redactor(rec.Server)(r.Name)
	} else if how != audit.None {
		rec.URI = a.redactor(rec.Server)(auditURI(r.Name))
	}
	// The hash is that of the request's params, so that a reader can recompute it.
	args, _ := json.Marshal(map[string]string{"uri": r.Name})
	a.addDenyingRule(&rec, err)
	a.addArgumentsHash(&rec, args)
	a.log.Add(rec)
}

// recordPrompt records the request of a prompt: by its qualified name if no server was found.
func (a *Auditor) recordPrompt(ctx context.Context, r *actors.Request, err error) {
	rec := a.outcomeRecord(ctx, audit.KindPrompt, r, err)
	rec.Prompt = r.Name
	a.addDenyingRule(&rec, err)
	// A prompt without arguments has no hash of an empty object.
	var raw json.RawMessage
	if len(r.PromptArgs) > 0 {
		raw, _ = json.Marshal(r.PromptArgs)
	}
	a.addArguments(&rec, raw)
	a.log.Add(rec)
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
	if d := a.o.Rules.DecideServer(r.Server); d.Verdict == access.Deny {
		r.Decision, r.Rule, r.Source = string(d.Verdict), d.Rule, d.Source.String()
	}
}
