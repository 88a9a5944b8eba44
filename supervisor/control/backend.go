package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// Protocol numbers the conversation on the socket. A different number on the other side is refused.
const Protocol = 3

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
	// Resources, Templates and Prompts are what the named servers offer besides tools, of all connected ones if none is
	// named. The error is about the servers whose part is missing; the others' is there all the same.
	Resources(ctx context.Context, servers ...string) ([]messages.Resource, error)
	Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error)
	Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error)
	// Read reads a resource.
	Read(ctx context.Context, r Read) (ReadResult, error)
	// Fill fills a prompt.
	Fill(ctx context.Context, f Fill) (FillResult, error)
	// Complete asks for proposals for the value of an argument.
	Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error)
	// Ping asks for a sign of life and says how long it took.
	Ping(ctx context.Context, server string) (time.Duration, error)
	// Logs is the newest log messages of a server, oldest first.
	Logs(ctx context.Context, server string) ([]supervisor.LogLine, error)
	// Follow tells of what happens to a server until ctx ends, which is no error, or f returns one.
	Follow(ctx context.Context, server string, f func(messages.Event) error) error
	// Watch calls f once when the server has agreed to tell about a resource, and again whenever it says that it changed,
	// until ctx ends, which is no error, or f returns one. What comes while f runs is told once afterwards.
	Watch(ctx context.Context, server, uri string, f func() error) error
	// History is what happened to a server.
	History(ctx context.Context, server string) (History, error)
	// Permissions are the rules about calls that are in force.
	Permissions(ctx context.Context) (Rules, error)
	// Reload reads the configuration files now and applies what changed. The error says so if they are not followed.
	Reload(ctx context.Context) (supervisor.ReloadResult, error)
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
	// Names are the configured servers, sorted: a command checks the name that was typed without asking for every status.
	Names []string `json:"names"`
	// Audit tells how the record of calls fares; nil if none is kept.
	Audit *audit.Stats `json:"audit,omitempty"`
}

// StatusQuery says whose status is wanted, and when.
type StatusQuery struct {
	// Servers names them; empty means all. An unknown name is an error that wraps messages.ErrUnknownServer.
	Servers []string
	// Wait lets these servers, and no other ones, arrive or fail if they are on their way, for at most so long; 0 answers at
	// once.
	Wait time.Duration
	// Retries waits on for a server whose attempt ran out of time and will be repeated. Without it that one has failed.
	Retries bool
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
	CallHooks
}

// CallHooks is what goes on while an answer is waited for. The zero value wishes nothing.
type CallHooks struct {
	// Meta are members for the request's _meta, a JSON object.
	Meta json.RawMessage
	// Progress, if set, is told how far the request has got, in order, one at a time.
	Progress func(messages.Progress)
	// Ask, if set, answers what the server asks of the person about this request (supervisor.ElicitedBy), if the manager has
	// a Config.Elicit. Without one that function answers. An error says that no person was asked.
	Ask func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error)
	// Permit, if set, answers whether the call may be made, if the rules ask.
	Permit func(ctx context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error)
}

// Read says which resource is to be read: of the named server, or of whoever offers it.
type Read struct {
	Server, URI string
	CallHooks
}

// ReadResult is a resource: who gave it, and the server's result object, byte for byte.
type ReadResult struct {
	Server string
	Raw    json.RawMessage
}

// Contents are the parts of the resource.
func (r ReadResult) Contents() []supervisor.ResourceContent {
	return (&supervisor.ResourceResult{Raw: r.Raw}).Contents()
}

// Fill says which prompt is to be filled: by Qualified name, or by Server and Name.
type Fill struct {
	Qualified, Server, Name string
	Args                    map[string]string
	CallHooks
}

// FillResult is a prompt: whose it is, and the server's result object, byte for byte.
type FillResult struct {
	Server, Name string
	Raw          json.RawMessage
}

// Messages are the messages of the prompt.
func (r FillResult) Messages() []supervisor.PromptMessage {
	return (&supervisor.PromptResult{Raw: r.Raw}).Messages()
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
