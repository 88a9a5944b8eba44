package permissions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// pinState holds how changed tools are treated, and which changes have been reported. Safe for concurrent use.
type pinState struct {
	mu sync.Mutex
	// own is Config.Pin, least is Config.LeastPin; a reload replaces both.
	own, least string
	// reported has the hashes of the definitions that were reported, by server and tool, so that each change is logged once; problem is
	// the text of the store's error that was logged last.
	reported map[string]map[string]string
	problem  string
}

// setPolicy replaces the treatment, and reports whether it has changed.
func (p *pinState) setPolicy(own, least string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := p.own == own && p.least == least
	p.own, p.least = own, least
	return !same
}

// policyFor returns how changed tools of a server are treated: as its spec says, else the configuration, else with a warning, and at
// least what the organisation demands.
func (p *pinState) policyFor(spec *messages.Spec) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return pins.Stricter(cmp.Or(spec.Pin, p.own, messages.PinWarn), p.least)
}

// newChanges takes in the present changes of a server's tools. fresh are those that were not reported yet; over says that some
// earlier change is gone, because it was approved or taken back.
func (p *pinState) newChanges(server string, changes []pins.Change) (fresh []pins.Change, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The present changes replace the reported ones, so that a change that returns is reported again.
	was, now := p.reported[server], map[string]string{}
	for _, c := range changes {
		now[c.Tool] = c.Hash
		if was[c.Tool] != c.Hash {
			fresh = append(fresh, c)
		}
	}
	for tool := range was {
		over = over || now[tool] == ""
	}
	if p.reported == nil {
		p.reported = map[string]map[string]string{}
	}
	if p.reported[server] = now; len(now) == 0 {
		delete(p.reported, server)
	}
	return fresh, over
}

// ForgetServer forgets which changes of a server were reported, because the server is gone. They are reported again if it is added again.
func (p *Decider) ForgetServer(server string) {
	p.pins.mu.Lock()
	defer p.pins.mu.Unlock()
	delete(p.pins.reported, server)
}

// isNewProblem reports whether the store's error has not been logged yet. A nil error lets the same text be logged again later.
func (p *pinState) isNewProblem(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.problem
	p.problem = text
	return text != "" && text != was
}

// filterChanged compares a list with the approved definitions. Under "hold" it takes the changed tools out, and those of which the
// store cannot say whether they changed; otherwise it marks the changed ones. Changes that are new are reported.
func (p *Decider) filterChanged(name string, spec *messages.Spec, list *session.ToolList) *session.ToolList {
	// The policy may differ by server: the spec decides first, and the organisation sets the least.
	policy := p.pins.policyFor(spec)
	if p.Store == nil || policy == messages.PinOff {
		return list
	}
	// Compare pins new tools on the way: trust on first use.
	key, hold := pins.Key(name, spec), policy == messages.PinHold
	found := p.Store.Compare(key, listIdentity(spec, list), list.Tools)
	// Under "hold", a tool may be offered only when its first definition is on disk: otherwise the next run could not compare.
	var unsaved []string
	if hold {
		unsaved = p.Store.Unsaved(key, list.Tools)
	}
	if p.pins.isNewProblem(found.Err) {
		p.Log.Warn("whether tools have changed cannot be known", zap.String("server", name), zap.Bool("held back", hold),
			zap.Error(found.Err))
	}
	fresh, over := p.pins.newChanges(name, found.Changes)
	// Nothing to mark and nothing to take back: the list stays as it is, without a copy.
	if len(found.Changes) == 0 && !over && (!hold || len(found.Unkept)+len(unsaved) == 0) {
		return list
	}
	// The list is copied, because the session shares it with the next connection.
	out := *list
	out.Changed = nil
	// A tool may be held back for several reasons; the last one written below is shown.
	reasons := map[string]string{}
	for _, c := range found.Changes {
		parts := c.Parts()
		out.Changed = append(out.Changed, messages.ChangedTool{Name: c.Tool, Parts: parts, Held: hold})
		if hold {
			reasons[c.Tool] = "held back: its " + strings.Join(parts, ", ") + " changed since it was approved; see: mcpvisor diff " +
				name + ", then: mcpvisor approve " + name
		}
	}
	// Watchers learn of every change of the set, also of its end.
	if len(fresh) > 0 || over {
		p.reportChanges(name, policy, fresh, out.Changed)
	}
	if !hold {
		return &out
	}
	for _, tool := range unsaved {
		reasons[tool] = "held back: its definition is being written down; try again in a moment"
	}
	for _, tool := range found.Unkept {
		reasons[tool] = "held back: whether it has changed cannot be known: " + errorText(found.Err)
	}
	out.Tools, out.Quarantined = nil, slices.Clone(list.Quarantined)
	for _, t := range list.Tools {
		if reason := reasons[t.Name]; reason != "" {
			out.Quarantined = append(out.Quarantined,
				messages.QuarantinedTool{Name: t.Name, Reason: reason, By: messages.QuarantinedByPin})
			continue
		}
		out.Tools = append(out.Tools, t)
	}
	return &out
}

