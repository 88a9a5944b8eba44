package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Call is a tool that may be called, with its arguments.
type Call struct {
	Tool string
	// Args is a JSON object; empty means no arguments.
	Args json.RawMessage
}

// ParseCall reads "TOOL" or "TOOL {json}". It returns an error if the arguments are no JSON object.
func ParseCall(text string) (Call, error) {
	tool, args, _ := strings.Cut(strings.TrimSpace(text), " ")
	args = strings.TrimSpace(args)
	if tool == "" {
		return Call{}, fmt.Errorf("a call is written TOOL or TOOL {json}")
	}
	if args == "" {
		args = "{}"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &object); err != nil || object == nil {
		return Call{}, fmt.Errorf("the arguments of %q are no JSON object", messages.Line(tool, 60))
	}
	return Call{Tool: tool, Args: json.RawMessage(args)}, nil
}

// Options say what to check and how far to go. Only Servers is needed.
type Options struct {
	// Servers are the servers to check, by name. One with Hold or Invalid set is not started, and the report says why.
	Servers map[string]messages.Spec
	// Calls are the tools that may be called, by server.
	Calls map[string][]Call
	// Concurrency is the number of requests or calls that are sent at once. 0 means 8. More finds more, and demands more of the
	// server.
	Concurrency int
	// Starts is the number of warm starts after the first one. 0 means 3.
	Starts int
	// Connect is the time that one start may take. 0 means the spec's connectTimeout, which is 30 s by default.
	Connect time.Duration
	// Answer is the time for an answer that needs no work, such as a ping or an error. 0 means 5 s; a loaded machine needs
	// more.
	Answer time.Duration
	// CallTimeout is the time for one call. 0 means 30 s.
	CallTimeout time.Duration
	// Grace is the time that a process has to end after its input has ended, and again after SIGTERM. 0 means 2 s.
	Grace time.Duration
	// BigMessage is the size of the largest message in bytes; a quarter of it is sent first. 0 means 4 MiB.
	BigMessage int
	// InheritEnv gives processes the whole environment of this one unless their spec says otherwise.
	InheritEnv bool
	// Guard ends the started processes if this process is killed; nil means that they may stay then.
	Guard stdio.Guard
	// Refusal returns why the organisation's policy forbids to start a server, empty if it does not. nil forbids none.
	Refusal func(messages.Spec) string
	// Progress is called before each step; nil reports nothing.
	Progress func(server, what string)
}

// withDefaults replaces zero values by the defaults.
func (o Options) withDefaults() Options {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	set(&o.Answer, 5*time.Second)
	set(&o.CallTimeout, 30*time.Second)
	set(&o.Grace, 2*time.Second)
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	if o.Starts <= 0 {
		o.Starts = 3
	}
	if o.BigMessage <= 0 {
		o.BigMessage = 4 << 20
	}
	if o.Refusal == nil {
		o.Refusal = func(messages.Spec) string { return "" }
	}
	if o.Progress == nil {
		o.Progress = func(string, string) {}
	}
	return o
}
