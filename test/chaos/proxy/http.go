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

// HTTP is a proxy in front of a server over HTTP: streamable HTTP of both eras, and HTTP with SSE of 2024-11-05. Every
// path of the server's host is passed, so that metadata for signing in is found as well. Make it with NewHTTP.
type HTTP struct {
	Shared
	target    *url.URL
	listener  net.Listener
	flow      *fault.Flow
	transport *http.Transport
	server    *http.Server
	stop      chan struct{} // closed when Serve is over

	scopes       atomic.Int64
	mu           sync.Mutex
	conns        map[*peerConn]struct{}
	exchanges    map[*exchange]struct{}
	shownSecrets secretStore // sessions and credentials
}

// peerConn is a connection of the agent.
type peerConn struct {
	net.Conn
	// silent: it is half-open, nothing goes through it any more.
	silent atomic.Bool
}

type connKey struct{}

// NewHTTP listens at an address, in front of the server at a URL. Nothing is served before Serve.
func NewHTTP(target, listen string, shared Shared) (*HTTP, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a server; write http://… or https://…", target)
	}
	if err := checkLoopback(listen); err != nil { // whoever reaches it speaks to the server
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
	h.transport.DisableCompression = true // what is compressed passes compressed
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

// URL is what the agent is given in the place of the server's.
func (h *HTTP) URL() string {
	u := url.URL{Scheme: "http", Host: h.listener.Addr().String(), Path: h.target.Path, RawPath: h.target.RawPath}
	return u.String()
}

// Serve passes everything until ctx ends. Exchanges that are open then are cut.
func (h *HTTP) Serve(ctx context.Context) error {
	var rest sync.WaitGroup
	rest.Go(func() {
		defer h.logPanic()
		h.runTimedFaults()
	})
	rest.Go(func() {
		<-ctx.Done()
		_ = h.server.Close() // what is cut is told by its own end
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

func (h *HTTP) logPanic() {
	if v := recover(); v != nil {
		h.Log.logEvent(fmt.Sprintf("panic: %v", v), 0)
	}
}

// refusingListener resets new connections while a rule says so.
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

// resetConn ends a connection with a reset.
func resetConn(c net.Conn) {
	if p, ok := c.(*peerConn); ok {
		c = p.Conn
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // otherwise it is closed in order, which is nearly the same
	}
	_ = c.Close()
}

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

func (h *HTTP) removeConn(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := c.(*peerConn); ok {
		delete(h.conns, p)
	}
}

// runTimedFaults does what happens by the time.
func (h *HTTP) runTimedFaults() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := h.Control.Changed()
		events, next := h.flow.Tick()
		for _, e := range events {
			h.applyEvent(e)
		}
		// A message can begin something that goes by the clock, and nobody says so: look again.
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

func (h *HTTP) applyEvent(e fault.Event) {
	h.Log.logEvent("", 0, e.Hit)
	switch e.Do {
	case fault.Deliver:
		h.routeMessage(e)
	case fault.Ending:
		h.endServer(e.End)
	case fault.Cut:
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
	case fault.Noise, fault.Raw, fault.Stderr, fault.Stop, fault.Continue: // refused by the control: they are a process's
	}
}

// endServer is the end of the server: every connection is reset. One that was no mere reset has forgotten its sessions when it
// is there again.
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

// cutExchanges ends the exchanges that are meant.
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

var errCut = errors.New("the stream was cut")

// routeMessage sends a message of nobody's to the exchange that it belongs to, or to the streams that are there for what a server
// says unasked.
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

// isLocalHost reports whether a Host header names this machine: a web page must not reach a server through us that would refuse
// it.
func isLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
