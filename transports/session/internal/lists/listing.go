package lists

import "github.com/mcpvisor/mcpvisor/messages"

// Listing is one list of a server: resources, resource templates or prompts. Its receivers share it and must not
// change it.
type Listing[T any] struct {
	// Items are in the server's order, without a Server; no URI or name stands twice.
	Items []T
	// Quarantined are the entries that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Public is true if the server lets the list be shared between users (cacheScope "public" on every page). A
	// session is one authorization context, so within it every list may be cached; a program that gives a list to
	// other users must look here.
	Public bool
}
