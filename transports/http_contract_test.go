package transports_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

func configOf(t *testing.T, url string, o transporttest.Options) transports.HTTPConfig {
	return transports.HTTPConfig{
		URL:        url + "?key=" + o.Secret,
		Headers:    map[string]string{"Authorization": "Bearer " + o.Secret, "X-Key": o.Secret},
		MaxMessage: o.MaxMessage,
		Client:     ownClient(t),
	}
}

// brokenWeb is every way in which the first exchange with a server can fail before there is one.
func brokenWeb(make func(transports.HTTPConfig) transports.Transport) map[string]func(
	*testing.T, transporttest.Options) (transports.Transport, messages.Class) {
	type result = func(*testing.T, transporttest.Options) (transports.Transport, messages.Class)
	bad := func(change func(*transports.HTTPConfig)) result {
		return func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			cfg := configOf(t, "http://127.0.0.1:1/", o)
			change(&cfg)
			return make(cfg), messages.ClassConfig
		}
	}
	return map[string]result{
		"relative URL":  bad(func(c *transports.HTTPConfig) { c.URL = "/mcp?key=" + c.Headers["X-Key"] }),
		"no host":       bad(func(c *transports.HTTPConfig) { c.URL = "http:///" + c.Headers["X-Key"] }),
		"other scheme":  bad(func(c *transports.HTTPConfig) { c.URL = "ftp://host/" + c.Headers["X-Key"] }),
		"no URL at all": bad(func(c *transports.HTTPConfig) { c.URL = "http://%zz" + c.Headers["X-Key"] }),
		"header value":  bad(func(c *transports.HTTPConfig) { c.Headers["X-Key"] += "\nInjected: 1" }),
		"header name":   bad(func(c *transports.HTTPConfig) { c.Headers["X Key"] = c.Headers["X-Key"] }),
	}
}

func TestHTTPContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-http", "000.7.http", "001.3.streamable-http", "001.3.framing",
		"003.5.transport-layer", "004.t.json-rpc", "004.t.http")
	for name, asEvents := range map[string]bool{"JSON": false, "Events": true} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, transporttest.Harness{
				New: func(t *testing.T, o transporttest.Options) transports.Transport {
					p := newWebPeer(t, streamable)
					p.asEvents = asEvents
					return listeningTransport{transports.NewHTTP(configOf(t, p.server.URL, o))}
				},
				Broken: brokenWeb(func(c transports.HTTPConfig) transports.Transport { return transports.NewHTTP(c) }),
				Features: transporttest.Features{
					SendWaits: true, Push: true, CancelClosesStream: true,
				},
			})
		})
	}
}

func TestSSEContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-sse", "000.7.sse", "001.3.http-sse", "001.3.framing", "003.5.transport-layer",
		"004.t.json-rpc", "004.t.http")
	broken := brokenWeb(func(c transports.HTTPConfig) transports.Transport { return transports.NewSSE(c) })
	at := func(class messages.Class, handler http.HandlerFunc) func(*testing.T, transporttest.Options) (
		transports.Transport, messages.Class) {
		return func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			s := silenceErrorLog(httptest.NewUnstartedServer(handler))
			s.Start()
			t.Cleanup(s.Close)
			return transports.NewSSE(configOf(t, s.URL, o)), class
		}
	}
	events := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	broken["refused"] = func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return transports.NewSSE(configOf(t, "http://"+l.Addr().String(), o)), messages.ClassNetwork
	}
	broken["unauthorized"] = at(messages.ClassUnauthorized, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no access for "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	broken["no stream"] = at(messages.ClassProtocol, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"not":"a stream"}`)
	})
	broken["no endpoint"] = at(messages.ClassNetwork, events("event: message\ndata: {}\n\n"))
	broken["endpoint elsewhere"] = at(messages.ClassProtocol, events("event: endpoint\ndata: https://example.com/m\n\n"))
	broken["no address"] = at(messages.ClassProtocol, events("event: endpoint\ndata: http://%zz\n\n"))
	broken["broken off"] = at(messages.ClassNetwork, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o transporttest.Options) transports.Transport {
			p := newWebPeer(t, sseHandler)
			return transports.NewSSE(configOf(t, p.server.URL+"/sse", o))
		},
		Broken:   broken,
		Features: transporttest.Features{DeathIsDown: true, Push: true},
	})
}

func TestInProcessContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-sdk", "003.5.transport-layer", "004.t.json-rpc")
	transporttest.Run(t, transporttest.Harness{
		New: func(_ *testing.T, o transporttest.Options) transports.Transport {
			tr := transports.NewInProcess(serveScript)
			tr.MaxMessage = o.MaxMessage
			return tr
		},
		Broken: map[string]func(*testing.T, transporttest.Options) (transports.Transport, messages.Class){
			"no server": func(*testing.T, transporttest.Options) (transports.Transport, messages.Class) {
				return transports.NewInProcess(nil), messages.ClassConfig
			},
		},
		Features: transporttest.Features{OneStream: true, DeathIsDown: true, Push: true, Stall: true},
	})
}

// serveScript plays the suite's peer in process. It dies as code of the same program does: serve returns.
func serveScript(ctx context.Context, peer transports.Peer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	script := new(transporttest.Script)
	_ = script.Serve(ctx, &peerPort{peer: peer, die: cancel}, func() ([]byte, error) { return peer.Read(ctx) })
	if cause := context.Cause(ctx); errors.Is(cause, errDied) {
		return cause
	}
	return nil
}

var errDied = errors.New("the peer died")

type peerPort struct {
	peer transports.Peer
	die  context.CancelCauseFunc
}

func (p *peerPort) Write(msg []byte) error { return p.peer.Write(context.Background(), msg) }
func (p *peerPort) Push(msg []byte) error  { return p.peer.Write(context.Background(), msg) }
func (p *peerPort) Noise([]byte) error     { return errors.New("no such thing") }
func (p *peerPort) Die()                   { p.die(errDied) }
