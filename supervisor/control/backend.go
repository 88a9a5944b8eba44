package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// Protocol is the version of the conversation on the socket. [Dial] refuses a process with a different number by name.
const Protocol = 4

// Backend answers for a manager, in this process ([Local]) or in another ([Dial]). All methods are safe for
// concurrent use. Errors are *messages.Error.
type Backend interface {
	// Hello describes the process that answers.
	Hello(ctx context.Context) (Hello, error)
	// Status returns the status of the named servers, of all if none is named, sorted by name.
	Status(ctx context.Context, q StatusQuery) ([]messages.Status, error)
	// Tools returns the tools of the named servers, of all if none is named. A lazy server that is named is connected
	// first if its tools are not known.
	Tools(ctx context.Context, servers ...string) ([]Tool, error)
	// Call runs a tool.
	Call(ctx context.Context, c Call) (Result, error)
	// Resources, Templates and Prompts return these lists of the named servers, of all connected ones if none is
	// named. The error is about the servers whose part is missing; the parts of the others are returned all the same.
	Resources(ctx context.Context, servers ...string) ([]messages.Resource, error)
	Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error)
	Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error)
	// Read reads a resource.
	Read(ctx context.Context, r Read) (ReadResult, error)
	// Fill fills a prompt.
	Fill(ctx context.Context, f Fill) (FillResult, error)
	// Complete asks for proposals for the value of an argument.
	Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error)
	// Ping asks the server for a sign of life and returns the time that it took.
	Ping(ctx context.Context, server string) (time.Duration, error)
	// Logs returns the newest log messages of a server, oldest first.
	Logs(ctx context.Context, server string) ([]supervisor.LogLine, error)
	// Follow calls f for each event of a server until ctx ends, which is no error, or f returns one.
	Follow(ctx context.Context, server string, f func(messages.Event) error) error
	// Watch calls f once when the server has agreed to announce the updates of a resource, and again for each update,
	// until ctx ends, which is no error, or f returns one. Updates that come while f runs become one call afterwards.
	Watch(ctx context.Context, server, uri string, f func() error) error
	// History returns a server's past.
	History(ctx context.Context, server string) (History, error)
	// Permissions returns the rules about calls that are in force.
	Permissions(ctx context.Context) (access.Rules, error)
	// Reload reads the configuration files now and applies the changes. It is an error if the manager does not follow
	// files.
	Reload(ctx context.Context) (supervisor.ReloadResult, error)
	// Reconnect closes the connection and dials again. It returns when the attempt has ended, with its reason if it
	// failed.
	Reconnect(ctx context.Context, server string) error
	// Enable enables a server. It returns when the attempt that follows has ended, with its reason if it failed.
	Enable(ctx context.Context, server string) error
	// Disable returns when the server's tools are gone. Its connection is kept unless disconnect is set.
	Disable(ctx context.Context, server string, disconnect bool) error
}

// Hello describes the process that answers. A command that names a configuration compares Origin before it uses the process.
type Hello struct {
	PID     int
	Version string
	// Started is the time at which the backend was made, for "up since".
	Started time.Time
	// Project is the project directory. Origin identifies the configuration that was named on the command line, and
	// is empty if none was: a command that names another configuration must not use this process.
	Project, Origin string
	// Names are the configured servers, sorted, so that a command can check a typed name without asking for every
	// status.
	Names []string
	// Audit describes the state of the record of calls; nil if none is kept.
	Audit *audit.Stats
}

// StatusQuery selects the servers of [Backend.Status], and the time to wait for them.
type StatusQuery struct {
	// Servers are their names; empty means all. An unknown name is an error that wraps messages.ErrUnknownServer.
	Servers []string
	// Wait gives these servers, and no other ones, at most so long to connect or to fail if they are on their way; 0
	// answers at once.
	Wait time.Duration
	// Retries also waits for a server whose attempt ran out of time and will be repeated. Without it such a server
	// counts as failed.
	Retries bool
}

// Tool is a tool in the catalog.
type Tool struct {
	// Qualified is the name under which models see it, mcp__{server}__{tool}.
	Qualified string `json:"qualifiedName"`
	// State is "live", "cached" (of a lazy server that is not connected) or "lost" (its server was just
	// disconnected).
	State string `json:"state,omitempty"`
	messages.Tool
}

// Call is one tool call: by Qualified name, or by Server and Tool.
type Call struct {
	Qualified, Server, Tool string
	// Args is a JSON object, or empty for none.
	Args json.RawMessage
	CallHooks
}

// CallHooks are the functions that act while the caller waits for an answer. The zero value has none.
type CallHooks struct {
	// Meta are members for the request's _meta, a JSON object.
	Meta json.RawMessage
	// Progress, if set, gets the progress notifications of the request, in order, one at a time.
	Progress func(messages.Progress)
	// Ask, if set, answers the server's questions to the person about this request (supervisor.ElicitedBy), if the
	// manager has a Config.Elicit. Without Ask that function answers. An error says that no person was asked.
	Ask func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error)
	// Permit, if set, decides whether the call may be made, if the rules ask.
	Permit func(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error)
}

// Read names the resource that [Backend.Read] reads: one of the named server, or, without a name, of the server that
// offers it.
type Read struct {
	Server, URI string
	CallHooks
}

// ReadResult is a resource: the server that gave it, and its result object, byte for byte.
type ReadResult struct {
	Server string
	Raw    json.RawMessage
}

// Contents returns the parts of the resource.
func (r ReadResult) Contents() []supervisor.ResourceContent {
	return (&supervisor.ResourceResult{Raw: r.Raw}).Contents()
}

// Fill names the prompt that [Backend.Fill] fills: by Qualified name, or by Server and Name.
type Fill struct {
	Qualified, Server, Name string
	Args                    map[string]string
	CallHooks
}

// FillResult is a prompt: its server and name, and the server's result object, byte for byte.
type FillResult struct {
	Server, Name string
	Raw          json.RawMessage
}

// Messages returns the messages of the prompt.
func (r FillResult) Messages() []supervisor.PromptMessage {
	return (&supervisor.PromptResult{Raw: r.Raw}).Messages()
}

// Result is a tool's answer. Raw is untrusted content of the server.
type Result struct {
	// Raw is the server's result object, byte for byte.
	Raw json.RawMessage
	// IsError is true if the tool itself failed.
	IsError bool
}

// Text returns the part of the result that is for a person; neutralise it with messages.Printable.
func (r Result) Text() string { return (&supervisor.Result{Raw: r.Raw, IsError: r.IsError}).Text() }

// History is a server's past.
type History struct {
	Status  messages.Status           `json:"status"`
	Entries []supervisor.HistoryEntry `json:"entries"`
	// Withheld names the variables of the manager's environment that the server was not given, sorted. It is empty for a
	// server that is no child process or inherits everything.
	Withheld []string `json:"withheldEnv,omitempty"`
}
