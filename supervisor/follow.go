package supervisor

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload/plan"
)

// FollowOptions say which files a manager follows, and when their changes count. The zero value follows those of the working
// directory, as FromFiles reads them.
type FollowOptions struct {
	// Dir is the directory that the configuration belongs to; the working directory if empty.
	Dir string
	// Reading, if not nil, is a configuration that was read before, in the place of that of Dir. It is applied first, as it was
	// read, and then the files as they are now, so that no change in between is lost.
	Reading *discover.Snapshot
	// Quiet, Most, Grace and Poll say when a change is applied: after Quiet (100 ms) without another one, at the latest Most
	// (1 s) after the first. A file that is missing or broken has Grace (1 s) to come back, because editors write in steps.
	// Everything is read every Poll (5 s) without an event, for file systems that send none.
	Quiet, Most, Grace, Poll time.Duration
	// OnReload is called after each reload that changed something or has something to report, and before Reload returns. The log names
	// one that panics or ends its goroutine, and the following goes on. One that has not returned after 10 s, or when the Follower is
	// closed, is left: the next reload calls it beside the one that still runs.
	OnReload func(ReloadResult)
}

// ReloadResult is the outcome of a reload. Each server of the files stands in exactly one of Added, Replaced, Adjusted, Moved and
// Kept; those that are gone in Removed.
type ReloadResult struct {
	config.Changes
	// Problems are the faults of the files as they are now, each with file, line and column.
	Problems []Problem `json:"problems,omitempty"`
	// Remarks say, by server, why it stays with what its files said before.
	Remarks map[string]string `json:"remarks,omitempty"`
	// Held are the servers that wait for an approval of the person.
	Held []string `json:"held,omitempty"`
	// Rules says that rules about calls, policies, or the treatment of changed tools have changed.
	Rules bool `json:"rules,omitempty"`
	// Restart are the keys of the files, beside the servers, that have changed since the following began and count only from the
	// next start of the program on, because a running manager cannot change them.
	Restart []string `json:"restart,omitempty"`
	// Gateway is what the files say now about agents, for the program that serves them; nil if they say nothing.
	Gateway *config.Gateway `json:"-"`
}

