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

// cleaned takes secrets out of decoded JSON.
type cleaned struct {
	hide func(string) string
	// whole keeps everything but the secrets that are known.
	whole bool
}

const hidden = "[redacted]"

func (c cleaned) value(name string, v any, depth int) any {
	if depth > deepest {
		return hidden
	}
	secret := !c.whole && name != "" && messages.SecretName(name)
	switch v := v.(type) {
	case string:
		return c.text(v, secret)
	case json.Number:
		if secret || c.hide(v.String()) != v.String() {
			return hidden
		}
	case []any:
		out := make([]any, 0, min(len(v), mostValues+1))
		for i, e := range v {
			if !c.whole && i == mostValues {
				out = append(out, fmt.Sprintf("… %d more", len(v)-i))
				break
			}
			out = append(out, c.value(name, e, depth+1))
		}
		return out
	case map[string]any:
		if !c.whole && len(v) > mostValues {
			return fmt.Sprintf("[an object with %d members]", len(v))
		}
		pair := c.pair(v)
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			under := k
			if secret { // whatever stands below a name that sounds like a credential
				under = name
			} else if pair != "" && strings.EqualFold(k, "value") {
				under = pair
			}
			shown := c.text(k, false)
			for n := 2; out[shown] != nil; n++ {
				shown = fmt.Sprintf("%s %d", hidden, n)
			}
			out[shown] = c.value(under, v[k], depth+1)
		}
		return out
	}
	return v
}

// pair is the name that an object gives to its member value, as in {"name": "API_KEY", "value": "…"}, if that sounds like a
// credential.
func (c cleaned) pair(object map[string]any) string {
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

// searched is how much of a text is looked at for what may be a secret: more than is shown of it.
const searched = 4 << 10

func (c cleaned) text(s string, secret bool) string {
	if secret && s != "" {
		return hidden
	}
	s = c.hide(s)
	if c.whole {
		return s
	}
	length := len(s)
	s = hideLooks(cutAt(s, searched))
	if length > longestValue {
		if short := cutAt(s, longestValue); len(short) < len(s) || length > searched {
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
	// announced is what a value stands behind: a name with a colon or an equals sign, a flag, or the name of a scheme.
	announced = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\w.-]+["'\\]*\s*[:=]+\s*["'\\]*|--?[\w-]+\s+["'\\]*|(?i:\b(?:bearer|basic|digest)\s+)`)
	})
	scheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:bearer|basic|digest)\s+$`) })
	// announcedValue is what follows, with the scheme of an Authorization header.
	announcedValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:(?:bearer|basic|digest|token)\s+)?[^\s"'\\,;&<>)}\]]+`)
	})
	// dense are the words that base64 may be.
	dense = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[A-Za-z0-9+/_-]{20,}={0,2}`) })
)

// hideLooks hides in a text what has the looks of a credential: private keys, what follows the name of one, words that are
// random, and the secrets of URLs.
func hideLooks(s string) string {
	s = privateKey().ReplaceAllString(s, hidden)
	var out strings.Builder
	done := 0
	for _, at := range announced().FindAllStringIndex(s, -1) {
		if at[0] < done {
			continue // a part of what is hidden
		}
		name := s[at[0]:at[1]]
		if !messages.SecretName(name) && !scheme().MatchString(name) {
			continue
		}
		if value := announcedValue().FindStringIndex(s[at[1]:]); value != nil {
			out.WriteString(s[done:at[1]])
			out.WriteString(hidden)
			done = at[1] + value[1]
		}
	}
	out.WriteString(s[done:])
	s = dense().ReplaceAllStringFunc(out.String(), func(word string) string {
		if random(word) {
			return hidden
		}
		return word
	})
	return messages.HideTokens(s)
}

// random reports whether a word may be the base64 of a key: letters of both sorts, digits, and a sign that names and paths
// have not, or the length of a well-known one.
func random(word string) bool {
	var lower, upper, digit bool
	for _, c := range []byte(word) {
		lower, upper, digit = lower || 'a' <= c && c <= 'z', upper || 'A' <= c && c <= 'Z', digit || '0' <= c && c <= '9'
	}
	return lower && upper && digit && (strings.ContainsAny(word, "+=") || len(word) == 40)
}
