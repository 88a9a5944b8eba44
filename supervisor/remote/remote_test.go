package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
	"github.com/mcpvisor/mcpvisor/transports"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve answers the handshake, a tool "echo" and a tool "big" whose result has as many bytes as asked for.
func serve(ctx context.Context, peer transports.Peer) error {
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string `json:"name"`
				Arguments struct {
					Size int `json:"size"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil {
			continue
		}
		result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", req.Params.Arguments.Size) + `"}]}`
		switch req.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"big","inputSchema":{"type":"object"}}]}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)); err != nil {
			return err
		}
	}
}

type site struct {
	manager *supervisor.Manager
	server  *remote.Server
	system  *actor.ActorSystem // of the machine far away
}

func far(t *testing.T, a *authority, cfg remote.Config) site {
	t.Helper()
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		InProcess: map[string]func(context.Context, transports.Peer) error{"s": serve}})
	must(t, err)
	cfg.Certificate, cfg.CA = a.issue(t, "manager"), a.pool
	server, err := remote.Serve(m, cfg)
	must(t, err)
	system := actor.NewActorSystem()
	peer, err := remote.Join(system, remote.Config{Certificate: a.issue(t, "agent"), CA: a.pool})
	must(t, err)
	t.Cleanup(func() {
		peer.Close()
		server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		system.Shutdown()
	})
	return site{m, server, system}
}

func (s site) ask(t *testing.T, msg proto.Message) any {
	t.Helper()
	reply, err := s.system.Root.RequestFuture(s.server.PID(), msg, 20*time.Second).Result()
	if err != nil {
		t.Fatalf("%T: %v", msg, err)
	}
	return reply
}

func TestCommandsOverMutualTLS(t *testing.T) {
	s := far(t, newAuthority(t), remote.Config{MaxMessage: 64 << 10, AllowCommands: []string{"allowed-command"}, AllowHosts: []string{"127.0.0.1"}})
	spec := supervisor.Spec{Type: messages.SDK, Name: "s"}
	if d := s.ask(t, &messages.AddServer{Name: "r", Spec: spec.ToProto()}).(*messages.Done); d.GetFailure() != nil {
		t.Fatal(d)
	}
	must(t, s.manager.Settled(t.Context()))
	r := s.ask(t, &messages.CallTool{CallId: "c1", Tool: "mcp__r__echo", Arguments: []byte(`{"size":3}`)}).(*messages.CallToolReply)
	if r.GetOutcome() != "result" || !strings.Contains(string(r.GetResult()), "xxx") {
		t.Errorf("%v", r)
	}
	st := s.ask(t, &messages.GetStatus{}).(*messages.StatusReply)
	if len(st.GetServers()) != 1 || st.GetServers()[0].GetStatus() != "connected" {
		t.Errorf("%v", st)
	}

	// A message that is too large, in either direction, is a typed error and not a broken connection.
	r = s.ask(t, &messages.CallTool{Tool: "mcp__r__echo", Arguments: []byte(`{"pad":"` + strings.Repeat("y", 100<<10) + `"}`)}).(*messages.CallToolReply)
	if r.GetOutcome() != "not-sent" || !errors.Is(r.GetFailure().ToError(), supervisor.ErrInvalid) {
		t.Errorf("an oversized command: %v", r)
	}
	r = s.ask(t, &messages.CallTool{Tool: "mcp__r__big", Arguments: []byte(`{"size":100000}`)}).(*messages.CallToolReply)
	if r.GetOutcome() != "unknown" || !strings.Contains(r.GetFailure().GetText(), "has run") {
		t.Errorf("an oversized reply: %v", r)
	}

	// A remote AddServer runs only what is allowed.
	for name, spec := range map[string]supervisor.Spec{
		"command":  {Command: "sh", Args: []string{"-c", "true"}},
		"path":     {Command: "./allowed-command"},
		"host":     {URL: "http://example.com/mcp"},
		"trusted":  {Type: messages.SDK, Name: "s", Trusted: true},
		"inherits": {Type: messages.Stdio, Command: "allowed-command", InheritEnv: new(true)},
	} {
		d := s.ask(t, &messages.AddServer{Name: "x", Spec: spec.ToProto()}).(*messages.Done)
		if !errors.Is(d.GetFailure().ToError(), supervisor.ErrDenied) {
			t.Errorf("%s: %v", name, d)
		}
		set := s.ask(t, &messages.SetServers{Servers: map[string]*messages.ServerSpec{"x": spec.ToProto()}}).(*messages.SetServersReply)
		if !errors.Is(set.GetFailure().ToError(), supervisor.ErrDenied) {
			t.Errorf("SetServers %s: %v", name, set)
		}
	}
	if s.manager.Server("x") != nil || s.manager.Server("r") == nil {
		t.Error("a refused command changed something")
	}
	allowed := supervisor.Spec{Command: "allowed-command"}
	if d := s.ask(t, &messages.AddServer{Name: "ok", Spec: allowed.ToProto()}).(*messages.Done); d.GetFailure() != nil {
		t.Errorf("an allowed command was refused: %v", d)
	}
}

