package origin

import (
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// challengeOf returns the WWW-Authenticate challenge that MCP means: the first Bearer, else the first of any kind, with every
// secret hidden and cut to a length that errors can show. It is nil if there is none.
func (o *Origin) challengeOf(h http.Header, session string) *messages.Challenge {
	found := bearerChallenge(h)
	if found == nil {
		return nil
	}
	// A server may repeat the token in its challenge.
	clean := func(s string, limit int) string {
		return messages.Line(string(o.RedactText([]byte(s), session)), limit)
	}
	// The sentence is for people; the code stands in for it where there is none.
	text := found.params["error_description"]
	if text == "" {
		text = found.params["error"]
	}
	// Scopes and addresses go to the sign-in and keep a length that any real one has; the text is for one line of an error.
	return &messages.Challenge{
		Scheme:           clean(found.scheme, 40),
		Scope:            clean(found.params["scope"], 2000),
		ResourceMetadata: clean(found.params["resource_metadata"], 2000),
		Text:             clean(text, 300),
	}
}

// bearerChallenge returns the challenge that MCP means, as it was sent.
func bearerChallenge(h http.Header) (found *authChallenge) {
	for _, value := range h.Values("Www-Authenticate") {
		for _, c := range parseChallenges(value) {
			if found == nil || !strings.EqualFold(found.scheme, "Bearer") && strings.EqualFold(c.scheme, "Bearer") {
				found = &c
			}
		}
	}
	return found
}

// authChallenge is one challenge of a WWW-Authenticate header.
type authChallenge struct {
	// scheme is as the server wrote it, "Bearer" most often; it is compared without regard to case.
	scheme string
	params map[string]string // names in lower case
}

// parseChallenges reads a WWW-Authenticate value (RFC 9110, 11.6.1): challenges separated by commas, whose parameters are
// separated by commas too. A name before "=" is a parameter, any other name a scheme. At the first byte that it cannot read it
// returns the challenges before it.
func parseChallenges(s string) []authChallenge {
	var out []authChallenge
	for {
		// Empty elements of the list are allowed (RFC 9110, 5.6.1).
		s = strings.TrimLeft(s, " \t,")
		name, rest := cutToken(s)
		if name == "" {
			return out
		}
		// A comma separates challenges as well as parameters, so that only the "=" tells which of the two the name is.
		after := strings.TrimLeft(rest, " \t")
		if len(out) > 0 && strings.HasPrefix(after, "=") {
			value, rest, ok := cutValue(strings.TrimLeft(after[1:], " \t"))
			if !ok {
				return out
			}
			out[len(out)-1].params[strings.ToLower(name)] = value
			s = rest
			continue
		}
		// The name is a scheme. Credentials in one piece (token68) may follow it; no challenge of MCP uses them.
		out = append(out, authChallenge{scheme: name, params: map[string]string{}})
		s = rest
		if len(after) < len(rest) && after != "" {
			if end := token68Length(after); end > 0 {
				s = after[end:]
			}
		}
	}
}

// cutToken cuts an RFC 9110 token off s. The token is empty if s does not begin with one.
func cutToken(s string) (token, rest string) {
	// The excluded characters are the separators of the grammar; everything else that can be printed belongs to a token.
	i := 0
	for i < len(s) && (s[i] > ' ' && s[i] < 0x7f) && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, rune(s[i])) {
		i++
	}
	return s[:i], s[i:]
}

// cutValue cuts a token or a quoted string off s. An unquoted value reaches up to the next comma or space, because servers write
// URLs without quotes. ok is false for a string without its closing quote.
func cutValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ", \t")
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		// A backslash makes the next character a part of the string, whatever it is (RFC 9110, 5.6.4).
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// token68Length returns the length of the token68 that s begins with, if it stands alone up to a comma or the end; else 0.
func token68Length(s string) int {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' ||
		strings.IndexByte("-._~+/", s[i]) >= 0) {
		i++
	}
	for i < len(s) && s[i] == '=' {
		i++
	}
	if rest := strings.TrimLeft(s[i:], " \t"); i == 0 || rest != "" && rest[0] != ',' {
		return 0
	}
	return i
}
