package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Protocol numbers the conversation on the socket. A different number on the other side is refused.
const Protocol = 1

// Backend answers for a manager, in this process (Local) or in another (Dial). All methods are safe for concurrent use.
// Errors are *messages.Error.
type Backend interface {
	// Hello says who answers.
	Hello(ctx context.Context) (Hello, error)
	// Status is the status of the named servers, of all if none is named, sorted by name.
	Status(ctx context.Context, q StatusQuery) ([]messages.Status, error)
	// Tools is the tools of the named servers, of all if none is named. A lazy server that is named is connected first
	// if its tools are not known.
	Tools(ctx context.Context, servers ...string) ([]Tool, error)
	// Call runs a tool.
	Call(ctx context.Context, c Call) (Result, error)
	// History is what happened to a server.
	History(ctx context.Context, server string) (History, error)
	// Reconnect tears the connection down and dials again. It returns when the attempt has ended, with its reason if it
	// failed.
	Reconnect(ctx context.Context, server string) error
	// Enable returns when the attempt that follows has ended, with its reason if it failed.
	Enable(ctx context.Context, server string) error
	// Disable returns when the server's tools are gone. Its connection is kept unless disconnect is set.
	Disable(ctx context.Context, server string, disconnect bool) error
}

// Hello describes the process that answers.
type Hello struct {
	Protocol int       `json:"protocol"`
	PID      int       `json:"pid"`
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	// Project is the project directory; Origin identifies the configuration that was named on the command line, and is
	// empty if none was: whoever names another one wants other servers.
	Project string `json:"project"`
	Origin  string `json:"origin,omitempty"`
	// Servers is how many servers are configured.
	Servers int `json:"servers"`
}

// StatusQuery says whose status is wanted, and when.
type StatusQuery struct {
	// Servers names them; empty means all. An unknown name is an error that wraps messages.ErrUnknownServer.
	Servers []string
	// Wait lets servers that are on their way arrive, or fail, for at most so long; 0 answers at once.
	Wait time.Duration
}

// Tool is a tool in the catalog.
type Tool struct {
	// Qualified is the name under which models see it, mcp__{server}__{tool}.
	Qualified string `json:"qualifiedName"`
	// State is "live", "cached" (of a lazy server that rests) or "lost" (its server was just disconnected).
	State string `json:"state,omitempty"`
	messages.Tool
}

// Call is one tool call: by Qualified name, or by Server and Tool.
type Call struct {
	Qualified, Server, Tool string
	// Args is a JSON object, or empty for none.
	Args json.RawMessage
}

// Result is a tool's answer.
type Result struct {
	// Raw is the server's result object, byte for byte.
	Raw json.RawMessage
	// IsError says that the tool itself failed.
	IsError bool
}

// Text is what a person reads of the result; neutralise it with messages.Printable.
func (r Result) Text() string { return (&supervisor.Result{Raw: r.Raw, IsError: r.IsError}).Text() }

// History is a server's past.
type History struct {
	Status  messages.Status           `json:"status"`
	Entries []supervisor.HistoryEntry `json:"entries"`
	// Withheld names the variables of the manager's environment that the server was not given, sorted. It is empty for a
	// server that is no child process or inherits everything.
	Withheld []string `json:"withheldEnv,omitempty"`
}
