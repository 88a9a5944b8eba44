package messages

import (
	"encoding/json"
	"time"
)

// Status describes one server at one moment, as the manager publishes it. Its first seven JSON fields are those of
// Claude Code's server status; the others add to them. A Status is immutable: you may keep one, and share it between
// goroutines.
type Status struct {
	Name       string      `json:"name"`
	Status     Phase       `json:"status"`
	ServerInfo *ServerInfo `json:"serverInfo,omitempty"`
	// Error is the last error of a server that is not connected, in one line.
	Error string `json:"error,omitempty"`
	// Config is redacted.
	Config *Spec      `json:"config,omitempty"`
	Scope  Scope      `json:"scope,omitempty"`
	Tools  []ToolInfo `json:"tools,omitempty"`

	// InstanceOf is set for an instance of a server whose spec has share "principal": the server's id. Principal is for whom it is, in
	// one line.
	InstanceOf string `json:"instanceOf,omitempty"`
	Principal  string `json:"principal,omitempty"`
	// Remark says of a server, whatever its status, that its configuration says something else by now which cannot be used.
	Remark string `json:"remark,omitempty"`
	// Reason explains the phase in a few words: "dialing", "timeout, retry at …", "parked, probe at …", "warm".
	Reason    string        `json:"reason,omitempty"`
	Transport TransportKind `json:"transport,omitempty"`
	// ProtocolVersion is the version in use while connected.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	// Era is that of ProtocolVersion.
	Era Era `json:"era,omitempty"`
	// Attempts counts consecutive failures since the last stable period.
	Attempts int `json:"attempts"`
	// Restarts counts how often a connection was opened after the first one, over the life of the manager.
	Restarts int `json:"restarts"`
	// NextAttempt is the time of the next attempt or probe, nil if no timer runs.
	NextAttempt *time.Time `json:"nextAttempt,omitempty"`
	// StderrTail is the last part of what the child wrote to standard error, neutralised.
	StderrTail string `json:"stderrTail,omitempty"`
	// Step, Class, Retry, Epoch and PID are the parts of Reason for programs.
	Step  Step   `json:"step,omitempty"`
	Class Class  `json:"class,omitempty"`
	Retry Retry  `json:"retry,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	PID   int    `json:"pid,omitempty"`
	// Isolation says which parts of Spec.Isolation are in force for the running child; nil without a child, and if the spec asks
	// for none.
	Isolation *Enforced `json:"isolation,omitempty"`
	// InFlight counts the calls and reads that are under way at the server, Queued those that wait for a slot because
	// there may be no more at once (Spec.MaxInFlight).
	InFlight int `json:"inFlight,omitempty"`
	Queued   int `json:"queued,omitempty"`
	// Memory is the number of bytes of the memory for all servers (Config.MemoryBudget) that are held for this one: its
	// lists, logs and large messages. It is 0 below 1 MiB, so that a status does not change with every message.
	Memory int64 `json:"memory,omitempty"`
	// Warm says that a disabled server keeps its connection.
	Warm bool `json:"warm,omitempty"`
	// Quarantined names the tools that the server offers and that are not registered, each with the reason.
	Quarantined []QuarantinedTool `json:"quarantined,omitempty"`
	// ToolsError is why the tools of a connected server could not be listed when they were asked for last; empty if they
	// could. Those that were known before are offered, and the list is asked for again, with growing delays of up to a minute.
	ToolsError string `json:"toolsError,omitempty"`
	// ChangedTools are the tools whose definition is not the one that was approved, offered or held back.
	ChangedTools []ChangedTool `json:"changedTools,omitempty"`
	// Noise counts the lines on standard output that were no JSON-RPC message, and dropped.
	Noise int64 `json:"noise,omitempty"`
	// Challenge says what a needs-auth server demands before it lets us in.
	Challenge *Challenge `json:"challenge,omitempty"`
	// Instructions are the server's own, as sent.
	Instructions string `json:"instructions,omitempty"`
	// Since is the time at which the phase began.
	Since time.Time `json:"since,omitzero"`
}

// ServerInfo holds the name and version that a server gives itself in the handshake. It identifies no server: two may say the same.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Title   string `json:"title,omitempty"`
	// Description, WebsiteURL and Icons are for people who choose between servers.
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
}

// ToolInfo is a tool in a Status.
type ToolInfo struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Annotations *Annotations `json:"annotations,omitempty"`
}

// MarshalJSON writes the annotations as [StatusAnnotations].
func (t ToolInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name        string             `json:"name"`
		Description string             `json:"description,omitempty"`
		Annotations *StatusAnnotations `json:"annotations,omitempty"`
	}{t.Name, t.Description, (*StatusAnnotations)(t.Annotations)})
}

// StatusAnnotations are [Annotations] with the names that they have in Claude Code's status, as every other field of a [Status]. The
// file of pins has the same names.
type StatusAnnotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnly,omitempty"`
	Destructive *bool  `json:"destructive,omitempty"`
	Idempotent  *bool  `json:"idempotent,omitempty"`
	OpenWorld   *bool  `json:"openWorld,omitempty"`
}

