package check

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Call is a tool that may be called, with its arguments.
type Call struct {
	Tool string
	// Args is a JSON object; empty is one without members.
	Args json.RawMessage
}

// ParseCall reads "TOOL" or "TOOL {json}".
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
	// Servers are those to check, by name. One with Hold or Invalid set is not started, and says why.
	Servers map[string]messages.Spec
	// Calls are the tools that may be called, by server.
	Calls map[string][]Call
	// Concurrency is how many requests or calls are sent at once; 8. More finds more, and asks more of the server.
	Concurrency int
	// Starts is how many warm starts follow the first one; 3.
	Starts int
	// Connect is how long one start may take; the spec's connectTimeout if 0, which is 30 s by default.
	Connect time.Duration
	// Answer is how long one answer may take that needs no work, a ping or an error; 5 s. A loaded machine needs more.
	Answer time.Duration
	// CallTimeout is how long one call may take; 30 s.
	CallTimeout time.Duration
	// Grace is how long a process may take to end once its input has ended, and again once it was sent SIGTERM; 2 s.
	Grace time.Duration
	// BigMessage is the size of the largest message that is sent, in bytes; 4 MiB. A quarter of it is sent first.
	BigMessage int
	// InheritEnv gives processes the whole environment unless their spec says otherwise.
	InheritEnv bool
	// Guard ends what was started if this process is killed; nil: nobody does.
	Guard transports.Guard
	// Refusal says why a server may not be started here, empty if it may: the organisation's policy. nil refuses none.
	Refusal func(messages.Spec) string
	// Progress is told what is being looked at; nil: nobody.
	Progress func(server, what string)
}

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
