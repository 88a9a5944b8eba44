package control

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// permitToProto returns the form in which the question whether a call may be made travels.
func permitToProto(r supervisor.AskRequest) *messages.PermitRequest {
	return &messages.PermitRequest{Server: r.Server, Tool: r.Tool, Arguments: r.Arguments, Annotations: r.Annotations.ToProto(),
		Trusted: r.Trusted, Why: r.Why, Rule: r.Rule, Waiting: int32(r.Waiting)}
}

// permitFromProto returns the question that permitToProto was given. Calls that join it later are not counted on this side.
func permitFromProto(p *messages.PermitRequest) supervisor.AskRequest {
	return supervisor.AskRequest{Server: p.GetServer(), Tool: p.GetTool(), Arguments: p.GetArguments(),
		Annotations: p.GetAnnotations().ToAnnotations(), Trusted: p.GetTrusted(), Why: p.GetWhy(), Rule: p.GetRule(), Waiting: int(p.GetWaiting())}
}

// permitFailure returns the reason why a permission is not given. Its text and fix reach the one whose call it is.
func permitFailure(err error) *messages.Failure {
	f := &messages.Failure{Text: messages.Line(err.Error(), 300)}
	if e, ok := err.(*messages.Error); ok { //nolint:errorlint // what is wrapped says less
		f.Text, f.Fix = e.Text, e.Fix
	}
	return f
}

// elicitFromProto returns a server's question as the session read it.
func elicitFromProto(p *messages.ServerRequest) messages.ElicitRequest {
	r := session.ReadElicitation(p.GetParams())
	r.Server, r.Unheard = p.GetServer(), int(p.GetUnheard())
	return r
}
