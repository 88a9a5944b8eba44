package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/test/servers"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
)

// ServerSet holds the servers that the clients are measured on. Those over a network run in a process of their own, so that
// their allocations and processor time are not counted as a client's.
type ServerSet struct {
	*servers.Child
	// plain and tls are the URLs of the servers without and with TLS; authority is the certificate of the latter, in PEM.
	plain, tls string
	dir        string
	authority  []byte
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
	plain, tls := httptest.NewServer(fixtures.Answers(answerEcho)), httptest.NewTLSServer(fixtures.EventAnswers(answerEcho))
	plain.Config.ErrorLog, tls.Config.ErrorLog = silentLog, silentLog
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})
	line, err := json.Marshal(serverAddresses{plain.URL, tls.URL, block})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	servers.ServeChild(string(line))
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
	c, err := servers.StartChild(marker)
	if err != nil {
		return nil, err
	}
	w := &ServerSet{dir: dir, inProcess: fixtures.Server("bench"), Child: c}
	var addresses serverAddresses
	if err := json.Unmarshal([]byte(c.Line), &addresses); err != nil {
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

// other answers everything but calls.
var other = &servers.Fixed{
	Name: "echo", Tools: `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`,
}

// answerEcho answers calls of echo from the bytes of the request, without decoding them.
func answerEcho(msg []byte) []byte {
	var answer bytes.Buffer
	if servers.Echo(&answer, msg) {
		return bytes.TrimSuffix(answer.Bytes(), []byte{'\n'})
	}
	return other.Answer(msg)
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
