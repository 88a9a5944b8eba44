package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// ServerSet holds the servers that the clients are measured on. Those over a network run in a process of their own, so that
// their allocations and processor time are not counted as a client's.
type ServerSet struct {
	// plain and tls are the URLs of the servers without and with TLS; authority is the certificate of the latter, in PEM.
	plain, tls string
	dir        string
	authority  []byte
	process    *exec.Cmd
	input      io.Closer
	inProcess  *server.MCPServer
}

// marker is the only argument of the process with the network servers.
const marker = "mcpvisor-bench-servers"

// Main serves the network servers if args ask for it, and exits when its input ends. A program that makes a ServerSet must call
// it first.
func Main(args []string) bool {
	if len(args) != 1 || args[0] != marker {
		return false
	}
	plain, tls := httptest.NewServer(echoOverHTTP{}), httptest.NewTLSServer(echoOverHTTP{events: true})
	plain.Config.ErrorLog, tls.Config.ErrorLog = silentLog, silentLog
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})
	err := json.NewEncoder(os.Stdout).Encode(serverAddresses{plain.URL, tls.URL, block})
	if err == nil {
		// The process ends with the one that started it.
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
	return true
}

// silentLog drops what net/http logs about clients that go away during a handshake.
var silentLog = log.New(io.Discard, "", 0)

// serverAddresses is the first line of the servers' process.
type serverAddresses struct {
	Plain, TLS string
	Authority  []byte
}

// NewServerSet starts the servers. It writes the certificate of the one with TLS into dir.
func NewServerSet(dir string) (*ServerSet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &ServerSet{dir: dir, inProcess: web.Server("bench"), process: exec.Command(self, marker)}
	w.process.Stderr = os.Stderr
	in, err := w.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.input = in
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	var addresses serverAddresses
	if err := json.NewDecoder(out).Decode(&addresses); err != nil {
		w.Close()
		return nil, fmt.Errorf("the servers did not say where they are: %w", err)
	}
	w.plain, w.tls, w.authority = addresses.Plain, addresses.TLS, addresses.Authority
	if err := os.WriteFile(w.caFile(), w.authority, 0o600); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// caFile is the path of the certificate.
func (w *ServerSet) caFile() string { return filepath.Join(w.dir, "ca.pem") }

// Close ends the servers' process.
func (w *ServerSet) Close() {
	_ = w.input.Close()
	// The exit status has no meaning here.
	_ = w.process.Wait()
}

// echoOverHTTP is a streamable HTTP server of the legacy era that answers calls of echo without decoding them: as JSON, or with
// events as a stream of one event.
type echoOverHTTP struct{ events bool }

// ServeHTTP implements http.Handler. A call of echo is answered from the bytes of the request; everything else goes to answerOther.
func (e echoOverHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		return
	// The server has no GET stream.
	default:
		w.Header().Set("Allow", "POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var answer bytes.Buffer
	if !servers.Echo(&answer, body) {
		e.answerOther(w, &answer, body)
		if answer.Len() == 0 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	if !e.events {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer.Bytes())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "event: message\ndata: ")
	_, _ = w.Write(answer.Bytes())
	_, _ = io.WriteString(w, "\n")
	// Servers that may have more to send flush after each event.
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// answerOther answers everything but calls. Notifications get no answer.
func (e echoOverHTTP) answerOther(w http.ResponseWriter, answer *bytes.Buffer, body []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(body, &m) != nil || m.ID == nil {
		return
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "bench")
		fmt.Fprintf(answer, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"echo","version":"1"}}}`+"\n", m.ID)
	case "tools/list":
		fmt.Fprintf(answer, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object",`+
			`"properties":{"text":{"type":"string"}}}}]}}`+"\n", m.ID)
	case "ping":
		fmt.Fprintf(answer, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
	default:
		fmt.Fprintf(answer, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
	}
}

// paddingText returns a text of size bytes.
func paddingText(size int) string { return strings.Repeat("x", size) }

// inProcessFloor hands the bytes of a request to the in-process server and takes those of the answer.
func (w *ServerSet) inProcessFloor(body []byte) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		answer, err := json.Marshal(w.inProcess.HandleMessage(ctx, body))
		if err != nil || len(answer) < len(body)/2 {
			return fmt.Errorf("the server answered %.80q, %w", answer, err)
		}
		return nil
	}
}
