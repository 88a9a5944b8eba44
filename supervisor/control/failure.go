package control

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A failure is a messages.Error on the socket: all of its fields, and the sentinel of the package that it wraps.
type failure struct {
	// The names of the members are part of the protocol: a change of them needs another Protocol.
	Op        string              `json:"op,omitempty"`
	Outcome   messages.Outcome    `json:"outcome,omitempty"`
	Class     messages.Class      `json:"class,omitempty"`
	Server    string              `json:"server,omitempty"`
	Tool      string              `json:"tool,omitempty"`
	Text      string              `json:"text"`
	Fix       string              `json:"fix,omitempty"`
	Code      int                 `json:"code,omitempty"`
	Data      []byte              `json:"data,omitempty"` // base64: the server's own bytes
	Challenge *messages.Challenge `json:"challenge,omitempty"`
	// RetryAfterMs is in milliseconds; what is below a millisecond is lost.
	RetryAfterMs int64          `json:"retryAfterMs,omitempty"`
	Retry        messages.Retry `json:"retry,omitempty"`
	Task         string         `json:"task,omitempty"`
	// Cause is a key of causes, empty if the error wraps none of them.
	Cause string `json:"cause,omitempty"`
}

// causes are the sentinels that errors wrap, by their names on the socket; the others follow from outcome and class.
var causes = map[string]error{
	"unknown-server": messages.ErrUnknownServer, "unknown-tool": messages.ErrUnknownTool,
	"unknown-resource": messages.ErrUnknownResource, "unknown-prompt": messages.ErrUnknownPrompt,
	"disabled": messages.ErrDisabled, "closed": messages.ErrClosed,
}

// failureOf returns the form of an error in which it travels. A foreign error is reduced to one line of text.
func failureOf(err error) failure {
	var e *messages.Error
	if !errors.As(err, &e) {
		// An error that is not ours may hold anything, so only its class and a line of its text travel.
		e = &messages.Error{Class: messages.ClassOf(err), Text: messages.Line(err.Error(), 400)}
	}
	f := failure{
		Op: e.Op, Outcome: e.Outcome, Class: e.Class, Server: e.Server, Tool: e.Tool, Text: e.Text, Fix: e.Fix,
		Code: e.Code, Data: e.Data, Challenge: e.Challenge, RetryAfterMs: e.RetryAfter.Milliseconds(), Retry: e.Retry, Task: e.Task,
	}
	for name, cause := range causes {
		// At most one cause fits; the wrapped error itself stays on this side.
		if errors.Is(err, cause) {
			f.Cause = name
		}
	}
	return f
}

// toError returns the error that failureOf was given, so that errors.Is and errors.As work as on the other side.
func (f failure) toError() *messages.Error {
	e := &messages.Error{
		Op: f.Op, Outcome: f.Outcome, Class: f.Class, Server: f.Server, Tool: f.Tool, Text: f.Text, Fix: f.Fix,
		Code: f.Code, Challenge: f.Challenge, RetryAfter: time.Duration(f.RetryAfterMs) * time.Millisecond,
		Retry: f.Retry, Task: f.Task, Err: causes[f.Cause],
	}
	// A nil Data must stay nil: callers test for it.
	if len(f.Data) > 0 {
		e.Data = json.RawMessage(f.Data)
	}
	return e
}
