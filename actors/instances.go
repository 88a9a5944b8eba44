package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// This file has the instances of a server whose spec has share "principal": how a request finds the one of its caller, and how an
// instance knows that it is used. The supervisor makes and ends them; each is a server like any other, with an actor and a cell.

// Instances are the cells of a server's instances, by principal. Only the supervisor's actor writes; requests read.
type Instances struct {
	mu          sync.RWMutex
	byPrincipal map[string]*Cell
}

// Of returns the cell of a principal's instance; nil if it has none.
func (i *Instances) Of(principal string) *Cell {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byPrincipal[principal]
}

// All returns the cells of all instances, those that end included, sorted by name.
func (i *Instances) All() []*Cell {
	i.mu.RLock()
	defer i.mu.RUnlock()
	all := make([]*Cell, 0, len(i.byPrincipal))
	for _, c := range i.byPrincipal {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Cell) int { return strings.Compare(a.View().Name, b.View().Name) })
	return all
}

// Put makes a cell that of its principal's instance.
func (i *Instances) Put(c *Cell) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byPrincipal == nil {
		i.byPrincipal = map[string]*Cell{}
	}
	i.byPrincipal[c.Use.principal] = c
}

// Drop forgets a cell, unless a later instance has its place.
func (i *Instances) Drop(c *Cell) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byPrincipal[c.Use.principal] == c {
		delete(i.byPrincipal, c.Use.principal)
	}
}

// Use counts the requests that use an instance, from the moment they have found it to their end, so that an instance which ends for
// idleness has none and gets none. Safe for concurrent use.
type Use struct {
	principal string
	// after is the newest epoch that was granted before the instance was made: what the catalog has of that epoch or an older one is of an
	// instance that had the name before, and that the registry has not forgotten yet.
	after uint64
	// count has the requests, and useEnded once no further one is let in. last is the time of the last beginning or end, in
	// nanoseconds since processStart.
	count, last atomic.Int64
}

const useEnded = int64(1) << 40

// NewUse makes the count of a new instance, which is as good as used now. after is the newest epoch that was granted before.
func NewUse(principal string, after uint64) *Use {
	u := &Use{principal: principal, after: after}
	u.last.Store(int64(time.Since(processStart)))
	return u
}

// enter counts a request in, and reports false if the instance ends.
func (u *Use) enter() bool {
	for {
		n := u.count.Load()
		if n >= useEnded {
			return false
		}
		if u.count.CompareAndSwap(n, n+1) {
			u.last.Store(int64(time.Since(processStart)))
			return true
		}
	}
}

func (u *Use) leave() {
	u.last.Store(int64(time.Since(processStart)))
	u.count.Add(-1)
}

// IdleFor returns how long no request has used the instance; 0 while one does.
func (u *Use) IdleFor() time.Duration {
	if u.count.Load()&(useEnded-1) != 0 {
		return 0
	}
	return time.Since(processStart) - time.Duration(u.last.Load())
}

// EndIdle lets no further request in, and reports false, without an effect, if one is inside.
func (u *Use) EndIdle() bool { return u.count.CompareAndSwap(0, useEnded) }

// End lets no further request in. Those inside go on until the instance's gate closes.
func (u *Use) End() {
	for {
		n := u.count.Load()
		if n >= useEnded || u.count.CompareAndSwap(n, n+useEnded) {
			return
		}
	}
}

// target is the name by which the request's connection is found: that of the instance, or of the server.
func (r *Request) target() string {
	if r.Instance != "" {
		return r.Instance
	}
	return r.Server
}

// LeaveInstance ends the request's use of an instance, if it has one.
func (r *Request) LeaveInstance() {
	if r.use != nil {
		r.use.leave()
		r.use = nil
	}
}

// EnterInstance leads a request, whose Server is known, to its caller's instance of that server; it does nothing for a server that
// all share, and for a caller without a name. The instance is made if there is none, unless the request only lists what there is:
// that is answered by the server itself. Whoever calls it must call LeaveInstance.
func (c *Calls) EnterInstance(ctx context.Context, r *Request) error {
	principal := messages.CallerOf(ctx)
	for {
		cell := c.Cell(r.Server)
		if cell == nil {
			return nil // what follows says that there is no such server
		}
		v := cell.View()
		if v.Spec.InstanceOf != "" {
			return c.enterNamed(r, cell, principal)
		}
		if v.Spec.Share != messages.SharePrincipal || principal == "" {
			return nil
		}
		if own := cell.Instances.Of(principal); own != nil && own.Use.enter() {
			r.Instance, r.use = own.View().Name, own.Use
			return nil
		}
		switch {
		case strings.HasSuffix(r.Method, "/list"), r.Method == "ping":
			return nil
		case v.State.Removing || v.State.Phase == messages.Disabled:
			return c.notConnectedError(r.Server, r.toolName(), nil)
		}
		if c.AllowTool != nil && r.Entry != nil {
			if err := c.AllowTool(ctx, r.Entry.Tool); err != nil {
				return err
			}
		}
		// The supervisor replies when the instance is there, and to a request whose server is another one by now without an effect.
		if err := c.StartInstance(ctx, r.Server, principal); err != nil {
			return err
		}
	}
}

