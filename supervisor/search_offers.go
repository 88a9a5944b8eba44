package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// offerTime is how long a search for a resource waits for servers that have not answered, once another one offers it; and how long it waits for
// lists before it looks at templates, too. A URI that two servers offer is refused, and which of them is faster must not decide which is read.
const offerTime = 5 * time.Second

// searchOffers asks all connected servers for what they offer: for their lists, and for their templates unless a list has the URI. A server that
// answers nothing delays a search that finds something by offerTime at most after that, and one that finds nothing until its call times out.
func (m *Manager) searchOffers(ctx context.Context, uri string) (listed []listPart[messages.Resource], templates []listPart[messages.ResourceTemplate]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	isFound := make(chan struct{})
	var late *time.Timer
	found := sync.OnceFunc(func() {
		close(isFound)
		late = time.AfterFunc(offerTime, cancel)
	})
	lists := make(chan struct{})
	go func() { // it ends with ctx at the latest
		defer close(lists)
		defer func() { _ = recover() }() // a defect counts as no list
		listed = m.resourceParts(ctx, nil, func(all []messages.Resource) {
			if slices.ContainsFunc(all, func(r messages.Resource) bool { return r.URI == uri }) {
				found()
			}
		})
	}()
	select {
	case <-lists:
	case <-isFound:
	case <-time.After(offerTime):
	}
	select {
	case <-isFound:
	default:
		templates = m.templateParts(ctx, nil, func(all []messages.ResourceTemplate) {
			all = all[:min(len(all), maxTried)]
			if slices.ContainsFunc(all, func(t messages.ResourceTemplate) bool { return ctx.Err() == nil && TemplateFits(t.URITemplate, uri) }) {
				found()
			}
		})
	}
	<-lists
	if late != nil {
		late.Stop()
	}
	return listed, templates
}
