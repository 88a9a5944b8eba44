package supervisor

import "github.com/mcpvisor/mcpvisor/messages"

// What servers ask of the program, and what it answers.
type (
	// ElicitRequest is a server's question to the person, ElicitResult the answer.
	ElicitRequest = messages.ElicitRequest
	ElicitResult  = messages.ElicitResult
	// SampleRequest is a server's request for an answer of the model.
	SampleRequest = messages.SampleRequest
	// Root is a place that servers may work in.
	Root = messages.Root
)
