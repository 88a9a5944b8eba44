package origin

import (
	"mime"
	"net/http"
	"strings"
)

// MediaEventStream and MediaJSON are the media types that an answer may have.
const (
	MediaEventStream = "text/event-stream"
	MediaJSON        = "application/json"
)

// MediaType returns the type of a response's body, in lower case and without parameters; empty if the response names none.
func MediaType(h http.Header) string {
	full := h.Get("Content-Type")
	switch kind, _, _ := strings.Cut(full, ";"); kind {
	// Nearly every server writes them like this, and mime.ParseMediaType allocates.
	case MediaEventStream, MediaJSON:
		return kind
	}
	kind, _, _ := mime.ParseMediaType(full)
	return kind
}
