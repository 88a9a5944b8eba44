package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// HTTP is a proxy in front of a server over HTTP: streamable HTTP of both eras, and HTTP with SSE of 2024-11-05. It passes
// every path of the server's host, so that the agent finds the metadata for signing in as well. [NewHTTP] makes one,
// [HTTP.Serve] runs it.
type HTTP struct {
	Shared
	target    *url.URL
	listener  net.Listener
	flow      *fault.Flow
	transport *http.Transport
	server    *http.Server
	// stop is closed when Serve is about to return; it ends runTimedFaults and exchanges that are held open.
	stop chan struct{}

	// scopes numbers the exchanges. mu guards conns and exchanges, the open ones.
	scopes    atomic.Int64
	mu        sync.Mutex
	conns     map[*peerConn]struct{}
	exchanges map[*exchange]struct{}
	// shownSecrets are the sessions and credentials that the server has seen, as digests.
	shownSecrets secretStore
}

// peerConn is a connection of the agent.
type peerConn struct {
	net.Conn
	// silent is set when the connection is half-open: the proxy writes nothing to it any more.
	silent atomic.Bool
}

// connKey is the key under which a request's context holds its peerConn.
type connKey struct{}

// NewHTTP listens at an address, in front of the server at a URL. It serves nothing before [HTTP.Serve]. It returns an error
// for a URL that is not http or https, and for an address that other machines can reach.
func NewHTTP(target, listen string, shared Shared) (*HTTP, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a server; write http://… or https://…", target)
	}
	// A program that reaches the proxy speaks to the server with the agent's rights.
	if err := checkLoopback(listen); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("the proxy cannot listen: %w", err)
	}
	h := &HTTP{
		Shared: shared, target: u, listener: l, flow: shared.Control.Flow(), stop: make(chan struct{}),
		conns: map[*peerConn]struct{}{}, exchanges: map[*exchange]struct{}{}, shownSecrets: newSecretStore(),
	}
	h.transport = http.DefaultTransport.(*http.Transport).Clone()
	// A compressed answer passes compressed: the transport must not unpack it.
	h.transport.DisableCompression = true
	h.transport.ForceAttemptHTTP2 = false
	h.transport.MaxIdleConnsPerHost = 64
	h.server = &http.Server{
		Handler: h, ReadHeaderTimeout: 30 * time.Second,
		ConnContext: h.addConn,
		ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				h.removeConn(c)
			}
		},
	}
	return h, nil
}

// URL returns the URL that the agent uses in place of the server's.
func (h *HTTP) URL() string {
	u := url.URL{Scheme: "http", Host: h.listener.Addr().String(), Path: h.target.Path, RawPath: h.target.RawPath}
	return u.String()
}

// Serve passes everything until ctx ends, and cuts the exchanges that are open then. It returns nil after ctx has ended, and
// otherwise why the proxy cannot listen.
func (h *HTTP) Serve(ctx context.Context) error {
	var rest sync.WaitGroup
	rest.Go(func() {
		defer h.logPanic()
		h.runTimedFaults()
	})
	rest.Go(func() {
		<-ctx.Done()
		// Each exchange ends itself when its connection closes.
		_ = h.server.Close()
	})
	err := h.server.Serve(&refusingListener{h.listener, h})
	close(h.stop)
	h.cutExchanges(func(*exchange) bool { return true })
	if ctx.Err() == nil {
		return fmt.Errorf("the proxy cannot listen any more: %w", err)
	}
	rest.Wait()
	h.transport.CloseIdleConnections()
	return nil
}

// logPanic logs a panic of the timed faults; the proxy goes on without them.
func (h *HTTP) logPanic() {
	if v := recover(); v != nil {
		h.Log.logEvent(fmt.Sprintf("panic: %v", v), 0)
	}
}

// refusingListener resets new connections while the rule refuse is in force.
type refusingListener struct {
	net.Listener
	h *HTTP
}

// Accept implements net.Listener.
func (r *refusingListener) Accept() (net.Conn, error) {
	for {
		c, err := r.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if r.h.flow.FaultActive("refuse") {
			if f := r.h.flow.Exchange("dial"); f.Refuse != nil {
				r.h.Log.logEvent("dial", 0, f.Hits...)
				resetConn(c)
				continue
			}
		}
		return &peerConn{Conn: c}, nil
	}
}

