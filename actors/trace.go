package actors

import "context"

// Trace collects what a record of a call or read needs. The goroutine of the call writes it, and the function that made it reads
// it when the call has ended, so it needs no lock.
type Trace struct {
	// Server and Tool are set when the tool is found. Of a prompt, Tool is its name.
	Server, Tool string
	// Epoch is that of the last connection that got the call, Attempts how many did.
	Epoch    uint64
	Attempts int
	// Decision, Rule and Source are the rules' decision, Answer the person's if they asked. Calls.Allow sets them.
	Decision, Rule, Source, Answer string
}

type traceKey struct{}

// traceContext is a context that holds a Trace: one allocation for both, because every recorded call makes one.
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

// WithTrace returns a context with a new trace, which the calls made with it fill in.
func WithTrace(ctx context.Context, server, tool string) (context.Context, *Trace) {
	t := &traceContext{Context: ctx, trace: Trace{Server: server, Tool: tool}}
	return t, &t.trace
}

// TraceOf returns the trace of WithTrace; nil if the context has none.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

// Found notes where the request goes, and what for. It does nothing for a nil Trace.
func (t *Trace) Found(server, tool string) {
	if t != nil {
		t.Server, t.Tool = server, tool
	}
}

// noteConnection notes that a connection gets the call.
func (t *Trace) noteConnection(link *Link) {
	if t != nil {
		t.Epoch = link.Epoch
		t.Attempts++
	}
}
