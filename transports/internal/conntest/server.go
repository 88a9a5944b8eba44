package conntest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/web"
)

// StartTCPServer is a server on bare TCP: each connection is given to handler and closed after it.
func StartTCPServer(t *testing.T, handler func(net.Conn)) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				handler(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// ReadHTTPRequest reads one request with its body from a bare connection.
func ReadHTTPRequest(conn net.Conn) bool {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return err == nil
}

// AwaitClose returns when the other side has closed the connection.
func AwaitClose(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// SilenceErrorLog keeps a server's complaints about connections that a test broke out of the output.
func SilenceErrorLog(s *httptest.Server) *httptest.Server {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

// OwnClient is a client whose idle connections end with the test.
func OwnClient(t *testing.T) *http.Client {
	// A connection whose dial outlives its request becomes idle later: it goes by itself.
	tr := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	s := SilenceErrorLog(httptest.NewUnstartedServer(handler))
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ConfigWithSecrets reaches url with credentials in every place that can hold one.
func ConfigWithSecrets(t *testing.T, url string) web.Config {
	if !strings.Contains(url, "?") {
		url += "/mcp?key=" + Canary
	}
	return web.Config{
		URL:     strings.Replace(url, "://", "://user:"+Canary+"@", 1),
		Headers: map[string]string{"Authorization": "Bearer " + Canary, "X-Api-Key": Canary},
		Client:  OwnClient(t),
	}
}

// Request is a request as a server reads it.
type Request struct {
	ID     int64
	Method string
}

// ReadRequest reads the JSON-RPC message in a request.
func ReadRequest(r *http.Request) (m Request) {
	_ = json.NewDecoder(r.Body).Decode(&m)
	return m
}

// Result returns the response to m with that result.
func Result(m Request, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, value)
}

// Reply answers m with that result.
func Reply(w http.ResponseWriter, m Request, value string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, Result(m, value))
}

// InitializeResult is the answer of WithHandshake to initialize.
const InitializeResult = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`

// WithHandshake answers the handshake and gives everything else to next.
func WithHandshake(session string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			var m Request
			_ = json.Unmarshal(body, &m)
			switch m.Method {
			case "initialize":
				if session != "" {
					w.Header().Set("Mcp-Session-Id", session)
				}
				Reply(w, m, InitializeResult)
				return
			case "notifications/initialized":
				w.WriteHeader(http.StatusAccepted)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		next(w, r)
	}
}
