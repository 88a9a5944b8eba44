package supervisor

import (
	"context"
	"maps"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/reload/plan"
)

// FollowOptions say which files a manager follows. The zero value follows those of the working directory, as FromFiles reads
// them.
type FollowOptions struct {
	// Dir is the directory that the configuration belongs to; the working directory if empty.
	Dir string
	// Reading, if not nil, is a configuration that was read before, in the place of that of Dir. What was read is applied
	// first, and then what the files are now.
	Reading *discover.Snapshot
	// Quiet, Most, Grace and Poll are when a change is applied: after Quiet (100 ms) without another one, at the latest Most
	// (1 s) after the first; what is missing or broken has Grace (1 s). Everything is read every Poll (5 s) without an event.
	Quiet, Most, Grace, Poll time.Duration
	// OnReload is told of each reload that changed something, or of which there is something to say. It must not block.
	OnReload func(ReloadResult)
}

// ReloadResult is what a reload came to. Each server of the files stands in one of Added, Replaced, Adjusted, Moved and Kept;
// those that are gone in Removed.
type ReloadResult struct {
	config.Changes
	// Problems are the faults of the files as they are now, each with file, line and column.
	Problems []Problem `json:"problems,omitempty"`
	// Remarks are about the servers that go on with what their files said before, by server.
	Remarks map[string]string `json:"remarks,omitempty"`
	// Held are the servers that wait for an approval.
	Held []string `json:"held,omitempty"`
	// Rules says that rules about calls, policies, or what is done about changed tools are others than before.
	Rules bool `json:"rules,omitempty"`
	// Restart are the keys of the files, beside the servers, that say something else than when the following began, and count
	// from the next start of the program on: what no manager can change while it runs.
	Restart []string `json:"restart,omitempty"`
}

// Follow applies configuration files to a manager whenever they change, until the result is closed or the manager is. Every
// change is applied as the smallest difference: what did not change keeps its connection and its calls, what changed in
// a timeout, a bound, the tools that are offered, or disabled keeps its connection, what is replaced or removed lets admitted
// calls finish for at most Timing.Drain. An invalid file changes nothing, an invalid entry nothing of its server: packages
// supervisor/internal/reload and supervisor/internal/reload/plan say exactly what counts when.
//
// Servers, the policies of managed files, the rules about tools and what is done about changed ones are followed, and what the
// person approves meanwhile. Servers that were added at runtime are left alone, and so is everything else of Config but Managed,
// Access, Pin and LeastPin, which those of the files replace. ctx bounds only the beginning. A manager follows one set of files
// at a time.
func Follow(ctx context.Context, m *Manager, o FollowOptions) (*Follower, error) {
	var reading discover.Snapshot
	if o.Reading != nil {
		reading = *o.Reading
	} else {
		var err error
		if reading, err = discover.Read(discover.Options{Dir: o.Dir}); err != nil {
			return nil, err
		}
	}
	f := &Follower{m: m, ready: make(chan struct{})}
	if !m.follower.CompareAndSwap(nil, f) {
		return nil, &Error{Op: "follow", Class: messages.ClassInvalid, Text: "the manager follows files already",
			Fix: "close the follower before"}
	}
	cfg := reload.Config{Reading: reading, Quiet: o.Quiet, Most: o.Most, Grace: o.Grace, Poll: o.Poll, Apply: f.applyDecision,
		Done: m.stopped, Log: m.cfg.Logger}
	if o.OnReload != nil {
		cfg.Decided = func(d plan.Decision) { o.OnReload(resultOf(d)) }
	}
	f.files = reload.Follow(cfg)
	close(f.ready)
	if _, err := f.Reload(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Follower is a manager that follows files.
type Follower struct {
	m     *Manager
	ready chan struct{} // closed when files is set
	files *reload.Follower
}

// Reload reads the files now and returns when what follows is accepted: what changed by it, and what is wrong with the files.
func (f *Follower) Reload(ctx context.Context) (ReloadResult, error) {
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

// Close ends the following. The servers stay as they are. It is idempotent.
func (f *Follower) Close() {
	f.files.Close()
	f.m.follower.CompareAndSwap(f, nil)
}

// applyDecision puts a decision in force.
func (f *Follower) applyDecision(ctx context.Context, d plan.Decision) error {
	ctx = audit.WithVia(ctx, "file", "")
	if !f.m.permissions.hasRules(d.Permissions) { // first, so that nothing new runs under the old ones
		if err := f.m.SetPermissions(ctx, d.Permissions); err != nil {
			return err
		}
	}
	if err := f.m.setPin(ctx, d.Pin.Own, d.Pin.Least); err != nil {
		return err
	}
	_, err := f.m.configureServers(ctx, configureServers{specs: maps.Clone(d.Specs), managed: &d.Policies})
	return err
}

func resultOf(d plan.Decision) ReloadResult {
	return ReloadResult{Changes: d.Changes, Problems: d.Problems, Remarks: d.Remarks, Held: d.Held,
		Rules: d.Rules, Restart: d.Restart}
}

// Reload asks whoever follows the files of this manager to read them now; see Follow. The error says so if nobody does.
func (m *Manager) Reload(ctx context.Context) (ReloadResult, error) {
	f := m.follower.Load()
	if f == nil {
		return ReloadResult{}, &Error{Op: "reload", Class: messages.ClassUnsupported, Text: "the manager follows no files",
			Fix: "restart it, or let it follow them"}
	}
	return f.Reload(ctx)
}

// reloadTime bounds a reload that another actor asks for.
const reloadTime = 30 * time.Second

// toReply is the result as it travels.
func (r ReloadResult) toReply(err error) *messages.ReloadReply {
	p := &messages.ReloadReply{Added: r.Added, Removed: r.Removed, Replaced: r.Replaced, Adjusted: r.Adjusted, Moved: r.Moved,
		Kept: r.Kept, Remarks: r.Remarks, Held: r.Held, Rules: r.Rules, Restart: r.Restart,
		Failure: messages.FailureOf(err)}
	for _, q := range r.Problems {
		p.Problems = append(p.Problems, &messages.ReloadProblem{File: q.File, Line: int32(q.Line), Col: int32(q.Col),
			Server: q.Server, Key: q.Key, Text: q.Text, Fix: q.Fix, Warning: q.Warning})
	}
	return p
}
