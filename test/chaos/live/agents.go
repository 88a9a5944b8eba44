package live

import (
	"context"
	"net"
	"net/http"

	"github.com/mcpvisor/mcpvisor/test/chaos/agents"
)

// startAgents puts a gateway before the manager, if the plan has agents: those on lines come through pipes, those over HTTP through sockets of
// the loopback.
func (r *run) startAgents() error {
	if len(r.plan.Agents) == 0 {
		return nil
	}
	fleet, err := agents.Start(agents.Options{
		Plan: r.plan, Manager: r.manager, Record: r.recordEvent, Now: r.elapsedTime, Dial: dialEndpoint,
		Check: r.secrets.checkText,
	})
	if err != nil {
		return &Error{Text: "the gateway cannot be reached: " + err.Error(), Err: err}
	}
	r.fleet = fleet
	r.driver.goroutines.Go(func() {
		for _, op := range fleet.Ops() {
			if !r.sleepUntil(r.driver.ctx, op.At) {
				return
			}
			r.driver.goroutines.Go(op.Do)
		}
	})
	return nil
}

// closeAgents ends the agents and their gateway, before the manager.
func (r *run) closeAgents() {
	if r.fleet != nil {
		r.fleet.Close()
	}
}

// dialEndpoint serves an endpoint on a port of the loopback, and returns a client for it.
func dialEndpoint(h http.Handler) (client http.RoundTripper, address string, end func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: closeTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // it ends with server.Close
	}()
	transport := &http.Transport{}
	return transport, "http://" + l.Addr().String(), func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	}, nil
}