// enterNamed admits a request whose caller names an instance, such as github@anna, in the place of a server. It refuses every caller but
// the instance's own principal, because the server would answer with that principal's credentials. Any caller may ping an instance: a
// ping brings no data back.
func (c *Calls) enterNamed(r *Request, cell *Cell, principal string) error {
	spec := cell.View().Spec
	if principal != spec.Principal && r.Method != "ping" {
		e := c.notConnectedError(r.Server, r.toolName(), nil)
		e.Op, e.Class, e.Retry, e.RetryAfter, e.Challenge = r.Operation(), messages.ClassDenied, "", 0, nil
		e.Text, e.Err = "it is the instance of another caller", messages.ErrDenied
		e.Fix = "name the server without the caller"
		return e
	}
	if !cell.Use.enter() {
		return c.notConnectedError(r.Server, r.toolName(), nil)
	}
	r.Instance, r.Server, r.use = r.Server, spec.InstanceOf, cell.Use
	return nil
}

// enterForTool is EnterInstance for a tool call that has looked for its tool: found is the server's own entry, nil if the catalog
// has none. A tool that a rule denies in every state starts nothing. It looks for the tool once more, in the instance's list.
func (c *Calls) enterForTool(ctx context.Context, r *Request, found *catalog.Entry) (*catalog.Entry, error) {
	server, tool, qualified := r.Server, r.Name, ""
	if server == "" {
		if server, tool, qualified = "", "", r.Name; found != nil {
			server, tool = found.Tool.Server, found.Tool.Name
		} else if c.ResolveName != nil {
			server, tool = c.ResolveName(qualified)
		}
	}
	if server == "" {
		return found, nil
	}
	if found == nil && c.Refuse != nil {
		if err := c.Refuse("", server, tool); err != nil {
			return nil, err
		}
	}
	named := r.Server
	r.Server = server
	if err := c.EnterInstance(ctx, r); err != nil {
		return nil, withTool(err, tool)
	}
	if r.Instance == "" {
		r.Server = named
		return found, nil
	}
	return c.entryOfInstance(r.Instance, tool, qualified), nil
}

// withTool returns an error that names its tool. It copies the error, which several callers may share.
func withTool(err error, tool string) error {
	e, ok := errors.AsType[*messages.Error](err)
	if !ok || e.Tool != "" {
		return err
	}
	named := *e
	named.Tool = tool
	return &named
}

// entryOfInstance returns a tool of an instance, by its own name or, if that is not known, by the qualified one, which the
// instance's entries share with the server's; nil if the instance does not list it now. The tools of an instance that had the name before,
// and that was removed a moment ago, are not those of this one.
func (c *Calls) entryOfInstance(instance, tool, qualified string) *catalog.Entry {
	cell, snapshot := c.Cell(instance), c.Catalog.Snapshot()
	isOwn := func(e *catalog.Entry) bool { return cell == nil || cell.Use == nil || e.Epoch > cell.Use.after }
	if tool != "" {
		if entry, ok := snapshot.LookupTool(instance, tool); ok && isOwn(entry) {
			return entry
		}
		return nil
	}
	for _, entry := range snapshot.Server(instance) {
		if entry.Name == qualified && isOwn(entry) {
			return entry
		}
	}
	return nil
}

// mayHaveInstance reports whether a tool call must look for an instance: nearly all need not, and one look at the entry tells.
func (c *Calls) mayHaveInstance(ctx context.Context, r *Request) bool {
	if r.Entry != nil && r.Server != "" && r.Entry.Tool.Server != r.Server {
		return true // the caller named an instance
	}
	// Without an entry the server may be an instance that is not connected, whose name no caller may use but its own.
	if r.Entry == nil {
		return messages.CallerOf(ctx) != "" || r.Server != ""
	}
	if messages.CallerOf(ctx) == "" {
		return false
	}
	if link, ok := r.Entry.Route.(*Link); ok {
		return link.Spec.Share == messages.SharePrincipal
	}
	cell := c.Cell(r.Entry.Tool.Server)
	return cell != nil && cell.View().Spec.Share == messages.SharePrincipal
}
