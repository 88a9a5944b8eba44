package websocket_test

import (
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
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

func socketConfig(t *testing.T, url string, o transporttest.Options) websocket.Config {
	cfg := conntest.ContractConfig(t, url, o)
	return websocket.Config{
		URL: cfg.URL, Headers: cfg.Headers, MaxMessage: cfg.MaxMessage, Client: cfg.Client,
	}
}

func newSocket(c web.Config) transports.Transport {
	return websocket.New(websocket.Config{URL: c.URL, Headers: c.Headers, Client: c.Client})
}

func TestWebSocketContract(t *testing.T) {
	seeds.Shows(t, "004.fr1.transport-websocket", "004.t.json-rpc")
	broken := conntest.BrokenConfigs(newSocket)
	at := func(class messages.Class, handler http.HandlerFunc) func(*testing.T, transporttest.Options) (
		transports.Transport, messages.Class) {
		return func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
			s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(handler))
			s.Start()
			t.Cleanup(s.Close)
			return websocket.New(socketConfig(t, s.URL, o)), class
		}
	}
	status := func(class messages.Class, code int) func(*testing.T, transporttest.Options) (
		transports.Transport, messages.Class) {
		return at(class, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "nothing for "+r.Header.Get("Authorization")+" at "+r.URL.RawQuery, code)
		})
	}
	broken["refused"] = func(t *testing.T, o transporttest.Options) (transports.Transport, messages.Class) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return websocket.New(socketConfig(t, "ws://"+l.Addr().String(), o)), messages.ClassNetwork
	}
	broken["unauthorized"] = status(messages.ClassUnauthorized, http.StatusUnauthorized)
	broken["forbidden"] = status(messages.ClassForbidden, http.StatusForbidden)
	broken["not found"] = status(messages.ClassNetwork, http.StatusNotFound)
	broken["throttled"] = status(messages.ClassThrottled, http.StatusTooManyRequests)
	broken["no switch"] = status(messages.ClassProtocol, http.StatusOK)
	broken["asks for an upgrade"] = status(messages.ClassProtocol, http.StatusUpgradeRequired)
	broken["switches without agreeing"] = at(messages.ClassProtocol, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Sec-WebSocket-Accept", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusSwitchingProtocols)
	})
	broken["broken off"] = at(messages.ClassNetwork, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	transporttest.Run(t, transporttest.Harness{
		New: func(t *testing.T, o transporttest.Options) transports.Transport {
			return websocket.New(socketConfig(t, conntest.NewSocketPeer(t).Server.URL, o))
		},
		Broken: broken,
		Features: transporttest.Features{
			OneStream: true, DeathIsDown: true, Push: true, Noise: true, Stall: true,
		},
	})
}
