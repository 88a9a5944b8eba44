package remote_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/remote"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
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

// issue signs a certificate for a common name, or for a URI of scheme mcpvisor.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	var uris []*url.URL
	if u, err := url.Parse(name); err == nil && u.Scheme != "" {
		uris, name = append(uris, u), "any"
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, URIs: uris,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// save writes the keys and certificates that another process needs, and load reads them.
func (a *authority) save(t *testing.T, dir, name string) {
	t.Helper()
	cert := a.issue(t, name)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	must(t, err)
	for file, block := range map[string]*pem.Block{
		"ca.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw}, "cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		must(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
}

func load(dir string) (cfg remote.Config, err error) {
	cfg.Certificate, err = tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return cfg, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	cfg.CA = x509.NewCertPool()
	cfg.CA.AppendCertsFromPEM(ca)
	return cfg, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve answers the handshake and offers a tool "echo", a tool "big" whose result has as many bytes as its caller
// wants, a tool "ask" that reports progress and then the model that the client sampled with, and resources: their text is the
// number of subscriptions, and x:///no refuses one.
func serve(ctx context.Context, peer inprocess.Peer) error {
	var asking json.RawMessage // the id of the call of "ask"
	subscribed := map[string]bool{}
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
				URI       string `json:"uri"`
				Arguments struct {
					Size int `json:"size"`
				} `json:"arguments"`
				Meta struct {
					ProgressToken json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			} `json:"params"`
			Result struct {
				Model string `json:"model"`
			} `json:"result"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil {
			continue
		}
		if req.Method == "" { // the answer to our question
			req.ID, req.Method, req.Params.Arguments.Size = asking, "tools/call", len(req.Result.Model)
		} else if req.Params.Name == "ask" {
			asking = req.ID
			if req.Params.Meta.ProgressToken != nil {
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":`+
					`{"progressToken":%s,"progress":1}}`, req.Params.Meta.ProgressToken))
			}
			_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"maxTokens":1}}`))
			continue
		}
		result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", req.Params.Arguments.Size) + `"}]}`
		switch req.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}`
		case "resources/read":
			result = fmt.Sprintf(`{"contents":[{"uri":"x:///","text":"%d"}]}`, len(subscribed))
		case "resources/subscribe":
			if result = `{}`; req.Params.URI == "x:///no" {
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no such resource"}}`, req.ID))
				continue
			}
			subscribed[req.Params.URI] = true
		case "resources/unsubscribe":
			result = `{}`
			delete(subscribed, req.Params.URI)
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"big","inputSchema":{"type":"object"}},` +
				`{"name":"ask","inputSchema":{"type":"object"}}]}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)); err != nil {
			return err
		}
	}
}

// The other machine is another process, this test binary again, so that the two share nothing.

const roleVariable = "MCPVISOR_REMOTE_TEST"

func TestMain(m *testing.M) {
	role, dir, _ := strings.Cut(os.Getenv(roleVariable), "=")
	switch role {
	case "manager":
		beManager(dir)
	case "stranger":
		beStranger(dir)
	default:
		os.Exit(m.Run())
	}
}

// beManager serves a manager until its standard input ends. It prints its address, and then a line for each line read. The line "end"
// closes the manager.
func beManager(dir string) {
	m, err := supervisor.Start(context.Background(), supervisor.Config{
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"s": serve}})
	check(err)
	cfg, err := load(dir)
	check(err)
	cfg.MaxMessage = 64 << 10
	cfg.Templates = map[string]remote.Template{
		"s": {Spec: supervisor.Spec{Type: messages.SDK, Name: "s", Era: messages.EraLegacy}},
		"script": {Spec: supervisor.Spec{Command: "no-such-command-here", Args: []string{"--repo", "{repo}"}, Env: map[string]string{"A": "b"}},
			Parameters: map[string]string{"repo": "[a-z/-]+"}},
	}
	reader := append(remote.ReadingCommands(), "CallTool", "AddServer", "HandleRequests")
	cfg.Rights = map[string]remote.Rights{
		"agent":                      remote.Everything(),
		"mcpvisor://test/admin/one":  remote.Everything(),
		"mcpvisor://test/admin/two":  remote.Everything(),
		"mcpvisor://test/agent/*":    {Servers: []string{"own-*"}, Commands: reader[:len(reader)-1], Templates: []string{"s"}},
		"mcpvisor://test/agent/none": {},
	}
	server, err := remote.Serve(m, cfg)
	check(err)
	_, err = m.System().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
		default:
			fmt.Printf("the victim was reached by %T\n", ctx.Message())
		}
	}), "victim")
	check(err)
	fmt.Println(server.PID().Address)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "end" {
			check(m.Close(context.Background()))
		}
		fmt.Println(server.Dropped())
	}
	// Protoactor's Shutdown writes a plain flag that its own watchers of addresses have read, without a lock. The
	// race detector rightly reports that, and it cannot be fixed here, so this step is left out under the race
	// detector.
	if !raceEnabled {
		server.Close()
		server.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check(m.Close(ctx))
}

