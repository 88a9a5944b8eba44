package call

import (
	"context"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// listTime bounds the wait for servers that still connect to offer a resource too, once another server does. A URI that two
// servers offer is refused, and the faster start of one of them must not decide which is asked.
const listTime = 5 * time.Second

// offerAnswer is the answer of a server about a URI.
type offerAnswer struct {
	server string
	// known says that it is connected or has failed: what it offers is known, or cannot be.
	known bool
	// offers says that it lists the URI, or has a template that it fits.
	offers bool
}

// awaitOffer waits until it is known which servers offer a resource, and after the first offer for listTime at most. It returns
// the servers whose offers are not known yet. It only waits: the backend decides later, over all servers, which one is asked.
func awaitOffer(ctx context.Context, p *project.Project, uri string, wait time.Duration) (silent []string, err error) {
	all, err := p.Status(ctx, control.StatusQuery{})
	if err != nil {
		return nil, err
	}
	var ready []string
	for _, st := range all {
		switch {
		case st.Status == messages.Connected:
			ready = append(ready, st.Name)
		// An idle server is lazy, and is not started to be asked.
		case st.Status == messages.Pending && st.Step != messages.Idle:
			silent = append(silent, st.Name)
		}
	}
	if len(silent) == 0 {
		return nil, nil
	}
	// The wait covers connecting and listing together: within ends both.
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answers := make(chan offerAnswer, len(ready)+len(silent))
	// Each is asked by itself, so that none waits for another: one that is connected may be silent, too.
	asked := slices.Concat(ready, silent)
	for _, server := range asked {
		go func() { // it ends with within at the latest; answers has room for it
			t := offerAnswer{server: server}
			defer func() {
				_ = recover() // a panic leaves the answer unknown
				answers <- t
			}()
			askOffer(within, p, uri, wait, &t)
		}()
	}
	// enough is nil until the first offer, so that without one the wait lasts as long as --wait says.
	var enough <-chan time.Time
	for range asked {
		select {
		case t := <-answers:
			if t.known {
				silent = slices.DeleteFunc(silent, func(server string) bool { return server == t.server })
			}
			if t.offers && enough == nil {
				enough = time.After(listTime)
			}
		case <-enough:
			return silent, nil
		}
	}
	if stop := exit.InterruptedError(ctx); stop != nil {
		return nil, stop
	}
	_, err = p.AwaitStatus(ctx, max(wait-time.Since(began), time.Millisecond)) // an installation may take longer than the wait
	return silent, err
}

// askOffer waits for the server and asks it if it is connected then. It fills t, which the caller's goroutine owns.
func askOffer(ctx context.Context, p *project.Project, uri string, wait time.Duration, t *offerAnswer) {
	all, err := p.Status(ctx, control.StatusQuery{Servers: []string{t.server}, Wait: wait})
	if err != nil || len(all) == 0 {
		return
	}
	t.known = all[0].Status != messages.Pending
	if all[0].Status != messages.Connected {
		return
	}
	listed, _ := p.Resources(ctx, t.server) // a server that cannot list offers nothing
	t.offers = slices.ContainsFunc(listed, func(r messages.Resource) bool { return r.URI == uri })
	if !t.offers {
		templates, _ := p.Templates(ctx, t.server)
		t.offers = slices.ContainsFunc(templates, func(r messages.ResourceTemplate) bool { return supervisor.TemplateFits(r.URITemplate, uri) })
	}
}
