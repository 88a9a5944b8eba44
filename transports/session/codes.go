package session

// The codes of errors that the session acts on.
const (
	// -32020 to -32022 are the codes of 2026-07-28 by which a server shows that it is a modern one.
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	// Older versions have a code of their own for an unknown resource.
	codeResourceNotFoundOld = -32002
)
