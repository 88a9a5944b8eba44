package supervisor

import (
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/supervisor/output"
)

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