// beStranger asks the manager at the address in its standard input, with a certificate of another authority.
func beStranger(dir string) {
	cfg, err := load(dir)
	check(err)
	system := actor.NewActorSystem()
	peer, err := remote.Join(system, cfg)
	check(err)
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	_, err = system.Root.RequestFuture(remote.PID(in.Text()), &messages.GetStatus{}, 3*time.Second).Result()
	fmt.Println("answered:", err == nil)
	peer.Close()
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process is another process with its pipes.
type process struct {
	in  *bufio.Writer
	out *bufio.Scanner
}

func (p *process) say(line string) string {
	fmt.Fprintln(p.in, line)
	_ = p.in.Flush()
	return p.hear()
}

func (p *process) hear() string {
	p.out.Scan()
	return p.out.Text()
}

func run(t *testing.T, role string, a *authority) *process {
	t.Helper()
	dir := t.TempDir()
	a.save(t, dir, role)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role+"="+dir)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the %s ended badly: %v", role, err)
		}
	})
	return &process{bufio.NewWriter(stdin), bufio.NewScanner(stdout)}
}

// here is this process's side: one authority and one actor system for all tests.
var here = sync.OnceValues(func() (*authority, *actor.ActorSystem) {
	t := &testing.T{}
	a := newAuthority(t)
	system := actor.NewActorSystem()
	_, err := remote.Join(system, remote.Config{Certificate: a.issue(t, "agent"), CA: a.pool})
	if err != nil {
		panic(err)
	}
	return a, system
})

type site struct {
	manager *process
	pid     *actor.PID
	system  *actor.ActorSystem
}

func startFarSite(t *testing.T) site {
	t.Helper()
	a, system := here()
	p := run(t, "manager", a)
	return site{p, remote.PID(p.hear()), system}
}

func (s site) ask(t *testing.T, msg proto.Message) any {
	t.Helper()
	reply, err := s.system.Root.RequestFuture(s.pid, msg, 20*time.Second).Result()
	if err != nil {
		t.Fatalf("%T: %v", msg, err)
	}
	return reply
}

func (s site) connected(t *testing.T, name string) {
	t.Helper()
	for range 1000 {
		st := s.ask(t, &messages.GetStatus{Names: []string{name}}).(*messages.StatusReply)
		if len(st.GetServers()) == 1 && st.GetServers()[0].GetStatus() == "connected" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s is not connected", name)
}

func TestCommandsOverMutualTLS(t *testing.T) {
	s := startFarSite(t)
	if d := s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}}).(*messages.Done); d.GetFailure() != nil {
		t.Fatal(d)
	}
	s.connected(t, "r")
	r := s.ask(t, &messages.CallTool{CallId: "c1", Tool: "mcp__r__echo", Arguments: []byte(`{"size":3}`)}).(*messages.CallToolReply)
	if r.GetOutcome() != "result" || !strings.Contains(string(r.GetResult()), "xxx") {
		t.Errorf("%v", r)
	}
	if tools := s.ask(t, &messages.ListTools{}).(*messages.ToolsReply); len(tools.GetTools()) != 3 {
		t.Errorf("%v", tools)
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

	// A peer adds a server by the name of a template, and gives nothing else.
	for name, p := range map[string]*messages.ServerSpec{
		"command":  supervisor.Spec{Command: "no-such-command-here"}.ToProto(),
		"url":      supervisor.Spec{URL: "https://127.0.0.1:1/mcp"}.ToProto(),
		"none":     {},
		"unknown":  {Template: "other"},
		"env":      {Template: "script", Parameters: map[string]string{"repo": "a"}, Env: map[string]string{"BASH_ENV": "$(id)"}},
		"args":     {Template: "script", Parameters: map[string]string{"repo": "a"}, Args: []string{"x"}},
		"cwd":      {Template: "s", Cwd: "/"},
		"isolated": {Template: "s", Isolation: &messages.ServerIsolation{}},
		"inherits": {Template: "s", InheritEnv: new(false)},
		"missing":  {Template: "script"},
		"more":     {Template: "s", Parameters: map[string]string{"repo": "a"}},
		"pattern":  {Template: "script", Parameters: map[string]string{"repo": "A"}},
		"dash":     {Template: "script", Parameters: map[string]string{"repo": "-x"}},
	} {
		d := s.ask(t, &messages.AddServer{Name: "x", Spec: p}).(*messages.Done)
		if !errors.Is(d.GetFailure().ToError(), supervisor.ErrDenied) {
			t.Errorf("%s: %v", name, d)
		}
		set := s.ask(t, &messages.SetServers{Servers: map[string]*messages.ServerSpec{"x": p}}).(*messages.SetServersReply)
		if !errors.Is(set.GetFailure().ToError(), supervisor.ErrDenied) {
			t.Errorf("SetServers %s: %v", name, set)
		}
	}
	if st := s.ask(t, &messages.GetStatus{}).(*messages.StatusReply); len(st.GetServers()) != 1 {
		t.Errorf("a refused command changed something: %v", st)
	}
	allowed := &messages.ServerSpec{Template: "script", Parameters: map[string]string{"repo": "a/b"}}
	if d := s.ask(t, &messages.AddServer{Name: "ok", Spec: allowed}).(*messages.Done); d.GetFailure() != nil {
		t.Errorf("a template was refused: %v", d)
	}
}

