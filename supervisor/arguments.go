package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// An agent's arguments are usually a map, which is written here without reflection into a buffer that the next call uses
// again. The session copies them into the message that it sends, so that nothing refers to the buffer once the call has
// ended: calls of 64 KB would otherwise allocate as much again for the arguments as for the message. test/bench/run shows
// the processor time of both ("processor time, text"), test/bench/allocations counts.

// maxKeptArguments bounds the bytes of one buffer that is kept for the next call. Larger ones are left to the garbage
// collector, because a single large call would keep its memory for ever.
const maxKeptArguments = 256 << 10

var argumentBuffers sync.Pool // of *[]byte

// writeArguments writes the arguments of a call into its request. The buffer that it returns must go to releaseArguments when the
// call has ended; nil if there is none, because the arguments are no map, or because something may keep them.
func (m *Manager) writeArguments(ctx context.Context, r *actors.Request, args any) *[]byte {
	if object, ok := args.(map[string]any); ok && !m.sharesArguments(ctx) {
		if buffer := writeMap(object); buffer != nil {
			r.Args, r.Options = *buffer, withWrittenArguments(r.Options)
			return buffer
		}
	}
	// Arguments that cannot be written are recorded in the audit log too, because the model tried a call.
	r.Args, r.Problem = marshalArguments(args)
	if e, ok := errors.AsType[*Error](r.Problem); ok {
		call := m.describeCall(r, m.shared.Catalog.Snapshot())
		e.Server, e.Tool = call.Server, call.Tool
	}
	return nil
}

// writeMap writes a map as JSON into a buffer that releaseArguments takes back; nil for a nil map, and for one with values
// that only encoding/json can write.
func writeMap(object map[string]any) *[]byte {
	if object == nil {
		return nil
	}
	buffer, ok := argumentBuffers.Get().(*[]byte)
	if !ok {
		buffer = new([]byte)
	}
	if *buffer, ok = rawjson.AppendValue((*buffer)[:0], object); !ok {
		releaseArguments(buffer)
		return nil
	}
	return buffer
}

// releaseArguments keeps a buffer for the next call. The caller must not use it afterwards.
func releaseArguments(buffer *[]byte) {
	if cap(*buffer) <= maxKeptArguments {
		argumentBuffers.Put(buffer)
	}
}

// sharesArguments reports whether the arguments of a call reach code that may keep them: the audit log, the
// program's Interceptors, Allow or Ask, or the person whom the caller brought along. Their buffer is then not used again.
func (m *Manager) sharesArguments(ctx context.Context) bool {
	return m.audit != nil || len(m.cfg.Interceptors) > 0 || m.cfg.Allow != nil || m.cfg.Ask != nil || messages.AnswererOf(ctx) != nil
}

// onlyWritten are the options of a call without options whose arguments writeMap wrote. Nothing changes them.
var onlyWritten = &session.Options{ArgumentsWritten: true}

// withWrittenArguments says in the options of a call that its arguments need no check.
func withWrittenArguments(o *session.Options) *session.Options {
	if o == nil {
		return onlyWritten
	}
	o.ArgumentsWritten = true
	return o
}

// marshalArguments returns args as JSON, nil for none. The session checks that they are an object, where it writes the request.
func marshalArguments(args any) (json.RawMessage, error) {
	switch a := args.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return a, nil
	case []byte:
		return a, nil
	case map[string]any:
		if a == nil {
			return nil, nil // no arguments
		}
		// AppendValue writes the usual types without reflection, and refuses all others, which Marshal then writes.
		if raw, ok := rawjson.AppendValue(nil, a); ok {
			return raw, nil
		}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: "the arguments cannot be written as JSON: " + err.Error(), Err: err}
	}
	if string(raw) == "null" {
		return nil, nil // a nil map is no arguments too
	}
	return raw, nil
}
