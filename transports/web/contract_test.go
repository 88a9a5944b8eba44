package web_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

func TestHTTPContract(t *testing.T) {
	seeds.Shows(t, "000.2.type-http", "000.7.http", "001.3.streamable-http", "001.3.framing",
		"003.5.transport-layer", "004.t.json-rpc", "004.t.http")
	for name, asEvents := range map[string]bool{"JSON": false, "Events": true} {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, transporttest.Harness{
				New: func(t *testing.T, o transporttest.Options) transports.Transport {
					p := conntest.NewWebPeer(t, conntest.StreamableHandler)
					p.AsEvents = asEvents
					return conntest.ListeningTransport{Transport: web.NewHTTP(conntest.ContractConfig(t, p.Server.URL, o))}
				},
				Broken: conntest.BrokenConfigs(func(c web.Config) transports.Transport { return web.NewHTTP(c) }),
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
	broken := conntest.BrokenConfigs(func(c web.Config) transports.Transport { return web.NewSSE(c) })
	at := func(class messages.Class, handler http.HandlerFunc) func(*testing.T, transporttest.Options) (
		transports.Transport, messages.Class) {
		return func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(handler))
			s.Start()
			t.Cleanup(s.Close)
			return web.NewSSE(conntest.ContractConfig(t, s.URL, o)), class
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
		return web.NewSSE(conntest.ContractConfig(t, "http://"+l.Addr().String(), o)), messages.ClassNetwork
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
			p := conntest.NewWebPeer(t, conntest.SSEHandler)
			return web.NewSSE(conntest.ContractConfig(t, p.Server.URL+"/sse", o))
		},
		Broken:   broken,
		Features: transporttest.Features{DeathIsDown: true, Push: true},
	})
}
