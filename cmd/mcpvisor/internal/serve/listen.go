package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// endpoint is the address at which agents connect over HTTP, and what they must bring.
type endpoint struct {
	listener net.Listener
	// socket says that the listener is a unix socket, on which the process of the agent is looked at.
	socket      bool
	certificate *certificate
	// tokens are those of the configuration or of this run; nil lets everybody in as principal.
	tokens    *tokenReader
	principal serve.Principal
}

// openEndpoint takes the address and reads what it needs.
func openEndpoint(cmd *cobra.Command, o *cli.Options, f flags, g *config.Gateway) (*endpoint, error) {
	address := f.listen
	if address == "" {
		address = g.Listen
	}
	if address == "" {
		return nil, exit.UsageError(cmd, "serve needs --listen ADDRESS, or --stdio")
	}
	if text, fix := config.CheckListen(address, g.CertFile != "", len(g.Tokens) > 0); text != "" {
		return nil, exit.UsageError(cmd, "--listen: %s; %s", text, fix)
	}
	if f.noToken && len(g.Tokens) > 0 {
		return nil, exit.UsageError(cmd, "--no-token would let everybody past the tokens of %s", messages.Line(g.Source, 0))
	}
	e := &endpoint{principal: serve.Principal{View: f.view}}
	_, path, _ := config.SplitListen(address)
	e.socket = path != ""
	var err error
	if e.certificate, err = readCertificate(g, o.WarnFailure); err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	own := ""
	switch {
	case f.noToken:
		o.PrintRemark("warning: without a token every program of this machine can use these servers")
	case len(g.Tokens) == 0 && !e.socket:
		own = rand.Text()
	}
	if own != "" || len(g.Tokens) > 0 {
		if e.tokens, err = newTokenReader(cmd.Context(), g, own, e.principal, o.WarnFailure); err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
	}
	if e.listener, err = takeAddress(cmd.Context(), address, path); err != nil {
		return nil, err
	}
	return e, nil
}

// takeAddress takes the address.
func takeAddress(ctx context.Context, address, socket string) (net.Listener, error) {
	if socket != "" {
		l, err := control.ListenAgents(socket)
		if err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
		return l, nil
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &messages.Error{Op: "serve", Class: messages.ClassConfig, Text: "the address " + address + " cannot be taken: " + err.Error(),
			Fix: "end the program that has it, or choose another port", Err: err}
	}
	return l, nil
}

func (e *endpoint) closeListener() { _ = e.listener.Close() } // it may be closed already

// agentURL is the address for agents. One that stands for all addresses is none, and the certificate knows a name.
func (e *endpoint) agentURL() string {
	address := e.listener.Addr().String()
	switch {
	case e.socket:
		return "unix:" + address
	case e.certificate == nil:
		return "http://" + address + "/mcp"
	}
	if host, port, err := net.SplitHostPort(address); err == nil && !config.IsLoopback(host) {
		if name := e.certificate.firstName(); name != "" {
			address = net.JoinHostPort(name, port)
		}
	}
	return "https://" + address + "/mcp"
}

// serveHTTP serves until ctx ends, and then lets requests in flight finish for a while.
func (e *endpoint) serveHTTP(ctx context.Context, o *cli.Options, asJSON bool, g *gateway.Gateway) error {
	options := serve.Options{Service: g, AnyHost: e.socket, MaxConnections: maxConnections()}
	if e.certificate != nil {
		options.ExpectHost = e.certificate.isFor
	}
	options.Authenticate = func(*http.Request) (serve.Principal, error) { return e.principal, nil }
	token := ""
	if e.tokens != nil {
		options.Authenticate, token = e.tokens.known.Authenticate, e.tokens.own
		following, stop := context.WithCancel(ctx)
		followed := e.followTokens(following)
		defer func() {
			stop()
			<-followed
		}()
	}
	h := serve.NewHandler(options)
	server := h.Server()
	server.ErrorLog = log.New(io.Discard, "", 0) // an agent learns its own mistakes from the answer
	listener := e.listener
	if e.socket {
		counted := server.ConnContext
		server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
			return control.WithPeer(counted(ctx, conn), conn)
		}
		server.Handler = onlyOwnAgents(server.Handler)
	}
	if e.certificate != nil {
		listener = tls.NewListener(listener, e.certificate.tlsConfig())
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := printAddress(o, asJSON, e.agentURL(), token); err != nil {
		_ = server.Close()
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	within, cancel := context.WithTimeout(context.Background(), closeTime/3)
	defer cancel()
	if cut := h.Close(within); cut != nil {
		o.PrintRemark("%s", cut)
	}
	last, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = server.Shutdown(last) // it waits for answers that are being written, and for connections that are silent
	_ = server.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// followTokens reads tokens anew as they change, and at SIGHUP. A terminal that was closed sends the same signal, and ends the command.
func (e *endpoint) followTokens(ctx context.Context) (ended chan struct{}) {
	signalled := make(chan struct{}, 1) // capacity 1: a signal that comes while tokens are read causes one more reading
	release := func() {}
	if e.tokens.own == "" {
		before := hasTerminal()
		release = exit.CatchHangups(ctx, func() bool {
			if before && !hasTerminal() {
				return false
			}
			select {
			case signalled <- struct{}{}:
			default:
			}
			return true
		})
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		defer release()
		defer func() { _ = recover() }() // a defect leaves the tokens as they are
		e.tokens.followFiles(ctx, signalled)
	}()
	return ended
}

// hasTerminal reports whether the process has a terminal that it belongs to.
func hasTerminal() bool {
	if runtime.GOOS == "windows" {
		return false
	}
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// onlyOwnAgents refuses the servers' own processes on a unix socket: one server must not call the others through it.
func onlyOwnAgents(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := control.CheckAgent(r.Context()); err != nil {
			http.Error(w, messages.Line(err.Error(), 500), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// printAddress prints where agents find the servers, as the first line of standard output.
func printAddress(o *cli.Options, asJSON bool, url, token string) error {
	if asJSON {
		return terminal.PrintJSONLine(o.Out, struct {
			URL   string `json:"url"`
			Token string `json:"token,omitempty"`
		}{url, token})
	}
	text := url + "\n"
	if token != "" {
		text += "Authorization: Bearer " + token + "\n"
	}
	_, err := fmt.Fprint(o.Out, text)
	return err
}