// pinPatience bounds how long a new list waits until its definitions are on disk.
const pinPatience = 10 * time.Second

// PrepareTools implements actors.Common.Prepare. Where pins hold tools back, it writes the definitions of a list to disk before the
// list is shown: a command that ends a moment later must not have called a tool that no later run can compare. It blocks for
// at most pinPatience, and so runs in the goroutine of an attempt.
func (p *Decider) PrepareTools(ctx context.Context, name string, spec *messages.Spec, list *session.ToolList) {
	if p.Store == nil || p.pins.policyFor(spec) != messages.PinHold {
		return
	}
	key := pins.Key(name, spec)
	// Compare queues new definitions for the file; Unsaved says whether they are written.
	p.Store.Compare(key, listIdentity(spec, list), list.Tools)
	if len(p.Store.Unsaved(key, list.Tools)) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pinPatience)
	defer cancel()
	// Unwritten tools are held back by filterChanged, with the reason.
	_ = p.Store.FlushWithin(ctx)
}

// errorText returns the text and the fix of an error without its prefix, which names an operation that the reader does not know.
func errorText(err error) string {
	e, ok := err.(*messages.Error) //nolint:errorlint // a store's errors are never wrapped
	if !ok {
		return fmt.Sprint(err)
	}
	return e.Text + "; " + e.Fix
}

// listIdentity returns a hash that is equal for equal lists, so that a list that was compared need not be compared again; the zero
// value says that equality cannot be known. The spec's filters count, because they choose what is compared.
func listIdentity(spec *messages.Spec, list *session.ToolList) [sha256.Size]byte {
	if list.Hash == [sha256.Size]byte{} || spec.AllowedTools == nil && len(spec.DeniedTools) == 0 {
		return list.Hash
	}
	return sha256.Sum256(fmt.Appendf(nil, "%x %q %q %v", list.Hash, spec.AllowedTools, spec.DeniedTools, spec.AllowedTools == nil))
}

// reportChanges reports new changes once: to the log, to the audit record and to the watchers.
func (p *Decider) reportChanges(name, policy string, fresh []pins.Change, all []messages.ChangedTool) {
	// Log and audit record get one line for each tool; watchers get one event for the list.
	for _, c := range fresh {
		parts := strings.Join(c.Parts(), ", ")
		p.Log.Warn("the definition of a tool has changed since it was approved", zap.String("server", name),
			zap.String("tool", messages.Line(c.Tool, 100)), zap.String("changed", parts), zap.String("pin", policy))
		p.Audit.RecordChange(auditor.Caller{Via: "program"}, audit.Record{Change: "tool", Server: name, Tool: c.Tool,
			Detail: parts + " changed; pin is " + policy}, nil)
	}
	if p.Publish != nil {
		p.Publish(messages.Event{Kind: messages.EventPins, Server: name, Changed: all})
	}
}

// SetPinPolicy replaces the treatment of changed tools, and reports whether it has changed and matters.
func (p *Decider) SetPinPolicy(own, least string) bool {
	return p.pins.setPolicy(own, least) && p.Store != nil
}
