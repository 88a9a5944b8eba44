package httpclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/certs"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/httpclient"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/web"
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// mutualTLSServer serves h over TLS to clients that the authority knows.
func mutualTLSServer(t *testing.T, a *certs.Authority, h http.Handler, names ...string) *httptest.Server {
	t.Helper()
	cert, _, _ := a.Issue(t, "server", names...)
	s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(h))
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool,
		// With 1.3 a client learns late what its certificate lacks: the end may overtake the reason.
		MaxVersion: tls.VersionTLS12,
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func tlsClient(t *testing.T, cfg messages.TLS) *http.Client {
	t.Helper()
	loaded, _, err := httpclient.LoadTLS(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := httpclient.NewTLS(loaded)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// remoteKinds makes each kind of transport behind a URL whose server is one of the handlers below.
var remoteKinds = map[string]func(url string, c *http.Client) transports.Transport{
	"http": func(url string, c *http.Client) transports.Transport {
		return web.NewHTTP(web.Config{URL: url + "/mcp", Client: c})
	},
	"sse": func(url string, c *http.Client) transports.Transport {
		return web.NewSSE(web.Config{URL: url + "/sse", Client: c})
	},
	"websocket": func(url string, c *http.Client) transports.Transport {
		url = strings.Replace(url, "http", "ws", 1) + "/ws"
		return websocket.New(websocket.Config{URL: url, Client: c})
	},
	"claudeai-proxy": func(url string, c *http.Client) transports.Transport {
		return web.NewClaudeAI(web.ClaudeAIConfig{
			Config: web.Config{URL: url + "/mcp", Client: c}, ConnectorID: "x"})
	},
}

// everyKind serves the suite's peers of all kinds behind one handler.
func everyKind(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", conntest.StreamableHandler(conntest.NewWebPeer(t, conntest.StreamableHandler)))
	old := conntest.SSEHandler(conntest.NewWebPeer(t, conntest.SSEHandler))
	mux.Handle("/sse", old)
	mux.Handle("/messages", old)
	sockets := conntest.NewSocketPeer(t)
	mux.Handle("/ws", sockets.Server.Config.Handler)
	return mux
}

// echoOnce opens a connection, calls echo and closes it.
func echoOnce(t *testing.T, tr transports.Transport) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &transporttest.Recorder{}
	c, err := tr.Dial(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Send(ctx, transports.Message{ID: 1, Method: "echo",
		Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}`)}); err != nil {
		return err
	}
	if got := r.Answer(t, time.Minute, 1); string(got) != `{"a":1}` {
		t.Errorf("echo: %s", got)
	}
	return nil
}

func TestOwnAuthorityAndCertificate(t *testing.T) {
	seeds.Shows(t, "001.6.tls")
	a, stranger := certs.New(t), certs.New(t)
	_, certFile, keyFile := a.Issue(t, "client")
	_, strangerCert, strangerKey := stranger.Issue(t, "stranger")
	s := mutualTLSServer(t, a, everyKind(t))
	named := mutualTLSServer(t, a, everyKind(t), "inner.example")
	for kind, make := range remoteKinds {
		t.Run(kind, func(t *testing.T) {
			full := messages.TLS{CAFile: a.CAFile, CertFile: certFile, KeyFile: keyFile}
			if err := echoOnce(t, make(s.URL, tlsClient(t, full))); err != nil {
				t.Errorf("with authority and certificate: %v", err)
			}
			full.ServerName = "inner.example"
			if err := echoOnce(t, make(named.URL, tlsClient(t, full))); err != nil {
				t.Errorf("with the name that the certificate is for: %v", err)
			}
			for name, c := range map[string]struct {
				tls  messages.TLS
				url  string
				text string
			}{
				"without the authority": {messages.TLS{CertFile: certFile, KeyFile: keyFile}, s.URL, "nobody known has signed"},
				"without a certificate": {messages.TLS{CAFile: a.CAFile}, s.URL, "refused our side of TLS"},
				"with a stranger's": {messages.TLS{CAFile: a.CAFile, CertFile: strangerCert, KeyFile: strangerKey}, s.URL,
					"refused our side of TLS"},
				"without the name": {messages.TLS{CAFile: a.CAFile, CertFile: certFile, KeyFile: keyFile}, named.URL,
					"a certificate for another name"},
			} {
				err := echoOnce(t, make(c.url, tlsClient(t, c.tls)))
				var e *transports.Error
				if !errors.As(err, &e) || e.Class != messages.ClassNetwork || !strings.Contains(e.Text, c.text) {
					t.Errorf("%s: %v, want class network and %q", name, err, c.text)
				}
			}
		})
	}
}

func TestLoadTLSNamesTheFileThatCannotBeUsed(t *testing.T) {
	a := certs.New(t)
	_, certFile, keyFile := a.Issue(t, "client")
	_, _, otherKey := a.Issue(t, "other")
	dir := t.TempDir()
	odd := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	empty, text := odd("empty.pem", ""), odd("text.pem", "no certificate")
	broken := odd("broken.pem", strings.Replace(string(key), "M", "N", 3))
	large := odd("large.pem", strings.Repeat("x", 5<<20))
	missing := filepath.Join(dir, "missing.pem")
	for name, c := range map[string]struct {
		tls  messages.TLS
		want []string
	}{
		"missing authority":   {messages.TLS{CAFile: missing}, []string{"tls.caFile", missing}},
		"a folder":            {messages.TLS{CAFile: dir}, []string{"tls.caFile", dir, "no regular file"}},
		"empty authority":     {messages.TLS{CAFile: empty}, []string{empty, "no certificate"}},
		"text as authority":   {messages.TLS{CAFile: text}, []string{text, "no certificate"}},
		"large authority":     {messages.TLS{CAFile: large}, []string{large, "larger than 4 MiB"}},
		"missing certificate": {messages.TLS{CertFile: missing, KeyFile: keyFile}, []string{"tls.certFile", missing}},
		"missing key":         {messages.TLS{CertFile: certFile, KeyFile: missing}, []string{"tls.keyFile", missing}},
		"another's key": {messages.TLS{CertFile: certFile, KeyFile: otherKey},
			[]string{certFile, otherKey, "not match"}},
		"a broken key": {messages.TLS{CertFile: certFile, KeyFile: broken}, []string{certFile, broken}},
		"key alone":    {messages.TLS{KeyFile: keyFile}, []string{"tls.certFile and tls.keyFile"}},
	} {
		_, _, err := httpclient.LoadTLS(c.tls)
		var e *transports.Error
		if !errors.As(err, &e) || e.Class != messages.ClassConfig {
			t.Errorf("%s: %v, want class config", name, err)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(e.Text, word) {
				t.Errorf("%s: %q does not say %q", name, e.Text, word)
			}
		}
		if strings.Contains(e.Error(), string(key[40:80])) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	if runtime.GOOS != "windows" && os.Getuid() != 0 {
		closed := odd("closed.pem", "x")
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		_, _, err := httpclient.LoadTLS(messages.TLS{CAFile: closed})
		if err == nil || !strings.Contains(err.Error(), "permission") {
			t.Errorf("an unreadable file: %v", err)
		}
	}
}

func TestLoadTLSContentTellsARenewedFile(t *testing.T) {
	a := certs.New(t)
	_, certFile, keyFile := a.Issue(t, "client")
	load := func() string {
		_, content, err := httpclient.LoadTLS(messages.TLS{CAFile: a.CAFile, CertFile: certFile, KeyFile: keyFile})
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	before := load()
	if second := load(); second != before {
		t.Error("the same files have two contents")
	}
	_, newCert, newKey := a.Issue(t, "client") // over the same files
	if newCert != certFile || newKey != keyFile || load() == before {
		t.Error("renewed files have the content of the old ones")
	}
}

// One connection, however many calls. TestConnectionsAreReused has the other shapes of answers.
func TestOwnTLSReusesConnections(t *testing.T) {
	a := certs.New(t)
	_, certFile, keyFile := a.Issue(t, "client")
	inner := conntest.NewWebPeer(t, conntest.StreamableHandler).Server.Config.Handler
	var mu sync.Mutex
	remote := map[string]int{}
	s := mutualTLSServer(t, a, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		remote[r.RemoteAddr]++
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	client := tlsClient(t, messages.TLS{CAFile: a.CAFile, CertFile: certFile, KeyFile: keyFile})
	tr := web.NewHTTP(web.Config{URL: s.URL, Client: client})
	c, err := tr.Dial(t.Context(), &transporttest.Recorder{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for i := range int64(50) {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":{}}`, i+1)
		if _, err := c.Send(t.Context(), transports.Message{ID: i + 1, Method: "echo", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(remote) != 1 {
		t.Errorf("50 calls used %d connections, want 1", len(remote))
	}
}
