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

// redactor removes secrets from decoded JSON.
type redactor struct {
	// redact removes the secrets that are known.
	redact func(string) string
	// whole keeps everything else: Arguments is Full.
	whole bool
}

// redactedText takes the place of a secret. It says that something was there.
const redactedText = "[redacted]"

// redactValue returns a value without secrets. name is the member's, or the one of the list that has it: values are secret by their
// names too. Lists and objects are shortened, unless whole is set.
func (c redactor) redactValue(name string, v any, depth int) any {
	// Deeper values are left out, because nothing could be said about their secrets.
	if depth > maxLevels {
		return redactedText
	}
	// Full arguments lose the known secrets only.
	secret := !c.whole && name != "" && messages.SecretName(name)
	switch v := v.(type) {
	case string:
		return c.redactText(v, secret)
	case json.Number:
		// A number may be a PIN, or a secret that consists of digits.
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
		// A large object is data; its number of members suffices.
		if !c.whole && len(v) > maxElements {
			return fmt.Sprintf("[an object with %d members]", len(v))
		}
		pair := c.credentialPair(v)
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			// Everything below a member with the name of a credential is one.
			under := k
			if secret {
				under = name
			} else if pair != "" && strings.EqualFold(k, "value") {
				under = pair
			}
			// Two keys that are redacted must not become one member.
			// Keys are texts of the model as well.
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

// credentialPair returns the name that an object gives to its member value, as in {"name": "API_KEY", "value": "…"}, if that is the
// name of a credential.
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

// searchedBytes bounds how much of a text is searched for secrets: more than is recorded of it.
const searchedBytes = 4 << 10

// redactText returns a text without secrets, shortened unless whole is set.
func (c redactor) redactText(s string, secret bool) string {
	if secret && s != "" {
		return redactedText
	}
	s = c.redact(s)
	if c.whole {
		return s
	}
	// The length that is shown is that of the whole text.
	length := len(s)
	s = redactLookalikes(cutAt(s, searchedBytes))
	if length > maxValueBytes {
		if short := cutAt(s, maxValueBytes); len(short) < len(s) || length > searchedBytes {
			return strings.Clone(short) + fmt.Sprintf("… (%d bytes)", length)
		}
	}
	return s
}

// cutAt returns at most the first n bytes of a text, without a partial character.
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
	// privateKey matches a key in PEM, up to its end if that is there.
	privateKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]*-----|$)`)
	})
	// credentialPrefix matches what stands before a value: a name with a colon or an equals sign, a flag, or the name of a scheme.
	credentialPrefix = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\w.-]+["'\\]*\s*[:=]+\s*["'\\]*|--?[\w-]+\s+["'\\]*|(?i:\b(?:bearer|basic|digest)\s+)`)
	})
	// authScheme matches the scheme of an Authorization header alone.
	authScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:bearer|basic|digest)\s+$`) })
	// credentialValue matches the value that follows, with its scheme.
	credentialValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(?:bearer|basic|digest|token)\s+)?[^\s"'\\,;&<>)}\]]+`)
	})
	// base64Word matches words that may be base64.
	base64Word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`) })
)

// redactLookalikes replaces what looks like a credential: private keys, values behind the name of a credential, random words, and
// the secrets of URLs.
func redactLookalikes(s string) string {
	// Keys come first, because their lines look like other secrets.
	s = privateKey().ReplaceAllString(s, redactedText)
	var out strings.Builder
	done := 0
	for _, at := range credentialPrefix().FindAllStringIndex(s, -1) {
		if at[0] < done {
			continue // inside of a part that is replaced already
		}
		// The prefix holds the name and its separator; SecretName looks for words in it.
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
	// What remains is searched for random words that no name announces.
	s = base64Word().ReplaceAllStringFunc(out.String(), func(word string) string {
		if looksRandom(word) {
			return redactedText
		}
		return word
	})
	return messages.RedactTokens(s)
}

// looksRandom reports whether a word may be the base64 of a key: it has letters of both cases, digits, and a character that names
// and paths lack, or the length of an AWS secret.
func looksRandom(word string) bool {
	// Names in programs rarely have all three, and hardly ever a + or =.
	var lower, upper, digit bool
	for _, c := range []byte(word) {
		lower, upper, digit = lower || 'a' <= c && c <= 'z', upper || 'A' <= c && c <= 'Z', digit || '0' <= c && c <= '9'
	}
	return lower && upper && digit && (strings.ContainsAny(word, "+=") || len(word) == 40)
}
