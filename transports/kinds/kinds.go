// Package kinds makes the transport of a spec: one row for each kind of transport.
//
//	t := kinds.New(&spec, kinds.Options{Server: "files", Client: client})
//	if t == nil { … }     // a kind that this program does not have, or a server that is not in it
//
// # How it fits
//
// The opener of the supervisor and the check of servers (test/chaos/check) call [New], each with its own clients, credentials and
// bounds, so that a check talks to a server as a manager does. What is common to all kinds of one place, such as policies, they decide
// before.
//
// # Not promised
//
// That the transport can connect: what is wrong with a spec shows when it is dialled.
//
// Public for the packages of this module: what it exports may change without notice.
package kinds

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/runner"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/web"
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// Options holds what a transport is made with besides its spec. Each kind takes what it needs of it.
type Options struct {
	// Server is the server's name. Share counts the bytes that the transport holds; nil counts none. Grace is how long a server may
	// take to end.
	Server string
	Share  *budget.Share
	Grace  time.Duration
	// Client and Auth are for servers that are reached by a URL.
	Client *http.Client
	Auth   transports.Authorizer
	// InheritEnv gives a child the whole environment of this process, where its spec does not say otherwise. Guard learns of its
	// process group; StderrTail is how much of its standard error is kept, 0 for the usual.
	InheritEnv bool
	// SearchPath returns the PATH of a child whose spec has none; nil means that of this process.
	SearchPath func() string
	Guard      stdio.Guard
	StderrTail int
	// InProcess holds the servers of this very program.
	InProcess map[string]func(ctx context.Context, peer inprocess.Peer) error
}

// table has the row of each kind. A row returns nil if the program does not have the server.
var table = map[messages.TransportKind]func(*messages.Spec, Options) transports.Transport{
	messages.Stdio: newStdio,
	messages.HTTP:  func(s *messages.Spec, o Options) transports.Transport { return web.NewHTTP(webConfig(s, o)) },
	messages.SSE:   func(s *messages.Spec, o Options) transports.Transport { return web.NewSSE(webConfig(s, o)) },
	messages.ClaudeAIProxy: func(s *messages.Spec, o Options) transports.Transport {
		return web.NewClaudeAI(web.ClaudeAIConfig{Config: webConfig(s, o), ConnectorID: s.ID})
	},
	messages.WebSocket: newWebSocket,
	messages.SDK:       newInProcess,
}

// New makes the transport of a spec by its kind, and opens nothing. It returns nil for a kind without a row, and for a server that is
// not in this program.
func New(s *messages.Spec, o Options) transports.Transport {
	if row := table[s.Kind()]; row != nil {
		return row(s, o)
	}
	return nil
}

// newStdio gives the child its own environment, its directory and, if the spec asks, its isolation; a runner of packages is known by
// its name.
func newStdio(s *messages.Spec, o Options) transports.Transport {
	return stdio.New(stdio.Config{
		Command: s.Command, Args: s.Args, Env: ChildEnv(s, o.InheritEnv, o.SearchPath), Dir: s.Cwd,
		Grace: o.Grace, Fetches: runner.NameOf(s.Command, s.Args) != "",
		MaxMessage: s.MaxMessage, Share: o.Share, StderrTail: o.StderrTail, Guard: o.Guard, Secrets: s.Secrets(),
		Isolation: s.Isolation, Server: o.Server, MayControl: s.MayControl,
	})
}

// ChildEnv returns the environment of a spec's child. The spec's setting overrides inherit, which is the program's; searchPath, if not
// nil, returns the PATH in the place of this process's.
func ChildEnv(s *messages.Spec, inherit bool, searchPath func() string) []string {
	if s.InheritEnv != nil {
		inherit = *s.InheritEnv
	}
	env, _ := stdio.ChildEnv(ParentEnv(searchPath), s.Env, inherit)
	return env
}

// ParentEnv returns the environment of this process, the parent of stdio.ChildEnv, with the PATH that searchPath returns; nil leaves it.
func ParentEnv(searchPath func() string) []string {
	env := os.Environ()
	if searchPath != nil {
		env = append(env, "PATH="+searchPath()) // of two the last one counts
	}
	return env
}

// webConfig returns what the transports over HTTP have in common.
func webConfig(s *messages.Spec, o Options) web.Config {
	return web.Config{
		URL: s.URL, Headers: s.Headers, FallbackSSE: s.FallbackSSE, PlainCredentials: s.AllowPlainHTTP,
		MaxMessage: s.MaxMessage, Share: o.Share, Grace: o.Grace, Auth: o.Auth, Client: o.Client,
	}
}

func newWebSocket(s *messages.Spec, o Options) transports.Transport {
	return websocket.New(websocket.Config{
		URL: s.URL, Headers: s.Headers, Auth: o.Auth, PlainCredentials: s.AllowPlainHTTP,
		MaxMessage: s.MaxMessage, Share: o.Share, Grace: o.Grace, Client: o.Client,
	})
}

// newInProcess runs the server's function in a goroutine of this process; it has no secrets and no process to guard.
func newInProcess(s *messages.Spec, o Options) transports.Transport {
	serve := o.InProcess[InProcessName(o.Server, s)]
	if serve == nil {
		return nil
	}
	t := inprocess.New(serve)
	t.MaxMessage, t.Share = s.MaxMessage, o.Share
	return t
}

// InProcessName returns the key of Options.InProcess for the spec of a server.
func InProcessName(server string, s *messages.Spec) string {
	if s.Name != "" {
		return s.Name
	}
	return server
}
