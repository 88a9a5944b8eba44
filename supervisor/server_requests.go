package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/output"
)

// The requests that servers send to the program, and the program's answers: see Config.Elicit, Config.Sample and Config.Roots.
type (
	// ElicitRequest is a server's question to the person, ElicitResult the answer.
	ElicitRequest = messages.ElicitRequest
	ElicitResult  = messages.ElicitResult
	// SampleRequest is a server's request for an answer of the model.
	SampleRequest = messages.SampleRequest
	// Root is a directory, as a URI, in which servers may work.
	Root = messages.Root
)

// ElicitedBy makes elicit answer the questions of servers about the requests that are made with the result, in the place of
// Config.Elicit: for a program whose callers have a person each. A question reaches the caller whose request it belongs to, and
// no other. Servers of the modern era say which request that is. Those of the legacy era do so over HTTP, if they ask on the
// stream of the request, and for tasks; otherwise the question counts as a caller's only if that caller made every request that
// the server has not answered yet, and else Config.Elicit answers it.
//
// Each call of ElicitedBy makes another caller. A nil elicit says that this caller cannot be asked: Config.Elicit answers.
// The ability is announced to servers only if Config.Elicit is set.
func ElicitedBy(ctx context.Context, elicit func(context.Context, ElicitRequest) (ElicitResult, error)) context.Context {
	return messages.WithAnswerer(ctx, &messages.Answerer{Elicit: elicit})
}

// FillDefaults returns the content of a form, with the server's proposal for each field that the content leaves out (nil content
// leaves out all). The manager itself adds nothing to an answer: a [Config.Elicit] that shows a form calls FillDefaults before
// the person looks at the whole, so that the person sees what is sent; an Elicit without a person decides whether
// the server's own proposals are an answer.
//
// 2025-11-25, Elicitation: "Clients that support defaults SHOULD pre-populate form fields with these values".
//
// The error says that the schema of the form can be read in two ways (a name that occurs twice, or twice but for case), or
// that the content is no object.
func FillDefaults(r ElicitRequest, content json.RawMessage) (json.RawMessage, error) {
	return output.FillDefaults(r.Schema, content)
}

// RootsChanged notifies every connected server of the legacy era that Config.Roots returns another list than before. Servers of
// the modern era ask anew with each call.
func (m *Manager) RootsChanged() {
	for _, name := range m.Servers() {
		if cell := m.shared.CellOf(name); cell != nil {
			if s := cell.View().Session; s != nil {
				s.RootsChanged()
			}
		}
	}
}
