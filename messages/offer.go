package messages

import "encoding/json"

// Resource is something that a server lets be read. It is immutable; its texts are untrusted.
type Resource struct {
	// Server is the server's id, URI the address that it gave the resource.
	Server      string `json:"server"`
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	// Size is in bytes, nil if the server does not tell.
	Size        *int64               `json:"size,omitempty"`
	Icons       []Icon               `json:"icons,omitempty"`
	Annotations *ResourceAnnotations `json:"annotations,omitempty"`
	// Raw is the whole definition as it stood in the list.
	Raw json.RawMessage `json:"-"`
}

// ResourceAnnotations are a server's hints about what to do with a resource or a template. They are untrusted.
type ResourceAnnotations struct {
	// Audience is for whom it is: "user", "assistant" or both; empty if the server does not tell.
	Audience []string `json:"audience,omitempty"`
	// Priority is from 0 (optional) to 1 (needed); nil if the server does not tell.
	Priority *float64 `json:"priority,omitempty"`
	// LastModified is a time in the form of ISO 8601, as the server wrote it; often empty.
	LastModified string `json:"lastModified,omitempty"`
}

// ResourceTemplate is a family of resources whose URIs follow a pattern (RFC 6570). It is immutable.
type ResourceTemplate struct {
	Server      string               `json:"server"`
	URITemplate string               `json:"uriTemplate"`
	Name        string               `json:"name,omitempty"`
	Title       string               `json:"title,omitempty"`
	Description string               `json:"description,omitempty"`
	MIMEType    string               `json:"mimeType,omitempty"`
	Icons       []Icon               `json:"icons,omitempty"`
	Annotations *ResourceAnnotations `json:"annotations,omitempty"`
	Raw         json.RawMessage      `json:"-"`
}

// Prompt is a text with gaps that a server offers to be filled. It is immutable.
type Prompt struct {
	// Server is the server's id, Name the prompt's name there; Qualified is the name under which it is offered,
	// mcp__{server}__{prompt}.
	Server      string           `json:"server"`
	Name        string           `json:"name"`
	Qualified   string           `json:"qualifiedName,omitempty"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Icons       []Icon           `json:"icons,omitempty"`
	Raw         json.RawMessage  `json:"-"`
}

// PromptArgument is one gap of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Icon is a picture that a server gives to one of its things. Only those with an https or data URI are kept:
// 2025-11-25: "Clients MUST reject icon URIs that use unsafe schemes". mcpvisor fetches none; a program that does must send no
// credentials with the request.
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"`
	// Theme is "light", "dark" or empty.
	Theme string `json:"theme,omitempty"`
}

// CompleteRequest asks for proposals for the value of one argument, of a prompt or of a resource template.
type CompleteRequest struct {
	// Prompt is the prompt's name at its server, or URITemplate the template (or a URI); one of the two is set.
	Prompt      string `json:"prompt,omitempty"`
	URITemplate string `json:"uriTemplate,omitempty"`
	// Argument is the name of the argument, Value what has been typed of it.
	Argument string `json:"argument"`
	Value    string `json:"value"`
	// Context are the values that other arguments have already.
	Context map[string]string `json:"context,omitempty"`
}

// Completion holds the values that a server proposes for an argument (completion/complete).
type Completion struct {
	Values []string `json:"values"`
	// Total counts all values that the server has, 0 if it does not say; HasMore means that Values is incomplete.
	Total   int  `json:"total,omitempty"`
	HasMore bool `json:"hasMore,omitempty"`
}

// Progress is a server's report about a request that runs. 2025-11-25: "The progress value MUST increase with each
// notification, even if the total is unknown". That is an obligation of the server, and mcpvisor does not check it.
type Progress struct {
	Progress float64 `json:"progress"`
	// Total is 0 if the server does not know it.
	Total float64 `json:"total,omitempty"`
	// Message is the server's own text: neutralise it before a terminal sees it.
	Message string `json:"message,omitempty"`
}

// LogEntry is one log message of a server.
type LogEntry struct {
	// Level is one of the eight of RFC 5424 in lower case, or whatever the server wrote.
	Level  string          `json:"level"`
	Logger string          `json:"logger,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// LogLevels are the levels of log messages, from the least severe to the most.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
