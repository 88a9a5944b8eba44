package origin

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
)

// serverErrorText returns the server's own text about its refusal as one line: the message of an error in JSON, of whatever kind,
// or plain text, also where no header says that it is text. It is empty for an HTML page, which describes itself and not the
// error.
func serverErrorText(h http.Header, body []byte) string {
	if f, ok := parseRPCError(body); ok {
		return errs.ShortSentence(f.Error.Message)
	}
	i := rawjson.SkipSpace(body, 0)
	if i == len(body) {
		return ""
	}
	if rawjson.Valid(body) {
		return errs.ShortSentence(errorTextIn(body[i:], 0))
	}
	// What is not JSON may be text: without a type, valid UTF-8 that does not begin like markup counts as text.
	switch kind := MediaType(h); {
	case kind == "text/plain":
	case kind != "" || body[i] == '<' || !utf8.Valid(body) || strings.ContainsFunc(string(body), isUnprintable):
		return ""
	}
	return errs.ShortSentence(string(body))
}

// errorTextMembers names the members in which errors in JSON have their text, the most telling one first: those of OAuth, of
// problem details (RFC 9457), and of web frameworks.
var errorTextMembers = []string{"error_description", "message", "detail", "error", "errors", "reason", "title", "msg"}

// errorTextIn finds the text of an error in JSON. It goes down at most three levels (an error in an error, in a list), because a
// stranger's body may be nested without an end.
func errorTextIn(value []byte, depth int) string {
	switch {
	case depth > 3:
	case rawjson.IsText(value):
		text, _ := rawjson.Text(value)
		return text
	case rawjson.IsArray(value):
		// The first of several errors is the one that the others follow from, most often.
		a := rawjson.ArrayAt(value, 0, 0)
		if a.Next() {
			return errorTextIn(a.Skip(), depth+1)
		}
	case rawjson.IsObject(value):
		for _, name := range errorTextMembers {
			if found := rawjson.Member(value, name); found != nil {
				if text := errorTextIn(found, depth+1); text != "" {
					return text
				}
			}
		}
	}
	return ""
}

// isUnprintable reports whether r is a control character that no plain text has.
func isUnprintable(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }

// forbiddenFix says what a person can do about a 403, of which RFC 9110, 15.5.4 says no more than this: "If authentication
// credentials were provided in the request, the server considers them insufficient to grant access." and "a request might be
// forbidden for reasons unrelated to the credentials".
func forbiddenFix(request *http.Request) string {
	switch {
	case request == nil: // a transport in memory has none
		return ""
	case carriesCredentials(request):
		return "the credentials that were sent do not suffice: see whether they are the right ones, and have the right that this needs"
	}
	return "no credentials were sent: if it wants some, give them in headers or auth; if it names a host or an address, write that into the url"
}

// carriesCredentials reports whether a request had a header or a parameter that holds credentials.
func carriesCredentials(request *http.Request) bool {
	for name := range request.Header {
		if name == "Cookie" || name == "Authorization" || redact.IsSecretName(strings.ReplaceAll(name, "-", "_")) {
			return true
		}
	}
	for name := range request.URL.Query() {
		// Names of parameters are judged like those of variables, in which a hyphen cannot stand.
		if redact.IsSecretName(strings.ReplaceAll(name, "-", "_")) {
			return true
		}
	}
	return request.URL.User != nil
}
