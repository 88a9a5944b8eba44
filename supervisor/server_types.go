package supervisor

import "github.com/mcpvisor/mcpvisor/messages"

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
