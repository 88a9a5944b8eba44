package messages

import (
	"encoding/json"
	"time"
)

// TaskState is the state of a task: one of the five words of the specification, exactly as on the wire.
type TaskState string

// The states of a task. The last three are final.
const (
	// TaskWorking: it runs.
	TaskWorking TaskState = "working"
	// TaskInputRequired: it waits for an answer of ours.
	TaskInputRequired TaskState = "input_required"
	// TaskCompleted: there is a result. In the modern era it may be one with isError.
	TaskCompleted TaskState = "completed"
	// TaskFailed: the request failed. In the legacy era that may also be a result with isError.
	TaskFailed TaskState = "failed"
	// TaskCancelled: it was ended before it was done.
	TaskCancelled TaskState = "cancelled"
)

// Known reports whether s is a word of the specification.
func (s TaskState) Known() bool { return s == TaskWorking || s == TaskInputRequired || s.Final() }

// Final reports whether a task in this state changes no more.
func (s TaskState) Final() bool { return s == TaskCompleted || s == TaskFailed || s == TaskCancelled }

// TaskStatus describes a task, as its server tells it: a call that it runs apart from the request that began it, and that may
// outlive the connection. It is immutable; its texts are untrusted.
type TaskStatus struct {
	// Server is the server's id.
	Server string `json:"server,omitempty"`
	// ID is the server's own. Who has it may be able to read the result: a server may use it as its only credential.
	ID    string    `json:"taskId"`
	State TaskState `json:"status"`
	// Message is the server's own text about the state; neutralise it before a terminal sees it.
	Message string `json:"statusMessage,omitempty"`
	// Created and Updated are the server's clock, zero if it gave no time that can be read.
	Created time.Time `json:"createdAt,omitzero"`
	Updated time.Time `json:"lastUpdatedAt,omitzero"`
	// TTL is the time from Created on for which the server keeps the task; 0 for no limit, or if the server gives none.
	TTL Duration `json:"ttl,omitzero"`
	// Poll is the interval at which the server wishes to be asked; 0 if it does not say.
	Poll Duration `json:"pollInterval,omitzero"`
	// Raw is the whole object as sent.
	Raw json.RawMessage `json:"-"`
}
