package transports

import (
	"mime"
	"net/http"
	"strings"
)

// mediaEventStream and mediaJSON are the media types that an answer may have.
const (
	mediaEventStream = "text/event-stream"
	mediaJSON        = "application/json"
)

// mediaType returns the type of a response's body, in lower case and without parameters; empty if the response names none.
func mediaType(h http.Header) string {
	full := h.Get("Content-Type")
	switch kind, _, _ := strings.Cut(full, ";"); kind {
	// Nearly every server writes them like this, and mime.ParseMediaType allocates.
	case mediaEventStream, mediaJSON:
		return kind
	}
	kind, _, _ := mime.ParseMediaType(full)
	return kind
}
