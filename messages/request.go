package messages

import "encoding/json"

// SampleRequest is a server's request for an answer of the model (sampling/createMessage).
type SampleRequest struct {
	Server string `json:"server"`
	// Params are the request's own, as sent: messages, modelPreferences, systemPrompt, maxTokens, tools …
	Params json.RawMessage `json:"params"`
	// Unheard is that of ElicitRequest, of requests for the model.
	Unheard int `json:"unheard,omitempty"`
}

// ElicitRequest is a server's question to the person (elicitation/create).
type ElicitRequest struct {
	// Server names the server that asks. 2025-11-25: "Clients MUST provide UI that makes it clear which server is requesting
	// information".
	Server string `json:"server"`
	// Mode is ElicitForm or ElicitURL.
	Mode string `json:"mode"`
	// Message is the server's own text, untrusted.
	Message string `json:"message"`
	// Schema is the JSON Schema of what a form must hold; nil for a URL.
	Schema json.RawMessage `json:"requestedSchema,omitempty"`
	// URL is the address that the person must open, and ID the id that notifications about it will carry; both are
	// empty for a form. mcpvisor never fetches the URL: show its host, ask, and open it in a browser.
	URL string `json:"url,omitempty"`
	ID  string `json:"elicitationId,omitempty"`
	// Unheard counts the questions of this server that were refused unheard since the previous one, because the server
	// asked too often.
	Unheard int `json:"unheard,omitempty"`
	// Params are the request's own, as sent.
	Params json.RawMessage `json:"params,omitempty"`
}

// The modes of an elicitation.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitResult is the person's answer.
type ElicitResult struct {
	// Action is ElicitAccept, ElicitDecline or ElicitCancel.
	Action string `json:"action"`
	// Content is a JSON object that fits the requested schema; only for an accepted form. It is sent as it is: who shows a
	// form fills in the defaults that its schema has before the person looks at the whole.
	Content json.RawMessage `json:"content,omitempty"`
	// Raw is the whole answer as another client wrote it, a JSON object. If it is set it is sent as it is.
	Raw json.RawMessage `json:"-"`
}

// What a person can do with an elicitation: answer it, refuse it, or leave it.
const (
	ElicitAccept  = "accept"
	ElicitDecline = "decline"
	ElicitCancel  = "cancel"
)

// Root is a place that servers may work in (roots/list).
type Root struct {
	// URI is a file:// URI.
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
	// Raw is the root as another client wrote it, a JSON object. If it is set it is sent as it is.
	Raw json.RawMessage `json:"-"`
}