type collector struct{ got chan any }

func (c *collector) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.WatchEvent, *messages.Done:
		c.got <- m
	}
}

func TestWatchFromAnotherMachine(t *testing.T) {
	s := far(t, newAuthority(t), remote.Config{})
	c := &collector{got: make(chan any, 1000)}
	pid := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
	s.system.Root.RequestWithCustomSender(s.server.PID(), &messages.Watch{}, pid)
	if _, ok := (<-c.got).(*messages.Done); !ok {
		t.Fatal("Watch was not answered first")
	}
	must(t, s.manager.Connect(t.Context(), "r", supervisor.Spec{Type: messages.SDK, Name: "s"}))
	for e := range c.got {
		if e.(*messages.WatchEvent).GetStatus().GetStatus() == "connected" {
			break
		}
	}
	s.system.Root.RequestWithCustomSender(s.server.PID(), &messages.Unwatch{}, pid)
	for e := range c.got {
		if _, ok := e.(*messages.Done); ok {
			break
		}
	}
	s.system.Root.Stop(pid)
}

// Peers can name one actor, and nothing but commands reaches it.
func TestPeersCannotReachOtherActors(t *testing.T) {
	a := newAuthority(t)
	s := far(t, a, remote.Config{})
	reached := make(chan any, 10)
	victim := s.manager.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
		default:
			reached <- m
		}
	}))
	at := actor.NewPID(s.server.PID().Address, victim.Id)
	s.system.Root.Send(at, &messages.GetStatus{})
	s.system.Root.Stop(at)
	s.system.Root.Stop(s.server.PID())
	s.ask(t, &messages.GetStatus{}) // everything before it has been read
	if s.server.Dropped() < 3 {
		t.Errorf("%d messages dropped, want 3", s.server.Dropped())
	}
	select {
	case m := <-reached:
		t.Errorf("another actor was reached: %T", m)
	default:
	}
	s.manager.System().Root.Stop(victim)
	if m := <-reached; m == nil {
		t.Error("the victim did not end")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	s := far(t, newAuthority(t), remote.Config{})
	stranger := newAuthority(t)
	system := actor.NewActorSystem()
	peer, err := remote.Join(system, remote.Config{Certificate: stranger.issue(t, "stranger"), CA: stranger.pool})
	must(t, err)
	defer peer.Close()
	if reply, err := system.Root.RequestFuture(s.server.PID(), &messages.GetStatus{}, 3*time.Second).Result(); err == nil {
		t.Errorf("a stranger was answered: %v", reply)
	}
	if _, err := remote.Serve(s.manager, remote.Config{}); !errors.Is(err, supervisor.ErrInvalid) {
		t.Errorf("Serve without certificates: %v", err)
	}
}
