package actors

import "context"

// Trace is what is written down of a call, or of a read, while it goes on, for whoever keeps a record. The goroutine of the call
// writes it, and whoever made it reads it when the call has ended.
type Trace struct {
	// Server and Tool are known when the tool is found. Of a prompt, Tool is its name.
	Server, Tool string
	// Epoch is that of the last connection that the call was given to, Attempts how often it was.
	Epoch    uint64
	Attempts int
	// Decision, Rule and Source are what the rules said of it, Answer what was answered if they asked. Calls.Allow sets them.
	Decision, Rule, Source, Answer string
}

type traceKey struct{}

// traceContext is a context that holds a Trace: one allocation for both, because every call that is recorded makes one.
type traceContext struct {
	context.Context
	trace Trace
}

func (t *traceContext) Value(key any) any {
	if key == (traceKey{}) {
		return &t.trace
	}
	return t.Context.Value(key)
}

// WithTrace has a call tell the trace what becomes of it.
func WithTrace(ctx context.Context, server, tool string) (context.Context, *Trace) {
	t := &traceContext{Context: ctx, trace: Trace{Server: server, Tool: tool}}
	return t, &t.trace
}

// TraceOf is what WithTrace gave; nil if there is none.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// Found notes where the request goes, and what for. A nil Trace notes nothing.
func (t *Trace) Found(server, tool string) {
	if t != nil {
		t.Server, t.Tool = server, tool
	}
}

// noteConnection notes that the call is given to a connection.
func (t *Trace) noteConnection(link *Link) {
	if t != nil {
		t.Epoch = link.Epoch
		t.Attempts++
	}
}
