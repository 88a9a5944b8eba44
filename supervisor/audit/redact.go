package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// redactor takes secrets out of decoded JSON.
type redactor struct {
	redact func(string) string
	// whole keeps everything but the secrets that are known.
	whole bool
}

const redactedText = "[redacted]"

func (c redactor) redactValue(name string, v any, depth int) any {
	if depth > maxLevels {
		return redactedText
	}
	secret := !c.whole && name != "" && messages.SecretName(name)
	switch v := v.(type) {
	case string:
		return c.redactText(v, secret)
	case json.Number:
		if secret || c.redact(v.String()) != v.String() {
			return redactedText
		}
	case []any:
		out := make([]any, 0, min(len(v), maxElements+1))
		for i, e := range v {
			if !c.whole && i == maxElements {
				out = append(out, fmt.Sprintf("… %d more", len(v)-i))
				break
			}
			out = append(out, c.redactValue(name, e, depth+1))
		}
		return out
	case map[string]any:
		if !c.whole && len(v) > maxElements {
			return fmt.Sprintf("[an object with %d members]", len(v))
		}
		pair := c.credentialPair(v)
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			under := k
			if secret { // whatever stands below a name that sounds like a credential
				under = name
			} else if pair != "" && strings.EqualFold(k, "value") {
				under = pair
			}
			shown := c.redactText(k, false)
			for n := 2; out[shown] != nil; n++ {
				shown = fmt.Sprintf("%s %d", redactedText, n)
			}
			out[shown] = c.redactValue(under, v[k], depth+1)
		}
		return out
	}
	return v
}

// credentialPair is the name that an object gives to its member value, as in {"name": "API_KEY", "value": "…"}, if that sounds like a
// credential.
func (c redactor) credentialPair(object map[string]any) string {
	for k, v := range object {
		switch strings.ToLower(k) {
		case "name", "key", "header", "field", "variable":
			if s, ok := v.(string); ok && !c.whole && messages.SecretName(s) {
				return s
			}
		}
	}
	return ""
}

// searchedBytes is how much of a text is looked at for what may be a secret: more than is shown of it.
const searchedBytes = 4 << 10

func (c redactor) redactText(s string, secret bool) string {
	if secret && s != "" {
		return redactedText
	}
	s = c.redact(s)
	if c.whole {
		return s
	}
	length := len(s)
	s = redactLookalikes(cutAt(s, searchedBytes))
	if length > maxValueBytes {
		if short := cutAt(s, maxValueBytes); len(short) < len(s) || length > searchedBytes {
			return strings.Clone(short) + fmt.Sprintf("… (%d bytes)", length)
		}
	}
	return s
}

// cutAt is the first so many bytes of a text, or a little less, so that no character is cut.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

var (
	// privateKey is a key in PEM, up to its end if that is there.
	privateKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]*-----|$)`)
	})
	// credentialPrefix is what a value stands behind: a name with a colon or an equals sign, a flag, or the name of a scheme.
	credentialPrefix = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\w.-]+["'\\]*\s*[:=]+\s*["'\\]*|--?[\w-]+\s+["'\\]*|(?i:\b(?:bearer|basic|digest)\s+)`)
	})
	authScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:bearer|basic|digest)\s+$`) })
	// credentialValue is what follows, with the scheme of an Authorization header.
	credentialValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(?:bearer|basic|digest|token)\s+)?[^\s"'\\,;&<>)}\]]+`)
	})
	// base64Word are the words that base64 may be.
	base64Word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`) })
)

// redactLookalikes hides in a text what has the looks of a credential: private keys, what follows the name of one, words that are
// random, and the secrets of URLs.
func redactLookalikes(s string) string {
	s = privateKey().ReplaceAllString(s, redactedText)
	var out strings.Builder
	done := 0
	for _, at := range credentialPrefix().FindAllStringIndex(s, -1) {
		if at[0] < done {
			continue // a part of what is hidden
		}
		name := s[at[0]:at[1]]
		if !messages.SecretName(name) && !authScheme().MatchString(name) {
			continue
		}
		if value := credentialValue().FindStringIndex(s[at[1]:]); value != nil {
			out.WriteString(s[done:at[1]])
			out.WriteString(redactedText)
			done = at[1] + value[1]
		}
	}
	out.WriteString(s[done:])
	s = base64Word().ReplaceAllStringFunc(out.String(), func(word string) string {
		if looksRandom(word) {
			return redactedText
		}
		return word
	})
	return messages.RedactTokens(s)
}

// looksRandom reports whether a word may be the base64 of a key: letters of both sorts, digits, and a sign that names and paths
// have not, or the length of a well-known one.
func looksRandom(word string) bool {
	var lower, upper, digit bool
	for _, c := range []byte(word) {
		lower, upper, digit = lower || 'a' <= c && c <= 'z', upper || 'A' <= c && c <= 'Z', digit || '0' <= c && c <= '9'
	}
	return lower && upper && digit && (strings.ContainsAny(word, "+=") || len(word) == 40)
}