// Annotations are the server's own claims about a tool, with the names of the specification. They are hints: they count only
// for a trusted server.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// UnmarshalJSON takes the names without "Hint" as well, which stand in a status and in what earlier versions have written.
func (a *Annotations) UnmarshalJSON(data []byte) error {
	type annotations Annotations
	var now annotations
	if err := json.Unmarshal(data, &now); err != nil {
		return err
	}
	var status StatusAnnotations
	if err := json.Unmarshal(data, &status); err != nil {
		return err
	}
	*a = Annotations(now)
	for _, h := range []struct{ current, older **bool }{
		{&a.ReadOnly, &status.ReadOnly}, {&a.Destructive, &status.Destructive},
		{&a.Idempotent, &status.Idempotent}, {&a.OpenWorld, &status.OpenWorld},
	} {
		if *h.current == nil {
			*h.current = *h.older
		}
	}
	return nil
}

// Tool is one tool of one server. Schemas and Raw are the server's own bytes. A Tool is immutable.
type Tool struct {
	// Server is the server's id, Name the tool's name there.
	Server string `json:"server"`
	Name   string `json:"name"`
	Title  string `json:"title,omitempty"`
	// Description is as the server sent it: neutralise it (Printable) before a terminal sees it.
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// OutputSchema is nil if the server gave none.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *Annotations    `json:"annotations,omitempty"`
	Icons        []Icon          `json:"icons,omitempty"`
	// TaskSupport says whether calls of the tool can or must run as tasks (2025-11-25, execution.taskSupport): "optional",
	// "required", or empty for forbidden.
	TaskSupport string `json:"taskSupport,omitempty"`
	// Raw is the whole definition as it stood in the list.
	Raw json.RawMessage `json:"-"`
}

// QuarantinedTool is a tool that is not offered, and why.
type QuarantinedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	// By says what keeps it: QuarantinedByRule, QuarantinedByPin, or empty if its definition or its name cannot be used.
	By string `json:"by,omitempty"`
}

// ChangedTool is a tool whose definition is not the one that was seen first, or approved.
type ChangedTool struct {
	Name string `json:"name"`
	// Parts names what differs: "description", "input schema".
	Parts []string `json:"changed,omitempty"`
	// Held says that the tool is not offered until a person approves its new definition.
	Held bool `json:"held,omitempty"`
}

// What keeps a tool from being offered, besides itself.
const (
	// QuarantinedByRule: a rule, or a default, denies every call of it.
	QuarantinedByRule = "rule"
	// QuarantinedByPin: its definition is not the one that was approved.
	QuarantinedByPin = "pin"
)

// SetServersResult lists the changes by SetServers. Names are sorted. A server that was replaced, because the way to
// start or dial it changed, stands in Added and in Removed.
type SetServersResult struct {
	Added   []string          `json:"added"`
	Removed []string          `json:"removed"`
	Errors  map[string]string `json:"errors"`
	// Adjusted are the servers whose spec changed in what their connection does not depend on: it goes on.
	Adjusted []string `json:"adjusted,omitempty"`
	// Kept are those of which nothing changed.
	Kept []string `json:"kept,omitempty"`
}
