package transports

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// serverErrorText returns the server's own text about its refusal, in a line: the message of an error in JSON, of whatever kind, or plain
// text, also where nothing says that it is text. The text of an HTML page is about HTML.
func serverErrorText(h http.Header, body []byte) string {
	if f, ok := parseRPCError(body); ok {
		return shortSentence(f.Error.Message)
	}
	i := rawjson.SkipSpace(body, 0)
	if i == len(body) {
		return ""
	}
	if rawjson.Valid(body) {
		return shortSentence(errorTextIn(body[i:], 0))
	}
	switch kind := mediaType(h); {
	case kind == "text/plain":
	case kind != "" || body[i] == '<' || !utf8.Valid(body) || strings.ContainsFunc(string(body), isUnprintable):
		return ""
	}
	return shortSentence(string(body))
}

// errorTextMembers are where errors in JSON have their text, the one that says most first: OAuth, problem details (RFC 9457), and
// what frameworks write.
var errorTextMembers = []string{"error_description", "message", "detail", "error", "errors", "reason", "title", "msg"}

// errorTextIn finds the text of an error in JSON. depth bounds the search: an error in an error, in a list.
func errorTextIn(value []byte, depth int) string {
	switch {
	case depth > 3:
	case rawjson.IsText(value):
		text, _ := rawjson.Text(value)
		return text
	case rawjson.IsArray(value):
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

func isUnprintable(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }

func shortSentence(s string) string { return strings.TrimRight(messages.Line(s, 200), ". ") }

// forbiddenFix says what a person can do about a 403, of which the specification says no more than this:
//
// RFC 9110, 15.5.4: "If authentication credentials were provided in the request, the server considers them insufficient to
// grant access." and "a request might be forbidden for reasons unrelated to the credentials".
func forbiddenFix(request *http.Request) string {
	switch {
	case request == nil: // in memory
		return ""
	case carriesCredentials(request):
		return "the credentials that were sent do not suffice: see whether they are the right ones, and have the right that this needs"
	}
	return "no credentials were sent: if it wants some, give them in headers or auth; if it names a host or an address, write that into the url"
}

func carriesCredentials(request *http.Request) bool {
	for name := range request.Header {
		if name == "Cookie" || name == "Authorization" || isSecretName(strings.ReplaceAll(name, "-", "_")) {
			return true
		}
	}
	for name := range request.URL.Query() {
		if isSecretName(strings.ReplaceAll(name, "-", "_")) {
			return true
		}
	}
	return request.URL.User != nil
}