// Follow applies configuration files to a manager whenever they change, until the Follower or the manager is closed. Every
// change is applied as the smallest difference: a server that did not change keeps its connection and its calls; one that
// changed in a timeout, a bound, the offered tools, or disabled keeps its connection; one that is replaced or removed lets admitted
// calls finish for at most Timing.Drain. An invalid file changes nothing, an invalid entry nothing of its server: packages
// supervisor/internal/reload and supervisor/internal/reload/plan say exactly what counts when.
//
// Servers, the policies of managed files, the rules about tools and the treatment of changed tools are followed, and approvals
// that the person gives meanwhile. Servers that were added at runtime are left alone. Of Config, the files replace Managed,
// Access, Pin and LeastPin, and nothing else. ctx bounds only the beginning. A manager follows one set of files
// at a time: a second Follow fails until the first Follower is closed.
func Follow(ctx context.Context, m *Manager, o FollowOptions) (*Follower, error) {
	if ctx == nil {
		return nil, refusal.NilContextError("follow", "", "")
	}
	var reading discover.Snapshot
	if o.Reading != nil {
		reading = *o.Reading
	} else {
		var err error
		if reading, err = discover.Read(discover.Options{Dir: o.Dir}); err != nil {
			return nil, err
		}
	}
	// One swap reserves the manager, so that of two concurrent Follows only one succeeds.
	f := &Follower{m: m, ready: make(chan struct{}), over: make(chan struct{})}
	// Manager.Reload may find the Follower before files is set; it waits for ready.
	if !m.follower.CompareAndSwap(nil, f) {
		return nil, &Error{Op: "follow", Class: messages.ClassInvalid, Text: "the manager follows files already",
			Fix: "close the follower before"}
	}
	cfg := reload.Config{Reading: reading, Quiet: o.Quiet, Most: o.Most, Grace: o.Grace, Poll: o.Poll, Apply: f.applyDecision,
		Done: m.stopped, Log: m.cfg.Logger}
	if o.OnReload != nil {
		cfg.Decided = func(d plan.Decision) { f.callOnReload(o.OnReload, resultOf(d)) }
	}
	f.files = reload.Follow(cfg)
	close(f.ready)
	if _, err := f.Reload(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Follower applies files to one manager: see [Follow]. Its methods are safe for concurrent use.
type Follower struct {
	m     *Manager
	ready chan struct{} // closed when files is set
	files *reload.Follower
	// over is closed by the first Close: nothing waits for OnReload any more.
	over chan struct{}
	once sync.Once
}

// reloadHookTime bounds how long the files wait for OnReload.
const reloadHookTime = 10 * time.Second

// callOnReload calls the program's function in another goroutine than the one that follows the files.
func (f *Follower) callOnReload(onReload func(ReloadResult), result ReloadResult) {
	ctx, cancel := context.WithTimeout(context.Background(), reloadHookTime)
	defer cancel()
	call := hooks.Call{Function: "FollowOptions.OnReload", Op: "reload"}
	_, err := hooks.Do(ctx, f.m.hooks, f.over, call, func() struct{} { onReload(result); return struct{}{} })
	if err != nil && !errors.Is(err, hooks.ErrOver) {
		f.m.cfg.Logger.Warn("FollowOptions.OnReload did not return; the files are followed all the same", zap.Error(err))
	}
}

// Reload reads the files now and returns when their content is accepted: what changed, and what is wrong with the files. It does
// not wait for the attempts of new servers.
func (f *Follower) Reload(ctx context.Context) (ReloadResult, error) {
	if ctx == nil {
		return ReloadResult{}, refusal.NilContextError("reload", "", "")
	}
	select {
	case <-f.ready:
	case <-ctx.Done():
		return ReloadResult{}, &Error{Op: "reload", Class: messages.ClassOf(ctx.Err()), Text: "the context ended first", Err: ctx.Err()}
	}
	d, err := f.files.Reload(ctx)
	if err != nil {
		return ReloadResult{}, err
	}
	return resultOf(d), nil
}

// Close ends the following. The servers stay as they are, and another Follow may begin. It is idempotent.
func (f *Follower) Close() {
	f.once.Do(func() { close(f.over) })
	f.files.Close()
	f.m.follower.CompareAndSwap(f, nil)
}

// applyDecision puts a decision in force. The files' follower calls it from its own goroutine, one decision at a time. Rules come
// first and servers last, so that no new server runs under old rules; the audit log names the files as the author.
func (f *Follower) applyDecision(ctx context.Context, d plan.Decision) error {
	ctx = audit.WithVia(ctx, "file", "")
	// The rules come first, so that no new server runs under the old ones.
	if !f.m.rules.HasRules(d.Permissions) {
		if err := f.m.SetPermissions(ctx, d.Permissions); err != nil {
			return err
		}
	}
	// The treatment of changed tools comes before the specs, whose tools it will be applied to.
	if err := f.m.setPin(ctx, d.Pin.Own, d.Pin.Least); err != nil {
		return err
	}
	_, err := f.m.configureServers(ctx, core.ConfigureServers{Specs: maps.Clone(d.Specs), Managed: &d.Policies})
	return err
}

// resultOf leaves out of a decision what only the manager needs: the specs, which hold secrets, and the policies.
func resultOf(d plan.Decision) ReloadResult {
	return ReloadResult{Changes: d.Changes, Problems: d.Problems, Remarks: d.Remarks, Held: d.Held,
		Rules: d.Rules, Restart: d.Restart, Gateway: d.Gateway}
}

// Reload makes the Follower of this manager read its files now; see [Follow]. Without one the error has ClassUnsupported.
func (m *Manager) Reload(ctx context.Context) (ReloadResult, error) {
	f := m.follower.Load()
	if f == nil {
		return ReloadResult{}, &Error{Op: "reload", Class: messages.ClassUnsupported, Text: "the manager follows no files",
			Fix: "restart it, or let it follow them"}
	}
	return f.Reload(ctx)
}

// ToProto returns the result in the form in which it travels.
func (r ReloadResult) ToProto() *messages.ReloadReply {
	p := &messages.ReloadReply{Added: r.Added, Removed: r.Removed, Replaced: r.Replaced, Adjusted: r.Adjusted, Moved: r.Moved,
		Kept: r.Kept, Remarks: r.Remarks, Held: r.Held, Rules: r.Rules, Restart: r.Restart}
	for _, q := range r.Problems {
		p.Problems = append(p.Problems, &messages.ReloadProblem{File: q.File, Line: int32(q.Line), Col: int32(q.Col),
			Server: q.Server, Key: q.Key, Text: q.Text, Fix: q.Fix, Warning: q.Warning})
	}
	return p
}
