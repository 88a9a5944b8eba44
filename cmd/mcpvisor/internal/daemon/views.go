package daemon

import (
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
)

// followedViews gives the gateways of the hosts that have a part the views of the part's files, and again when the files have changed.
type followedViews struct {
	mu       sync.Mutex
	views    map[string]config.View
	gateways map[*gateway.Gateway]bool
}

// setGateway takes what the files say about agents; nil if they say nothing. What cannot be read changes nothing.
func (f *followedViews) setGateway(d *daemon, said *config.Gateway) {
	if said == nil {
		said = &config.Gateway{}
	}
	if said.Invalid != "" {
		d.reportFailure(fmt.Errorf("the views stay as they were: %s", said.Invalid))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.views = said.Views
	for g := range f.gateways {
		g.SetViews(f.views)
	}
}

// addGateway gives a gateway the views from now on.
func (f *followedViews) addGateway(g *gateway.Gateway) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gateways == nil {
		f.gateways = map[*gateway.Gateway]bool{}
	}
	f.gateways[g] = true
	g.SetViews(f.views)
}

// removeGateway is called before a gateway is closed.
func (f *followedViews) removeGateway(g *gateway.Gateway) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gateways, g)
}
