package session

import (
	"context"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/headers"
)

// sendsParamHeaders reports whether this conversation repeats arguments in headers: over HTTP in the modern era.
func (s *Session) sendsParamHeaders() bool {
	return s.modern.Load() != nil && s.overHTTP()
}

// overHTTP reports whether each request is an HTTP exchange of its own.
func (s *Session) overHTTP() bool { return s.kind.PairsAnswers() }

// paramHeadersFor returns the headers of a tool as the newest list has them.
func (s *Session) paramHeadersFor(tool string) headers.Params {
	if m := s.toolHeaders.Load(); m != nil {
		return (*m)[tool]
	}
	// Before the first list of this connection the owner offers the tools of an earlier one.
	if before := s.toolList.Load(); before != nil && s.sendsParamHeaders() {
		if i := slices.IndexFunc(before.Tools, func(t messages.Tool) bool { return t.Name == tool }); i >= 0 {
			m, _ := headers.ReadSchema(before.Tools[i].InputSchema)
			return m
		}
	}
	return nil
}

// FindHeaderMismatch returns the name of a header of a call that does not repeat its argument as the input schema of the tool demands; empty
// if all do. header returns the values of a header of the call, decoded; ok is false if one of them stands for none. It is for who serves agents of the modern era over HTTP; of a tool that they must
// leave out, because its annotations break the rules, nothing is expected.
func FindHeaderMismatch(schema, args []byte, header func(name string) (values []string, ok bool)) string {
	params, problem := headers.ReadSchema(schema)
	if problem != "" {
		return ""
	}
	return params.FindMismatch(args, header)
}

// refreshParamHeaders lists the tools again for a call that the server refused because of its headers, and reports
// whether the call has other headers now, so that a retry makes sense. Of many such calls one lists; the others wait
// for relistLock and find the new headers there, or give up with it if the list failed.
//
// 2026-07-28, Client Behavior: "If the server rejects a request with a HeaderMismatch error because required
// Mcp-Param-* headers are missing or do not match the body, the client SHOULD call tools/list to check for changes to
// the tool's inputSchema, then retry the original request with the appropriate headers."
func (s *Session) refreshParamHeaders(ctx context.Context, r *request) bool {
	if !s.sendsParamHeaders() {
		return false
	}
	failed := s.failedRelists.Load()
	if !s.relistLock.Lock(ctx) {
		return false
	}
	defer s.relistLock.Unlock()
	before := r.header
	// Another call may have listed the tools while this one waited for the lock.
	if fits := s.setParamHeaders(r); !fits || !maps.Equal(before, r.header) {
		return fits
	}
	// The list failed while this call waited, and would fail for each of those that wait, one after the other.
	if s.failedRelists.Load() != failed {
		return false
	}
	if _, err := s.ListTools(ctx); err != nil {
		// A caller whose own time has passed says nothing about the list.
		if ctx.Err() == nil {
			s.failedRelists.Add(1)
		}
		return false // the refusal of the call explains more than this error
	}
	s.notifyToolsChanged() // the owner of the old list has had no announcement
	return s.setParamHeaders(r) && !maps.Equal(before, r.header)
}

// setParamHeaders gives a request the headers of the newest list. It reports false if they are too long to be sent.
func (s *Session) setParamHeaders(r *request) bool {
	header, tooLong := s.paramHeadersFor(r.name).Values(r.args)
	if tooLong != nil {
		return false
	}
	r.header = header
	return true
}