// resetConn closes a connection with RST instead of FIN.
func resetConn(c net.Conn) {
	if p, ok := c.(*peerConn); ok {
		c = p.Conn
	}
	if t, ok := c.(*net.TCPConn); ok {
		// If that fails, the connection closes normally, which the agent hardly tells apart.
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// addConn notes a connection of the agent, for faults that end all of them.
func (h *HTTP) addConn(ctx context.Context, c net.Conn) context.Context {
	p, ok := c.(*peerConn)
	if !ok {
		return ctx
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[p] = struct{}{}
	return context.WithValue(ctx, connKey{}, p)
}

// removeConn forgets a connection of the agent that has ended.
func (h *HTTP) removeConn(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := c.(*peerConn); ok {
		delete(h.conns, p)
	}
}

// runTimedFaults performs the events that rules cause by the clock, until Serve ends.
func (h *HTTP) runTimedFaults() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := h.Control.Changed()
		events, next := h.flow.Tick()
		for _, e := range events {
			h.applyEvent(e)
		}
		// A message may start something timed (a limit of repetitions, a delay), and the flow does not announce it: with rules
		// in force the loop asks every pollEvery.
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		if !h.Control.Passive() {
			wait = min(wait, pollEvery)
		}
		timer.Reset(max(wait, 0))
		select {
		case <-timer.C:
		case <-changed:
		case <-h.stop:
			return
		}
	}
}

// applyEvent performs one event.
func (h *HTTP) applyEvent(e fault.Event) {
	h.Log.logEvent("", 0, e.Hit)
	switch e.Do {
	case fault.Deliver:
		h.routeMessage(e)
	case fault.Ending:
		h.endServer(e.End)
	case fault.CutStreams:
		h.cutExchanges(func(x *exchange) bool { return x.isStreaming() })
	case fault.ForgetSession:
		h.shownSecrets.forgetSecrets(sessions)
	case fault.ForgetToken:
		h.shownSecrets.forgetSecrets(tokens)
	case fault.HalfOpen:
		h.mu.Lock()
		defer h.mu.Unlock()
		for c := range h.conns {
			c.silent.Store(true)
		}
	// The control refuses these over HTTP, because they belong to processes.
	case fault.Noise, fault.Raw, fault.Stderr, fault.Stop, fault.Continue:
	}
}

// endServer acts as if the server had crashed: it resets every connection of the agent. Unless the fault is a mere reset, the
// server has forgotten its sessions when it is back.
func (h *HTTP) endServer(e *fault.End) {
	if e.Session {
		h.shownSecrets.forgetSecrets(sessions)
		return
	}
	if !e.Reset {
		h.shownSecrets.forgetSecrets(sessions)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		resetConn(c)
	}
}

// cutExchanges ends the open exchanges that match. It takes the list first, because match locks the exchange.
func (h *HTTP) cutExchanges(match func(*exchange) bool) {
	h.mu.Lock()
	var cut []*exchange
	for x := range h.exchanges {
		cut = append(cut, x)
	}
	h.mu.Unlock()
	for _, x := range cut {
		if match(x) {
			x.cancel(errCut)
		}
	}
}

// errCut is the cause of an exchange that a fault has cut.
var errCut = errors.New("the stream was cut")

// routeMessage sends a message that a rule makes up to the exchange of the call that it names, or to the streams on which a
// server may send without a request.
func (h *HTTP) routeMessage(e fault.Event) {
	h.mu.Lock()
	var receivers []*exchange
	for x := range h.exchanges {
		if e.Call != "" && x.hasRequest(e.Call) || e.Call == "" && x.acceptsUnsolicited() {
			receivers = append(receivers, x)
		}
	}
	h.mu.Unlock()
	for _, x := range receivers {
		x.insertMessage(e.Body)
	}
}

// isLocalHost reports whether a Host header names this machine. Without the check a web page could reach, through the proxy, a
// server that would refuse it.
func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
