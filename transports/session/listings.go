package session

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/lists"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// Listing is one list of a server: resources, resource templates or prompts. Items are the entries that can be used,
// Quarantined the others with the reason, Public whether the server lets the list be shared between users. Its receivers share
// it and must not change it.
type Listing[T any] = lists.Listing[T]

// listCaches are the lists that a session caches. They are made together, on first use.
type listCaches struct {
	resources *lists.Cache[messages.Resource]
	templates *lists.Cache[messages.ResourceTemplate]
	prompts   *lists.Cache[messages.Prompt]
}

// ensureListCaches returns the caches of the session. The first caller makes them, because most servers have tools
// and nothing else; of two first callers one wins.
func (s *Session) ensureListCaches() *listCaches {
	if o := s.listCaches.Load(); o != nil {
		return o
	}
	ofResources := func(fresh time.Time) (time.Time, bool) {
		return s.listValidity(fresh, func(c *Capabilities) bool { return c.ResourcesListChanged })
	}
	ofPrompts := func(fresh time.Time) (time.Time, bool) {
		return s.listValidity(fresh, func(c *Capabilities) bool { return c.PromptsListChanged })
	}
	c, limits := (*conversation)(s), s.listLimits()
	s.listCaches.CompareAndSwap(nil, &listCaches{
		resources: lists.NewCache(&lists.Resources, c, limits, ofResources),
		templates: lists.NewCache(&lists.Templates, c, limits, ofResources),
		prompts:   lists.NewCache(&lists.Prompts, c, limits, ofPrompts),
	})
	return s.listCaches.Load()
}

// listLimits returns the bounds of the session's lists.
func (s *Session) listLimits() lists.Limits {
	return lists.Limits{Memory: &s.memory, MaxPages: s.cfg.MaxPages, MaxEntries: s.cfg.MaxTools}
}

const (
	// maxAgeUnannounced bounds the age of a cached list whose server does not announce changes; maxAgeHTTP bounds it
	// over HTTP in the legacy era, where a server may announce changes and have no stream to send them on.
	maxAgeUnannounced = 5 * time.Second
	maxAgeHTTP        = time.Minute
)

// listValidity returns until when a list is valid that was fetched just now, the zero time for until it changes; keep is false
// for one that is valid for no time. fresh is the end of its freshness by the server's word, which counts in the modern era;
// the legacy era has ages of our own. announced tells from the capabilities whether the server announces changes.
func (s *Session) listValidity(fresh time.Time, announced func(*Capabilities) bool) (until time.Time, keep bool) {
	switch {
	case s.modern.Load() != nil:
		return fresh, time.Now().Before(fresh)
	case !announced(&s.info.Load().Capabilities):
		return time.Now().Add(maxAgeUnannounced), true
	case s.overHTTP():
		return time.Now().Add(maxAgeHTTP), true
	}
	return time.Time{}, true
}

// listFrom returns the list of a cache, whose entries plural names. A server that does not declare the list has an empty one.
func listFrom[T any](
	ctx context.Context, s *Session, plural string, cache *lists.Cache[T], declared func(*Capabilities) bool,
) (Listing[T], error) {
	if e := s.endedError("read"); e != nil {
		return Listing[T]{}, outcome.MarkNotSent(e)
	}
	info := s.info.Load()
	if info == nil {
		return Listing[T]{}, invalidReadError("the " + plural + " were asked for before the handshake")
	}
	if !declared(&info.Capabilities) {
		return Listing[T]{Public: true}, nil
	}
	return cache.Get(ctx)
}

// invalidateLists drops the lists that may have changed. o is nil if no caller has asked for any list: then there is
// nothing to drop.
func (o *listCaches) invalidateLists(resources, prompts bool) {
	if o == nil {
		return
	}
	if resources {
		o.resources.MarkChanged()
		o.templates.MarkChanged()
	}
	if prompts {
		o.prompts.MarkChanged()
	}
}

// usedLists reports whether a caller has asked for resources or templates, and for prompts.
func (o *listCaches) usedLists() (resources, prompts bool) {
	if o == nil {
		return false, false
	}
	return o.resources.WasUsed() || o.templates.WasUsed(), o.prompts.WasUsed()
}

// Resources returns all pages of the server's list of resources. A server that declares no resources has an empty
// list and is not asked. A resource that cannot be used is quarantined.
//
// The list is fetched on first use and cached as long as it is valid: until the server announces a change, and in the
// modern era as long as the server said (the shortest ttlMs of its pages; not at all without one). A server of the
// legacy era that does not announce changes is asked again after 5 s; one that is reached over HTTP after 1 min in
// any case, because there a server may declare announcements and offer no stream to send them on. Callers at the same
// time share one fetch, which may take up to 2 min and is not ended by the end of a caller's ctx. An error is not
// cached.
//
// An error is a *messages.Error with Op "read" and an Outcome.
func (s *Session) Resources(ctx context.Context) (Listing[messages.Resource], error) {
	return listFrom(ctx, s, "resources", s.ensureListCaches().resources, func(c *Capabilities) bool { return c.Resources })
}

// ResourceTemplates returns the server's resource templates, cached like [Session.Resources].
func (s *Session) ResourceTemplates(ctx context.Context) (Listing[messages.ResourceTemplate], error) {
	return listFrom(ctx, s, "resource templates", s.ensureListCaches().templates, func(c *Capabilities) bool { return c.Resources })
}

// Prompts returns the server's prompts, cached like [Session.Resources].
func (s *Session) Prompts(ctx context.Context) (Listing[messages.Prompt], error) {
	return listFrom(ctx, s, "prompts", s.ensureListCaches().prompts, func(c *Capabilities) bool { return c.Prompts })
}
