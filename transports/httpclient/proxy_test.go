package httpclient_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/certs"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// proxiedVariable has the job of a child. The proxies of the environment are read once per process (net/http), so they are tried
// in this test binary, started again.
const proxiedVariable = "TRANSPORTS_TEST_PROXIED"

func init() {
	if job := os.Getenv(proxiedVariable); job != "" {
		runProxiedJob(job)
		os.Exit(0)
	}
}

// runProxiedJob opens one connection of each kind to each of the addresses in the job and prints what came of it.
func runProxiedJob(arg string) {
	// No name of these tests exists, and the tests do not wait until the network has said so.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	var job proxiedJob
	if err := json.Unmarshal([]byte(arg), &job); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	got := map[string]string{}
	for _, base := range job.URLs {
		for kind, make := range remoteKinds {
			cfg, _, err := httpclient.LoadTLS(messages.TLS{CAFile: job.CAFile})
			if err != nil {
				got[kind+" "+base] = err.Error()
				continue
			}
			got[kind+" "+base] = tryEcho(make(base, httpclient.NewTLS(cfg)))
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(got)
}

type proxiedJob struct {
	URLs   []string
	CAFile string
}

// tryEcho is "ok", or what went wrong.
func tryEcho(tr transports.Transport) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answered := make(chan []byte, 1)
	r := &firstMessage{answered: answered}
	c, err := tr.Dial(ctx, r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close(ctx) }()
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`)
	if _, err := c.Send(ctx, transports.Message{ID: 1, Method: "echo", Body: body}); err != nil {
		return err.Error()
	}
	select {
	case <-answered:
		return "ok"
	case <-ctx.Done():
		return "no answer"
	}
}

type firstMessage struct {
	transporttest.Recorder
	answered chan<- []byte
}

func (f *firstMessage) Message(body []byte) {
	select {
	case f.answered <- body:
	default:
	}
}

// forwardProxy serves every name from two servers of the test, and notes which names it was asked for.
type forwardProxy struct {
	plain, secure string // host:port
	mu            sync.Mutex
	asked         map[string]int
}

func (p *forwardProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.Method+" "+r.Host]++
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		target := &url.URL{Scheme: "http", Host: p.plain}
		(&httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(target) }, FlushInterval: -1,
			ErrorLog: conntest.SilenceErrorLog(&httptest.Server{Config: &http.Server{}}).Config.ErrorLog}).ServeHTTP(w, r)
		return
	}
	there, err := net.Dial("tcp", p.secure)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(there, here)
		_ = there.Close()
	}()
	_, _ = io.Copy(here, there)
}

func TestProxiesOfTheEnvironment(t *testing.T) {
	a := certs.New(t)
	cert, _, _ := a.Issue(t, "server", "secure.example")
	plain := conntest.SilenceErrorLog(httptest.NewUnstartedServer(everyKind(t)))
	plain.Start()
	t.Cleanup(plain.Close)
	secure := conntest.SilenceErrorLog(httptest.NewUnstartedServer(everyKind(t)))
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	secure.StartTLS()
	t.Cleanup(secure.Close)
	p := &forwardProxy{asked: map[string]int{},
		plain: plain.Listener.Addr().String(), secure: secure.Listener.Addr().String()}
	proxy := conntest.SilenceErrorLog(httptest.NewUnstartedServer(p))
	proxy.Start()
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})

	arg, err := json.Marshal(proxiedJob{CAFile: a.CAFile,
		URLs: []string{"http://plain.example", "https://secure.example", "http://direct.example"}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), proxiedVariable+"="+string(arg), "HTTP_PROXY="+proxy.URL, "HTTPS_PROXY="+proxy.URL,
		"NO_PROXY=direct.example", "http_proxy=", "https_proxy=", "no_proxy=")
	out, err := cmd.Output()
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("the child printed %q: %v", out, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3*len(remoteKinds) {
		t.Errorf("%d results: %v", len(got), got)
	}
	for what, outcome := range got {
		if direct := strings.Contains(what, "direct.example"); direct != (outcome != "ok") {
			t.Errorf("%s: %s", what, outcome)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for who, n := range p.asked {
		if strings.Contains(who, "direct.example") || n == 0 {
			t.Errorf("the proxy was asked for %s", who)
		}
	}
	if p.asked["CONNECT secure.example:443"] == 0 || p.asked["POST plain.example"] == 0 {
		t.Errorf("the proxy was asked for %v", p.asked)
	}
}
