package jsonrpc

// The codes of errors that the session acts on.
const (
	// -32020 to -32022 are the codes of 2026-07-28 by which a server shows that it is a modern one.
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	// Older versions have a code of their own for an unknown resource.
	CodeResourceNotFoundOld = -32002
)