type collector struct{ got chan any }

func (c *collector) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *messages.WatchEvent, *messages.Done, *messages.CallProgress, *messages.CallToolReply, *messages.ServerRequest,
		*messages.ReadResourceReply:
		c.got <- m
	}
}

func TestWatchFromAnotherMachine(t *testing.T) {
	s := startFarSite(t)
	c := &collector{got: make(chan any, 1000)}
	pid := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
	defer s.system.Root.Stop(pid)
	s.system.Root.RequestWithCustomSender(s.pid, &messages.Watch{}, pid)
	if _, ok := (<-c.got).(*messages.Done); !ok {
		t.Fatal("Watch was not answered first")
	}
	s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}})
	for e := range c.got {
		if e.(*messages.WatchEvent).GetStatus().GetStatus() == "connected" {
			break
		}
	}
	s.system.Root.RequestWithCustomSender(s.pid, &messages.Unwatch{}, pid)
	for e := range c.got {
		if _, ok := e.(*messages.Done); ok {
			break
		}
	}
}

// Peers can name one actor only, and only commands reach it.
func TestPeersCannotReachOtherActors(t *testing.T) {
	s := startFarSite(t)
	victim := actor.NewPID(s.pid.Address, "victim")
	s.system.Root.Send(victim, &messages.GetStatus{})
	s.system.Root.Stop(victim)
	s.system.Root.Stop(s.pid)
	s.ask(t, &messages.GetStatus{}) // everything before it has been read
	if n := s.manager.say("how many were dropped?"); n != "3" {
		t.Errorf("dropped: %s, want 3", n)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	s := startFarSite(t)
	if said := run(t, "stranger", newAuthority(t)).say(s.pid.Address); said != "answered: false" {
		t.Errorf("the stranger says %q", said)
	}
	s.ask(t, &messages.GetStatus{}) // the manager still listens
	m, err := supervisor.Start(t.Context(), supervisor.Config{})
	must(t, err)
	defer func() { _ = m.Close(context.Background()) }()
	if _, err := remote.Serve(m, remote.Config{}); !errors.Is(err, supervisor.ErrInvalid) {
		t.Errorf("Serve without certificates: %v", err)
	}
}

// TestAPeerAnswersWhatServersAsk: a peer reads resources, follows a call's progress, and answers the servers' requests for
// the model, until it ends.
func TestAPeerAnswersWhatServersAsk(t *testing.T) {
	s := startFarSite(t)
	c := &collector{got: make(chan any, 1000)}
	pid := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }))
	defer s.system.Root.Stop(pid)
	send := func(msg proto.Message) { s.system.Root.RequestWithCustomSender(s.pid, msg, pid) }
	for range 2 { // the second time it says the same again, as the same peer
		send(&messages.HandleRequests{Sampling: true})
		if d, ok := (<-c.got).(*messages.Done); !ok || d.GetFailure() != nil {
			t.Fatal(d)
		}
	}
	c2 := &collector{got: make(chan any, 1000)}
	other := s.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c2 }))
	defer s.system.Root.Stop(other)
	taken := func() bool {
		s.system.Root.RequestWithCustomSender(s.pid, &messages.HandleRequests{Sampling: true}, other)
		return (<-c2.got).(*messages.Done).GetFailure() != nil
	}
	if !taken() {
		t.Error("two peers answer the same")
	}
	if d := s.ask(t, &messages.AddServer{Name: "r", Spec: &messages.ServerSpec{Template: "s"}}).(*messages.Done); d.GetFailure() != nil {
		t.Fatal(d)
	}
	s.connected(t, "r")
	send(&messages.ReadResource{RequestId: "7", Server: "r", Uri: "x:///"})
	if r, ok := (<-c.got).(*messages.ReadResourceReply); !ok || r.GetRequestId() != "7" || r.GetOutcome() != "result" {
		t.Errorf("%v", r)
	}
	send(&messages.CallTool{CallId: "a", Server: "r", Tool: "ask", Progress: true})
	for n := 0; ; n++ {
		switch m := (<-c.got).(type) {
		case *messages.CallProgress:
			if m.GetCallId() != "a" || m.GetProgress() != 1 {
				t.Errorf("%v", m)
			}
			continue
		case *messages.ServerRequest:
			if m.GetServer() != "r" || m.GetMethod() != "sampling/createMessage" {
				t.Errorf("%v", m)
			}
			send(&messages.ServerRequestReply{RequestId: m.GetRequestId(), Result: []byte(`{"model":"four"}`)})
			continue
		case *messages.CallToolReply:
			if n != 2 || m.GetOutcome() != "result" || !strings.Contains(string(m.GetResult()), `"xxxx"`) {
				t.Errorf("after %d messages: %v", n, m)
			}
		default:
			t.Errorf("%T", m)
		}
		break
	}
	s.system.Root.Stop(pid)
	for range 1000 { // the kind is free again
		if !taken() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the peer's end was not noticed")
}
